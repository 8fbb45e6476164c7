package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"github.com/urfave/cli/v2"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/etcdshift/etcdshift/internal/kubectl"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/serve"
)

func kubectlCommand() *cli.Command {
	return &cli.Command{
		Name:      "kubectl",
		Usage:     "kubectl itself, reading the file",
		ArgsUsage: "SNAPSHOT COMMAND...",
		Description: `etcdshift kubectl before.db get pods -A -o wide
etcdshift kubectl before.db describe deploy web -n shop
etcdshift kubectl --show-secrets before.db get secret tls -n shop -o yaml
etcdshift kubectl before.db explain certificates.spec`,
		UsageText: `Runs kubectl on the read-only API server of "serve", in this process: no port is opened, no kubeconfig read. COMMAND is get, describe,
explain, events, api-resources, api-versions, "auth can-i", "auth whoami" or "rollout history", with the flags of kubectl; "etcdshift
kubectl SNAPSHOT COMMAND --help" shows them. The flags below stand before SNAPSHOT.

What changes objects, or needs running containers, is refused; so are flags that choose a cluster. A snapshot does not change: --watch
shows what there is and ends. Ages count from now.

Exit status: 0 done, 1 kubectl failed (an object was not found, or the answer of can-i is no), 2 usage or refused, 130 interrupted.`,
		Flags:  readFlags("decrypt values with", atFlag("read"), showSecretsFlag()),
		Action: taking(runKubectl),
	}
}

func runKubectl(c *cli.Context, args []string) error {
	var failed *kubectl.FailedError
	err := snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
		k := &onFile{c: c, opened: files[0]}
		streams := genericiooptions.IOStreams{In: c.App.Reader, Out: c.App.Writer, ErrOut: c.App.ErrWriter}
		err := kubectl.Run(c.Context, k.serve, streams, args[1:])
		if errors.As(err, &failed) {
			return nil // it has its own words
		}
		return k.verdict(err)
	}))
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

// onFile is a run of kubectl on a snapshot.
type onFile struct {
	c       *cli.Context
	opened  *opened
	started bool
	lacking int // objects that cannot be read
}

// serve makes the server.
func (k *onFile) serve(ctx context.Context) (*serve.Server, error) {
	if err := k.opened.readAt(k.c); err != nil {
		return nil, err
	}
	server, err := serve.New(ctx, k.opened.Reader, serve.Config{Address: "localhost:80", Secrets: k.c.Bool("show-secrets"), Report: func(line string) {
		if k.started {
			k.lacking++ // the server warns kubectl of each
		} else {
			warn(k.c, line)
		}
	}})
	k.started = true
	return server, err
}

// verdict returns the error of a run: about the command line, or objects that cannot be read.
func (k *onFile) verdict(err error) error {
	var refused *kubectl.RefusedError
	var unknown *pflag.NotExistError
	var usage kubectl.UsageError
	errors.As(err, &usage)
	switch {
	case errors.As(err, &refused):
		return usagef(commandPath(k.c), "%w", refused)
	case errors.As(err, &unknown) && flagOf(k.c.Command, unknown.GetSpecifiedName()) != nil:
		return &failure{exitUsage, usagef(commandPath(k.c), "%w", usage), "flags of etcdshift stand before SNAPSHOT"}
	case errors.As(err, &usage):
		return usagef(commandPath(k.c), "%w", usage)
	case err == nil && k.lacking > 0:
		return fmt.Errorf("%s could not be read", render.Plural(k.lacking, "object"))
	}
	return err
}
