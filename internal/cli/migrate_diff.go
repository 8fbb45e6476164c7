package cli

import (
	"context"
	"iter"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

const diffFlag = "diff"

// diffFlags returns the flags for printing changes before they are written.
func diffFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: diffFlag, Usage: "print each change before it is written, as \"etcdshift diff --all IN " +
			"OUT\" does; also with --dry-run"},
		showSecretsFlag(),
	}
}

// checkDiff refuses --diff as JSON (the list would not fit in memory), and --show-secrets without
// --diff.
func checkDiff(c *cli.Context) error {
	switch {
	case c.Bool(diffFlag) && wantsJSON(c):
		return &failure{exitUsage, usagef(commandPath(c), "--diff prints text, and -o json the report alone"),
			"\"etcdshift diff --all -o json IN OUT\" prints the changes as JSON; --report writes the report " +
				"beside a --diff"}
	case c.Bool("show-secrets") && !c.Bool(diffFlag):
		return usagef(commandPath(c), "--show-secrets is for --diff: a report has no Secrets")
	}
	return nil
}

// printStaged returns a function that prints the staged changes of a run.
func printStaged(
	c *cli.Context, phases *render.Progress,
) func(context.Context, *inspect.Reader, iter.Seq2[snapshot.Change, error], []snapshot.Lease) error {
	return func(ctx context.Context, in *inspect.Reader, changes iter.Seq2[snapshot.Change, error],
		granted []snapshot.Lease) (err error) {
		phases.End()
		d := &differences{Page: render.NewPage(c.App.Writer), format: "text", all: true}
		o := compare.Options{All: true, ShowSecrets: c.Bool("show-secrets")}
		if err = stream.Each(compare.Staged(ctx, in, changes, granted, o), d.add); err != nil {
			return err
		}
		if d.leases, err = compare.Granted(ctx, in, granted); err != nil {
			return err
		}
		if err := d.printEnd(d.tail()); err != nil {
			return err
		}
		d.Printf("\n")
		return d.Flush()
	}
}
