package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// arguments returns the arguments, which must fit names, or else the words of the command's usage:
// see [transform.CountArguments].
func arguments(c *cli.Context, names ...string) ([]string, error) {
	if names == nil {
		names = strings.Fields(c.Command.ArgsUsage)
	}
	given := c.Args().Slice()
	least, most := transform.CountArguments(names)
	if least <= len(given) && len(given) <= most {
		return given, nil
	}
	want := "takes no arguments"
	if len(names) > 0 {
		want = "takes " + strings.Join(names, " ")
	}
	if len(given) == 0 && len(names) > 0 && names[0] == "SNAPSHOT" && piped(c) {
		err := usagef(commandPath(c), "%s; none was given", want)
		rest := strings.TrimPrefix(strings.Join(names, " "), "SNAPSHOT")
		return nil, &failure{exitUsage, err, fmt.Sprintf(`"-" reads standard input: etcdshift %s -%s`,
			commandPath(c), rest)}
	}
	if len(given) == 0 {
		return nil, usagef(commandPath(c), "%s; none was given", want)
	}
	return nil, missingSnapshot(c, names, given, usagef(commandPath(c), "%s; got %d: %q", want, len(given), given))
}

// missingSnapshot hints at SNAPSHOT where a TYPE stands in its place.
func missingSnapshot(c *cli.Context, names, given []string, err error) error {
	kind, _, _ := strings.Cut(given[0], "/")
	if len(names) == 0 || !strings.HasPrefix(names[0], "SNAPSHOT") || namesSnapshot(given[0]) || !namesType(kind) {
		return err
	}
	words := render.Printable(strings.Join(given, " "))
	return &failure{exitUsage, err, fmt.Sprintf("SNAPSHOT is missing: etcdshift %s SNAPSHOT %s", commandPath(c), words)}
}

// taking is the action of a command that runs with the arguments of its usage.
func taking(run func(c *cli.Context, args []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		args, err := arguments(c)
		if err != nil {
			return err
		}
		return run(c, args)
	}
}

// checking is taking for a command that looks for something. An error without a status means that
// it could not look.
func checking(run func(c *cli.Context, args []string) error) cli.ActionFunc {
	return taking(func(c *cli.Context, args []string) error {
		err := run(c, args)
		if f := (*failure)(nil); err == nil || errors.As(err, &f) {
			return err
		}
		return &failure{status: exitCannotCheck, err: err}
	})
}

// commandPath is the command's name with those above it, without the program's.
func commandPath(c *cli.Context) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.Command.HelpName, c.App.Name), " ")
}

// usageError is an error of the parser; most are found before it runs.
func usageError(c *cli.Context, err error, _ bool) error { return usagef(commandPath(c), "%w", err) }
