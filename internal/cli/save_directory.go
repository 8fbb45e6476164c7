package cli

import (
	"context"
	"errors"
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
	doc := saved{answerHead: answerTo("SavedSnapshot"), DataDir: s.DataDir(), Refused: []save.Untaken{},
		Failed: []save.Untaken{}, Warnings: listed(slices.Clone(s.Warnings()))}
	cfg := snapshot.WriteConfig{}
	if c.Bool("wal-history") {
		base, err := openBase(c)
		if err != nil {
			return err
		}
		if base != nil {
			defer base.Close()
		}
		cfg.LogHistory, doc.History = &snapshot.LogHistory{Base: base}, new(savedHistory)
		cfg.Check = func(ctx context.Context, made *snapshot.Snapshot) (err error) {
			doc.History.Oldest, _, err = made.Kept(ctx)
			return err
		}
	}
	draft := snapshot.Begin(out, file, s)
	nothing := stream.Of(func(func(snapshot.Change) error) error { return nil })
	shown.Of(draft.Progress)
	r, err := draft.Write(c.Context, nothing, cfg)
	if errors.Is(err, snapshot.ErrLogHistory) {
		return &failure{exitRefused, err, hintFor(err)}
	}
	if err != nil {
		return saveFailure(err, out)
	}
	shown.End()
	if doc.Output = r.FileInfo; doc.History != nil {
		doc.History.Records = r.Restored
	}
	return printSaved(c, doc)
}

// openBase opens the file of --base; nil without one.
func openBase(c *cli.Context) (*snapshot.Snapshot, error) {
	path := c.String("base")
	if path == "" {
		return nil, nil
	}
	if err := onlyFile(c, "--base", path); err != nil {
		return nil, err
	}
	return snapshot.Open(c.Context, path, snapshotConfig(c))
}
