// Etcdshift reads, changes and proves etcd snapshots of Kubernetes clusters, with no server, no cluster and no network.
//
// This is the only package that prints and exits. One file a command; each parses its arguments, calls one library
// function and prints what that found. Data goes to stdout, words to stderr.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

func main() { os.Exit(mainOn(os.Stdout)) }

// mainOn is main, with another standard output in tests.
func mainOn(stdout io.Writer) int {
	// Libraries log to stderr, those of Kubernetes by klog; what they say is in our errors.
	klog.SetLogger(klog.Logger{})
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	return run(ctx, os.Args, os.Stdin, stdout, os.Stderr)
}

// run is the whole program: args[0] is its name, the result its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runCommands(ctx, commands(), args, stdin, stdout, stderr)
}

// commands are all commands, in the order of the help.
func commands() []*cli.Command {
	return commandsFor(migrations.All())
}

func commandsFor(specs []transform.Spec) []*cli.Command {
	return []*cli.Command{
		statusCommand(),
		getCommand(),
		keysCommand(),
		sizesCommand(),
		doctorCommand(),
		historyCommand(),
		diffCommand(),
		explainCommand(specs),
		verifyCommand(),
		migrateCommand(specs),
		clusterCommand(specs),
		completionCommand(),
		manCommand(),
	}
}

func runCommands(ctx context.Context, commands []*cli.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := newApp(commands)
	app.Reader, app.Writer, app.ErrWriter = stdin, stdout, stderr
	if codes := codesFor(app, args); codes != nil {
		_, err := fmt.Fprintln(stdout, strings.Join(codes, "\n"))
		return finish(err, stderr)
	}
	args, err := arrange(app, args)
	if err == nil {
		err = faultless(func() error { return app.RunContext(ctx, args) })
	}
	return finish(err, stderr)
}

// faultless runs fn and makes an error of a fault: values are read where the file is mapped, and someone else may cut the
// file short, or the disk fail, after it was checked. Any other panic goes on.
func faultless(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface {
			error
			Addr() uintptr
		}:
			err = fmt.Errorf("%w: a page of it can no longer be read", snapshot.ErrChanged)
		default:
			panic(r)
		}
	}()
	return fn()
}

func newApp(commands []*cli.Command) *cli.App {
	app := &cli.App{
		Name:    "etcdshift",
		Usage:   "read, change and prove etcd snapshots of Kubernetes clusters",
		Version: version(),
		Description: `etcdshift status before.db
etcdshift migrate calico-v3 before.db after.db
etcdshift verify after.db`,
		Commands:                  append(slices.Clone(commands), helpCommand()),
		Flags:                     []cli.Flag{cli.HelpFlag}, // else it comes with the library's own help command
		CustomAppHelpTemplate:     appHelp,
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true, // a comma may be part of a prefix
		Action:                    noCommand,
		OnUsageError:              usageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // the default exits
	}
	prepare(app.Commands)
	return app
}

// prepare gives every command what all of them have.
func prepare(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		c.HideHelpCommand = true // else a file named "help" or "h" would be taken for a command
		if c.CustomHelpTemplate == "" {
			c.CustomHelpTemplate = commandHelp + describeFlags(c.Flags)
			if len(c.Subcommands) > 0 {
				c.CustomHelpTemplate = groupHelp
				c.Action = noCommand
			}
		}
		prepare(c.Subcommands)
	}
}

// version is what the build knows of itself: a tag, or the time and id of a commit ("v0.0.0-20261122104526-97e6685fc46b", with "+dirty"
// where files were changed), or "(devel)". It goes into reports and answers, never into a snapshot or an archive.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
