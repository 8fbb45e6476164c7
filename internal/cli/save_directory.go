package cli

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/save"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// saveDirectory is save --data-dir.
func saveDirectory(c *cli.Context, out string) error {
	dir := c.String("data-dir")
	for _, f := range append(etcdFlags(), &cli.Int64Flag{Name: "max-lag"}) {
		if name := f.Names()[0]; c.IsSet(name) {
			return usagef(commandPath(c), "--data-dir reads the folder of a stopped member: it takes no --%s", name)
		}
	}
	file, err := create(c, out)
	if err != nil {
		return err
	}
	defer file.Discard()
	shown := progress(c).Phase("saving " + out)
	defer shown.End()
	s, err := snapshot.Open(c.Context, dir, snapshotConfig(c))
	if err != nil {
		return saveFailure(err, out)
	}
	defer s.Close()
	if s.DataDir() == nil {
		return usagef(commandPath(c), "--data-dir takes the data directory of a member; %s is a file", dir)
	}
	draft := snapshot.Begin(out, file, s)
	nothing := stream.Of(func(func(snapshot.Change) error) error { return nil })
	shown.Of(draft.Progress)
	r, err := draft.Write(c.Context, nothing, snapshot.WriteConfig{})
	if err != nil {
		return saveFailure(err, out)
	}
	shown.End()
	return printSaved(c, saved{answerTo("SavedSnapshot"), r.FileInfo, nil, s.DataDir(), []save.Untaken{},
		[]save.Untaken{}, slices.Clone(s.Warnings())})
}
