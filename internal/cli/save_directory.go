package cli

import (
	"slices"
	"strconv"

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
	from, err := savedUntil(c)
	if err != nil {
		return err
	}
	from.LogDir, from.Peers = c.String("wal-dir"), c.StringSlice("peer")
	file, err := create(c, out)
	if err != nil {
		return err
	}
	defer file.Discard()
	shown := progress(c).Phase("saving " + out)
	defer shown.End()
	s, err := snapshot.Open(c.Context, dir, from)
	if err != nil {
		return saveFailure(err, out)
	}
	defer s.Close()
	switch {
	case s.DataDir() != nil && c.IsSet("at"):
		return usagef(commandPath(c), "--at ends the delta snapshots of etcdbrctl; %s is the data directory of a "+
			"member", dir)
	case s.DataDir() == nil && c.IsSet("wal-dir"):
		return usagef(commandPath(c), "--wal-dir takes the log of a data directory; %s is not a data directory", dir)
	case s.DataDir() == nil && c.IsSet("peer"):
		return usagef(commandPath(c), "--peer reads the logs of members; %s is not a data directory", dir)
	case s.DataDir() == nil && c.Bool("wal-history"):
		return usagef(commandPath(c), "--wal-history reads the log of a data directory; %s has none", dir)
	case s.DataDir() == nil && s.Compression() != snapshot.Etcdbrctl:
		return usagef(commandPath(c), "--data-dir takes the data directory of a member, or a folder with backups "+
			"of etcdbrctl; %s is a file", dir)
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
		doc.History = new(savedHistory)
		cfg = doc.History.config(base)
	}
	draft := snapshot.Begin(out, file, s)
	nothing := stream.Of(func(func(snapshot.Change) error) error { return nil })
	shown.Of(draft.Progress)
	r, err := draft.Write(c.Context, nothing, cfg)
	if err != nil {
		return saveFailure(historyFailure(err, dir), out)
	}
	shown.End()
	if doc.Output = r.FileInfo; doc.History != nil {
		doc.Warnings = append(doc.Warnings, doc.History.complete(r)...)
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

// savedUntil reads the end of delta snapshots from --at.
func savedUntil(c *cli.Context) (cfg snapshot.Config, err error) {
	cfg = snapshotConfig(c)
	given := c.String("at")
	if given == "" {
		return cfg, nil
	}
	if cfg.UntilRevision, err = strconv.ParseInt(given, 10, 64); err == nil && cfg.UntilRevision > 0 {
		return cfg, nil
	}
	cfg.UntilRevision = 0
	if cfg.UntilTime, err = parseTime(given); err != nil {
		return cfg, usagef(commandPath(c), "--at is %q; it takes a revision, or a time such as 2026-11-20T20:50:00Z",
			given)
	}
	return cfg, nil
}
