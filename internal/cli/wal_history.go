package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// config returns the options of an output with the history of a log. base may be nil.
func (h *savedHistory) config(base *snapshot.Snapshot) snapshot.WriteConfig {
	return snapshot.WriteConfig{
		LogHistory: &snapshot.LogHistory{Base: base},
		Check: func(ctx context.Context, made *snapshot.Snapshot) (err error) {
			h.Oldest, _, err = made.Kept(ctx)
			return err
		},
	}
}

// complete takes the results of a write, and returns warnings.
func (h *savedHistory) complete(r snapshot.WriteResult) (warnings []string) {
	h.Records, h.Inferred = r.Restored, r.Inferred
	if in := r.Inferred; in != nil && in.Unfindable > 0 {
		warnings = append(warnings, fmt.Sprintf("%d sure records have values with long runs of zeros: "+
			"--free-pages does not find them", in.Unfindable))
	}
	return warnings
}

// historyFailure is the error of a history of the log in a data directory.
func historyFailure(err error, dir string) error {
	if errors.Is(err, snapshot.ErrLogHistory) {
		return &failure{exitRefused, &fileError{[]string{dir}, err}, hintFor(err)}
	}
	return inFiles(err, dir)
}

// scratchOutput is an output that needs no name.
type scratchOutput struct{ file *os.File }

func (o scratchOutput) File() *os.File { return o.file }
func (o scratchOutput) Publish() error { return nil }
func (o scratchOutput) Discard() error { return nil }

// readWal returns a scratch file with a data directory and the history of its log, for --wal, and
// describes the history on the error stream.
func readWal(c *cli.Context, dir string) (_ *os.File, err error) {
	if err := onlyFile(c, "--wal", dir); err != nil {
		return nil, err
	}
	s, err := snapshot.Open(c.Context, dir, snapshotConfig(c))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.DataDir() == nil {
		return nil, usagef(commandPath(c), "--wal takes the data directory of a stopped member; %s is none", dir)
	}
	base, err := openBase(c)
	if err != nil {
		return nil, err
	}
	if base != nil {
		defer base.Close()
	}
	file, err := publish.Scratch(os.TempDir())
	if err != nil {
		return nil, err
	}
	h := new(savedHistory)
	nothing := stream.Of(func(func(snapshot.Change) error) error { return nil })
	r, err := snapshot.Begin(dir, scratchOutput{file}, s).Write(c.Context, nothing, h.config(base))
	if err != nil {
		return nil, errors.Join(historyFailure(err, dir), file.Close())
	}
	warn(c, append(s.Warnings(), h.complete(r)...)...)
	if in := h.Inferred; in != nil {
		in.FreePages = 0 // the timeline shows them
	}
	if !c.Bool("quiet") {
		fmt.Fprint(c.App.ErrWriter, h.lines(r.Revision))
	}
	return file, nil
}
