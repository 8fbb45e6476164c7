package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/urfave/cli/v2"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/etcdshift/etcdshift/internal/kubectl"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/serve"
)

func kubectlCommand() *cli.Command {
	return &cli.Command{
		Name:      "kubectl",
		Usage:     "run kubectl on a snapshot",
		ArgsUsage: "SNAPSHOT COMMAND...",
		Description: `etcdshift kubectl before.db get pods -A -o wide
etcdshift kubectl before.db describe deploy web -n shop
etcdshift kubectl --show-secrets before.db get secret tls -n shop -o yaml
etcdshift kubectl before.db explain certificates.spec`,
		UsageText: `Runs kubectl on the read-only API server of "serve", in this process: no port is opened, no
kubeconfig is read. COMMAND is get, describe, explain, events, api-resources, api-versions, "auth can-i", "auth
whoami" or "rollout history", with the flags of kubectl; "etcdshift kubectl SNAPSHOT COMMAND --help" shows them. The
flags below stand before SNAPSHOT.

Refused are commands that change objects or need running containers, and flags that choose a cluster. A snapshot does
not change: --watch shows the objects and exits. Ages are relative to the current time.

Exit status: 0 done, 1 kubectl failed (an object was not found, or the answer of can-i is no), 2 usage or refused,
130 interrupted.`,
		Flags:  readFlags("decrypt values with", atFlag("read"), showSecretsFlag()),
		Action: taking(runKubectl),
	}
}

func runKubectl(c *cli.Context, args []string) error {
	k := &onFile{c: c}
	// The first run needs no file: it ends with help, a refusal or at the first need for a server.
	failed, err := k.run(func(context.Context) (*serve.Server, error) { return nil, kubectl.ErrNeeded }, args[1:])
	if _, missing := os.Stat(args[0]); errors.Is(err, kubectl.ErrNeeded) || err != nil &&
		errors.Is(missing, fs.ErrNotExist) {
		err = snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
			k.opened = files[0]
			if failed, err = k.run(k.serve, args[1:]); failed != nil {
				return nil
			}
			return k.verdict(err, args[1:])
		}))
	} else {
		err = k.verdict(err, args[1:])
	}
	if failed == nil || err != nil {
		return err
	}
	for line := range strings.Lines(failed.Text) {
		fmt.Fprintln(c.App.ErrWriter, render.Printable(strings.TrimSuffix(line, "\n")))
	}
	if failed.Usage {
		return &failure{status: exitUsage, err: errSaid}
	}
	return &failure{status: exitFailed, err: errSaid}
}

// run runs kubectl. A failed command has already printed its error.
func (k *onFile) run(
	start func(context.Context) (*serve.Server, error), args []string,
) (failed *kubectl.FailedError, err error) {
	streams := genericiooptions.IOStreams{In: k.c.App.Reader, Out: k.c.App.Writer, ErrOut: k.c.App.ErrWriter}
	if err = kubectl.Run(k.c.Context, start, streams, k.c.Bool("quiet"), args); errors.As(err, &failed) {
		err = nil
	}
	return failed, err
}

// onFile is a run of kubectl on a snapshot.
type onFile struct {
	c       *cli.Context
	opened  *opened
	started bool
	lacking int // unreadable objects
}

// serve creates the server.
func (k *onFile) serve(ctx context.Context) (*serve.Server, error) {
	if err := k.opened.readAt(k.c); err != nil {
		return nil, err
	}
	report := func(line string) {
		if k.started {
			k.lacking++ // the server warns kubectl of each
		} else {
			warn(k.c, line)
		}
	}
	server, err := serve.New(ctx, k.opened.Reader, serve.Config{Address: "localhost:80",
		Secrets: k.c.Bool("show-secrets"), Once: true, Brief: true, Report: report})
	k.started = true
	return server, err
}

// verdict returns the error of a run: about the command line or unreadable objects.
func (k *onFile) verdict(err error, args []string) error {
	var refused *kubectl.RefusedError
	var usage kubectl.UsageError
	switch {
	case errors.As(err, &refused):
		return usagef(commandPath(k.c), "%w", refused)
	case errors.As(err, &usage):
		return k.usage(usage, args)
	case err == nil && k.lacking > serve.MostReported:
		return fmt.Errorf("more than %s could not be read", phrase.Count(serve.MostReported, "object"))
	case err == nil && k.lacking > 0:
		return fmt.Errorf("%s could not be read", phrase.Count(k.lacking, "object"))
	}
	return err
}

// usage adds a hint: the position of etcdshift's flags, or a similar command.
func (k *onFile) usage(err kubectl.UsageError, args []string) error {
	var unknown *pflag.NotExistError
	wrong := usagef(commandPath(k.c), "%w", err)
	// kubectl takes the next word as the value
	own := strings.HasPrefix(args[0], "-") && flagOf(k.c.Command, nameOf(args[0])) != nil
	switch {
	case own, errors.As(err, &unknown) && flagOf(k.c.Command, unknown.GetSpecifiedName()) != nil:
		return &failure{exitUsage, wrong, "flags of etcdshift stand before SNAPSHOT"}
	case err.Similar != "":
		return suggest(wrong, err.Similar, []string{err.Similar})
	}
	return wrong
}
