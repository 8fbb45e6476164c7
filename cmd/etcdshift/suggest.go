package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/etcdshift/etcdshift/internal/kubectl"
)

// noCommand is the action of the program, or a group of commands, without a command that it has.
func noCommand(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		err := usagef(commandPath(c), "unknown command %q", name)
		if commandPath(c) == "" && slices.Contains(kubectl.Commands(), name) {
			return &failure{exitUsage, err, fmt.Sprintf("kubectl has it: etcdshift kubectl SNAPSHOT %s", name)}
		}
		err = &failure{exitUsage, err, fmt.Sprintf("%q lists the commands", c.Command.HelpName+" --help")}
		return suggest(err, name, mapped(c.Command.Subcommands, func(c *cli.Command) string { return c.Name }))
	}
	return usagef(commandPath(c), "which command?")
}

// viaKubectl is the hint about what "get" leaves to kubectl.
const viaKubectl = "kubectl has it: etcdshift kubectl SNAPSHOT get ..."

// unknownFlag is the error about a flag that the command lacks.
func unknownFlag(path, word string, command *cli.Command) error {
	err := usagef(path, "unknown flag %q", word)
	if passesOn(command) {
		err = &failure{exitUsage, err, fmt.Sprintf("the flags of kubectl stand after SNAPSHOT; %q shows the others", "etcdshift "+path+" --help")}
	}
	if path == "get" && slices.Contains([]string{"chunk-size", "raw", "filename", "f", "subresource", "server-print"}, nameOf(word)) {
		return &failure{exitUsage, err, viaKubectl}
	}
	return suggest(err, "--"+nameOf(word), mapped(command.Flags, func(f cli.Flag) string { return "--" + f.Names()[0] }))
}

// suggest adds to the hint of a usage error the known word that is nearest to an unknown one.
func suggest(err error, word string, known []string) error {
	distance := func(a, b string) int {
		return smetrics.WagnerFischer(word, a, 1, 1, 1) - smetrics.WagnerFischer(word, b, 1, 1, 1)
	}
	var f *failure
	short := len(strings.TrimLeft(word, "-")) < 2 // near to every short name
	if known = slices.SortedStableFunc(slices.Values(known), distance); errors.As(err, &f) && len(known) > 0 && !short &&
		smetrics.WagnerFischer(word, known[0], 1, 1, 1) <= max(2, len(word)/3) {
		f.hint = fmt.Sprintf("did you mean %q? %s", known[0], f.hint)
	}
	return err
}
