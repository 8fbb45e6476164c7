package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
)

// outputFlag is -o, with the formats a command knows; the first is the default.
func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "print `FORMAT`: text or json"}
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing on stderr but errors"}
}

// showSecretsFlag is on every command that prints values.
func showSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "show-secrets", Usage: "print Secrets and other credentials as they are; without it they are \"<redacted 32 bytes>\""}
}

// wantsJSON reads -o.
func wantsJSON(c *cli.Context) (bool, error) {
	format, err := oneOf(c, "output", "text", "json")
	return format == "json", err
}

// oneOf returns the value of a flag that takes one of some words.
func oneOf(c *cli.Context, flag string, words ...string) (string, error) {
	value := c.String(flag)
	if !slices.Contains(words, value) {
		return "", usagef(commandPath(c), "--%s is %q; it takes %s", flag, value, strings.Join(words, " or "))
	}
	return value, nil
}

// progress shows on a terminal, unless -q was given, that work goes on.
func progress(c *cli.Context) *render.Progress {
	if c.Bool("quiet") {
		return render.NewProgress(nil)
	}
	return render.NewProgress(c.App.ErrWriter)
}

// warn prints warnings on stderr unless -q was given.
func warn(c *cli.Context, warnings ...string) {
	for _, w := range warnings {
		if !c.Bool("quiet") {
			fmt.Fprintln(c.App.ErrWriter, "warning:", render.Printable(w))
		}
	}
}
