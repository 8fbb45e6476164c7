package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// arguments returns the arguments, checked against names, or by default against the command's
// usage: see [transform.CountArguments].
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
	if len(given) == 0 && len(names) > 0 && strings.HasPrefix(names[0], "SNAPSHOT") && piped(c) {
		err := usagef(commandPath(c), "%s; none was given", want)
		line := strings.Join(append([]string{"etcdshift", commandPath(c), "-"}, names[1:]...), " ")
		return nil, &failure{exitUsage, err, `"-" reads standard input: ` + line}
	}
	if len(given) == 0 {
		return nil, usagef(commandPath(c), "%s; none was given", want)
	}
	return nil, missingSnapshot(c, names, given, usagef(commandPath(c), "%s; got %d: %q", want, len(given), given))
}

// missingSnapshot adds a hint if a TYPE is given in place of SNAPSHOT.
func missingSnapshot(c *cli.Context, names, given []string, err error) error {
	kind, _, _ := strings.Cut(given[0], "/")
	if len(names) == 0 || !strings.HasPrefix(names[0], "SNAPSHOT") || namesSnapshot(given[0]) || !namesType(kind) {
		return err
	}
	words := render.Printable(strings.Join(given, " "))
	return &failure{exitUsage, err, fmt.Sprintf("SNAPSHOT is missing: etcdshift %s SNAPSHOT %s", commandPath(c), words)}
}

// taking returns the action of a command with the arguments of its usage.
func taking(run func(c *cli.Context, args []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		args, err := arguments(c)
		if err != nil {
			return err
		}
		return run(c, args)
	}
}

// checking is taking for a command with a verdict. An error without a status means: nothing could
// be checked.
func checking(run func(c *cli.Context, args []string) error) cli.ActionFunc {
	return taking(func(c *cli.Context, args []string) error {
		err := run(c, args)
		if f := (*failure)(nil); err == nil || errors.As(err, &f) {
			return err
		}
		return &failure{status: exitCannotCheck, err: err}
	})
}

// commandPath returns the command's name after its groups, without the program.
func commandPath(c *cli.Context) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.Command.HelpName, c.App.Name), " ")
}

// usageError converts an error of the parser. Most usage errors are found before the parser runs.
func usageError(c *cli.Context, err error, _ bool) error { return usagef(commandPath(c), "%w", err) }
