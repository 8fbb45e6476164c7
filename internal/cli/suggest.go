package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/kubectl"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// noCommand is the action of the program, or of a group, without a known command.
func noCommand(c *cli.Context) error {
	name, path := c.Args().First(), commandPath(c)
	switch {
	case name == "" && path == "":
		return &failure{exitUsage, usagef(path, "which command?"),
			`"etcdshift status SNAPSHOT" is a first look at a file; "etcdshift --help" lists the commands`}
	case name == "":
		return usagef(path, "which command?")
	}
	err := usagef(path, "unknown command %q", name)
	if hint := hintElsewhere(c, path); hint != "" {
		return &failure{exitUsage, err, hint}
	}
	err = &failure{exitUsage, err, fmt.Sprintf("%q lists the commands", c.Command.HelpName+" --help")}
	return suggest(err, name, stream.Mapped(c.Command.Subcommands, func(c *cli.Command) string { return c.Name }))
}

// hintElsewhere returns the hint for words known to another tool, group or argument of a command.
func hintElsewhere(c *cli.Context, path string) string {
	commands, words := c.App.Commands, c.Args().Slice()
	word := words[0]
	has := func(c *cli.Command) bool { return c.Name == word }
	if path != "" {
		if slices.ContainsFunc(commands, has) {
			return fmt.Sprintf("did you mean %q?", "etcdshift "+word)
		}
		return ""
	}
	switch word {
	case "cluster":
		return fmt.Sprintf("did you mean %q?", strings.Join(append([]string{"etcdshift kcp"},
			words[1:min(2, len(words))]...), " "))
	case "snapshot":
		return `"etcdshift status SNAPSHOT" shows what "etcdutl snapshot status" does; "etcdshift save OUT" saves; ` +
			`"etcdshift restore SNAPSHOT --data-dir DIR" restores`
	}
	for _, group := range commands {
		if slices.ContainsFunc(group.Subcommands, has) {
			return fmt.Sprintf("did you mean %q?", "etcdshift "+group.Name+" "+word)
		}
	}
	if namesSnapshot(word) {
		command, rest := "status", []string(nil)
		if len(words) > 1 && slices.ContainsFunc(commands, func(c *cli.Command) bool { return c.Name == words[1] }) {
			command, rest = words[1], words[2:]
		}
		return "a command stands before the file: " + strings.Join(append([]string{"etcdshift", command, word},
			rest...), " ")
	}
	if slices.Contains(kubectl.Commands(), word) {
		return fmt.Sprintf("kubectl has it: etcdshift kubectl SNAPSHOT %s", word)
	}
	if kind, _, _ := strings.Cut(word, "/"); namesType(kind) {
		words, file := slices.Clone(words), "SNAPSHOT"
		if at := slices.IndexFunc(words, namesSnapshot); at > 0 {
			file = words[at]
			words = slices.Delete(words, at, at+1)
		}
		return fmt.Sprintf("%s is a type of objects: etcdshift get %s %s", kind, file, strings.Join(words, " "))
	}
	return ""
}

// viaKubectl is the hint about features of kubectl missing in "get".
const viaKubectl = "kubectl has it: etcdshift kubectl SNAPSHOT get ..."

// removedFlags maps flags of earlier versions to their replacement.
func removedFlags() map[string]string {
	return map[string]string{
		"sign --new-key": "minisign makes keys: minisign -G -p backup.pub -s backup.key",
		"get --export":   "export prints what can be applied: etcdshift export SNAPSHOT TYPE/NAME",
	}
}

// unknownFlag returns the error about an unknown flag.
func unknownFlag(path, word string, command *cli.Command) error {
	err := usagef(path, "unknown flag %q", word)
	if passesOn(command) {
		err = &failure{exitUsage, err, fmt.Sprintf("the flags of kubectl stand after SNAPSHOT; %q shows the others",
			"etcdshift "+path+" --help")}
	}
	if hint := removedFlags()[path+" --"+nameOf(word)]; hint != "" {
		return &failure{exitUsage, err, hint}
	}
	if path == "get" && slices.Contains([]string{"chunk-size", "raw", "filename", "f", "subresource", "server-print"},
		nameOf(word)) {
		return &failure{exitUsage, err, viaKubectl}
	}
	return suggest(err, "--"+nameOf(word), stream.Mapped(command.Flags,
		func(f cli.Flag) string { return "--" + f.Names()[0] }))
}

// suggest adds the known word nearest to an unknown one to the hint of a usage error.
func suggest(err error, word string, known []string) error {
	var f *failure
	if near := phrase.Nearest(word, known); near != "" && errors.As(err, &f) {
		f.hint = fmt.Sprintf("did you mean %q? %s", near, f.hint)
	}
	return err
}
