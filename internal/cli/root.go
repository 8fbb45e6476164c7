// Package cli is the program: one file per command parses arguments, calls one library function and
// prints the result. Data goes to stdout, messages to stderr.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"

	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

// Main runs the arguments and standard input of this process; the result is its exit status.
func Main(stdout io.Writer, stderr io.Writer) int {
	if code, isPart := sandbox.Main(Parts(), os.Args, os.Stdin, stderr); isPart {
		return code
	}
	klog.SetLogger(klog.Logger{}) // libraries of Kubernetes log the content of our errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	return Run(ctx, os.Args, os.Stdin, stdout, stderr)
}

// Parts returns the jobs of this program's sandboxed child processes, by name.
func Parts() map[string]sandbox.Part {
	return map[string]sandbox.Part{apiservers.PartName: apiservers.Part}
}

// Run runs a command line: args[0] is the name of the program, the result its exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runCommands(ctx, Commands(), args, stdin, stdout, stderr)
}

// Commands returns all commands, in the order of the help.
func Commands() []*cli.Command { return commandsFor(migrations.All()) }

func commandsFor(specs []transform.Spec) []*cli.Command {
	return slices.Concat([]*cli.Command{
		statusCommand(),
		getCommand(),
		grepCommand(),
		exportCommand(),
		keysCommand(),
		sizesCommand(),
		doctorCommand(),
		historyCommand(),
		timelineCommand(),
		diffCommand(),
		reportCommand(),
		kubectlCommand(),
		serveCommand(),
		explainCommand(specs),
		verifyCommand(),
		signCommand(),
		rehearseCommand(),
		migrateCommand(specs),
	}, specCommands(specs, transform.GroupNone), []*cli.Command{
		saveCommand(),
		salvageCommand(),
		restoreCommand(),
		fleetCommand(),
		policyCommand(specs),
		clusterCommand(specs),
		completionCommand(),
		versionCommand(),
		manCommand(),
	})
}

func runCommands(
	ctx context.Context, commands []*cli.Command, args []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	app := newApp(commands)
	app.Reader, app.Writer, app.ErrWriter = stdin, stdout, stderr
	if len(args) > 2 && args[1] == completeWord {
		return printWords(ctx, app, args[2:], stdout)
	}
	args, err := arrange(app, args)
	if err == nil {
		err = faultless(func() error { return runApp(ctx, app, args) })
	}
	return finish(err, stderr)
}

// faultless turns a memory fault into an error: while read, the mapped file may be truncated, or
// the disk may fail. Any other panic continues.
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
		Name:                      programName,
		Version:                   version(),
		Commands:                  append(slices.Clone(commands), helpCommand()),
		Flags:                     []cli.Flag{cli.HelpFlag}, // otherwise the library adds its own help command
		DisableSliceFlagSeparator: true,                     // a comma may be part of a prefix
		Action:                    noCommand,
		OnUsageError:              usageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // the default exits
	}
	prepare(app.Commands)
	return app
}

const programName = "etcdshift"

// program returns the program as a group of commands, for its help.
func program(commands []*cli.Command) *cli.Command {
	return &cli.Command{
		Name:  programName,
		Usage: "read, change and prove etcd snapshots of Kubernetes clusters",
		Description: `etcdshift status before.db
etcdshift migrate calico-v3 before.db after.db
etcdshift verify after.db`,
		UsageText: `Flags stand anywhere after the name of a command. "etcdshift COMMAND --help" shows examples and
flags; "etcdshift help PAGE.md" prints a runbook; "etcdshift help pages" lists all runbooks.

SNAPSHOT, IN, OUT and the FILE of --report may be s3://BUCKET/KEY, with the settings of the AWS tools:
docs/guides/object-storage.md.`,
		Subcommands: commands,
		Flags:       []cli.Flag{cli.VersionFlag},
	}
}

// prepare completes commands, except for their help.
func prepare(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		c.HideHelpCommand = true // otherwise a file named "help" or "h" would count as a command
		if len(c.Subcommands) > 0 {
			c.Action = noCommand
		}
		prepare(c.Subcommands)
	}
}

// version returns a tag, or the time and ID of a commit, with "+dirty" after local changes, or
// "(devel)". It goes into reports and answers, never into a snapshot or an archive.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
