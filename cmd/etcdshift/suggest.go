package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/kubectl"
	"github.com/etcdshift/etcdshift/internal/nearest"
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
	var f *failure
	if near := nearest.Word(word, known); near != "" && errors.As(err, &f) {
		f.hint = fmt.Sprintf("did you mean %q? %s", near, f.hint)
	}
	return err
}
