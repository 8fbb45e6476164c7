package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/transform"
)

func fleetRunCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command of etcdshift on one snapshot of a list",
		ArgsUsage: "LIST -- COMMAND [ARGS...]",
		Description: `etcdshift fleet run calico-v3.json --index 7 -- \
    run plan.yaml {in} {result}.db --report {result}.json
etcdshift fleet run calico-v3.json --index 7 -- report {in} {result}.html`,
		UsageText: `Runs COMMAND on the snapshot of an index, as the Pod of an indexed Job does. {in} is the path
of the snapshot; {result} is the prefix of every output path. COMMAND is not run if its last result exists (the file
of --report, or else the last {result} on the line): an index can be run again, and by two Pods at once. Refused are a
snapshot with another etag than in the list, and a report of another snapshot, with a lost output, or from a dry run if
COMMAND is none. Without --dry-run an output must begin with {result} too.

The file of --report stays only if another try would have the same outcome: written, refused, or failed because of the
snapshot. After a full disk or a network failure there is no report, and the next try runs.

Exit status: 0 the results exist, also with findings or problems allowed by --allow; 1 failed, another try may
succeed; 2 usage; 3 refused, damaged, not a snapshot, or not the snapshot of the list: another try has the same outcome;
130 interrupted.`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "index", Usage: "run on snapshot `N` of the list, from 0: in a Job, " +
				"$(JOB_COMPLETION_INDEX)"},
			quietFlag(),
		},
		Action: runFleetRun,
	}
}

func runFleetRun(c *cli.Context) error {
	args, err := arguments(c, "LIST", "COMMAND...")
	if err != nil {
		return err
	}
	words := args[1:]
	switch {
	case !c.IsSet("index"):
		return usagef(commandPath(c), "takes --index N")
	case words[0] == "fleet":
		return usagef(commandPath(c), "COMMAND is a command of etcdshift but fleet; got %q", args)
	}
	f, err := fleet.Read(c.Context, args[0])
	if err != nil {
		return forJob(err)
	}
	t, err := f.Task(c.Int("index"), words)
	if err != nil {
		return usagef(commandPath(c), "%w", err)
	}
	done, outcome, err := t.Done(c.Context)
	if err != nil {
		return forJob(err)
	}
	if !done {
		if err := t.Check(c.Context); err != nil {
			return forJob(err)
		}
		outcome, err = t.Run(c.Context, func(words []string) error { return execute(c, words) }, sameOnRetry)
	}
	return taskStatus(c, t, outcome, done, err)
}

// execute runs a command line of this program.
func execute(c *cli.Context, words []string) error {
	app := newApp(Commands())
	app.Reader, app.Writer, app.ErrWriter = c.App.Reader, c.App.Writer, c.App.ErrWriter
	args, err := arrange(app, append([]string{programName}, words...))
	if err == nil {
		err = runApp(c.Context, app, args)
	}
	return err
}

// taskStatus returns the status of a task and prints its outcome in one line.
func taskStatus(c *cli.Context, t *fleet.Task, outcome transform.Outcome, done bool, err error) error {
	if err != nil && (errors.Is(err, context.Canceled) || statusOf(err) == exitUsage) {
		return err
	}
	there := done
	// the result may exist, from this pod or another
	if err != nil && (outcome == "" || errors.Is(err, fs.ErrExist)) {
		switch is, its, now := t.Done(c.Context); {
		case is:
			there, outcome = true, its
		case errors.Is(now, fleet.ErrChanged):
			err = now
		}
	}
	switch {
	case outcome == transform.Refused || outcome == transform.Failed && there:
		f := &failure{}
		if !errors.As(err, &f) && (err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, s3.ErrUncertain)) {
			err = fmt.Errorf("%s: %s, as %s tells", t.Snapshot.Path, outcome, t.Last)
			f.hint = "the report has the error, or the codes of problems: \"etcdshift explain CODE\" tells what to " +
				"do about one"
		}
		return &failure{exitRefused, err, f.hint}
	case outcome == transform.Failed, err != nil && outcome == "" && !there:
		return forJob(isThere(err))
	}
	if err != nil { // only findings, or allowed problems
		warn(c, err.Error())
	}
	if done && !c.Bool("quiet") {
		fmt.Fprintf(c.App.ErrWriter, "%s is there; nothing was run\n", render.Printable(t.Last))
	}
	return nil
}

// forJob gives an error the status that makes a Job retry or give up.
func forJob(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || statusOf(err) == exitUsage {
		return err
	}
	f := &failure{}
	errors.As(err, &f)
	status := exitFailed
	if f.status == exitRefused || isPermanent(err) {
		status = exitRefused
	}
	return &failure{status, err, f.hint}
}

// sameOnRetry reports whether an outcome would be the same on retry.
func sameOnRetry(outcome transform.Outcome, err error) bool {
	return outcome != transform.Failed || isPermanent(err) && !errors.Is(err, fs.ErrExist)
}

// isPermanent reports whether an error concerns the content of a file or the command line.
func isPermanent(err error) bool {
	return finding.Lasting(err) || errors.Is(err, fs.ErrExist)
}
