package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange puts a command's flags before its arguments: the parser stops at the first argument and would take a later flag
// for one more. Words before the command's name are left to the parser. A flag that the command does not have, one that is
// given twice, and an empty value are usage errors. "--" ends the flags, and a flag that takes a value takes the next word
// whatever it is.
func arrange(commands []*cli.Command, args []string) ([]string, error) {
	if args[len(args)-1] == "--generate-bash-completion" {
		return args, nil // half a command line; the parser finds out where it stands
	}
	at := 1
	var path []string
	var command *cli.Command
	for at < len(args) {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[at]) })
		if i < 0 {
			break
		}
		command = commands[i]
		path = append(path, command.Name)
		commands = command.Subcommands
		at++
	}
	if command == nil || len(command.Subcommands) > 0 {
		return args, nil
	}
	flags, arguments, err := split(command, strings.Join(path, " "), args[at:])
	if err != nil {
		return nil, err
	}
	return slices.Concat(args[:at], flags, []string{"--"}, arguments), nil
}

// split sorts the words after a command's name into flags, with their values, and arguments.
func split(command *cli.Command, path string, words []string) (flags, arguments []string, err error) {
	given := map[cli.Flag]bool{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--":
			return flags, append(arguments, words...), nil
		case word == "-" || !strings.HasPrefix(word, "-"):
			arguments = append(arguments, word)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
		f := flagOf(command, name)
		switch {
		case f == nil:
			return nil, nil, usagef(path, "unknown flag %q", word)
		case f == cli.HelpFlag: // without arguments: the parser would look for their help
			return []string{word}, nil, nil
		case given[f] && !repeatable(f): // the parser would take the last
			return nil, nil, usagef(path, "flag %q is given twice", flagName(word))
		}
		given[f] = true
		flags = append(flags, word)
		if _, isBool := f.(*cli.BoolFlag); !isBool && !hasValue {
			if len(words) == 0 {
				return nil, nil, usagef(path, "flag %q needs a value", word)
			}
			value, words = words[0], words[1:]
			flags = append(flags, value)
		} else if isBool && !hasValue {
			continue
		}
		if value == "" { // of a shell variable that is not set; it would mean the same as no flag
			return nil, nil, usagef(path, "flag %q has an empty value", flagName(word))
		}
	}
	return flags, arguments, nil
}

// flagName is a flag as it was given, without its value.
func flagName(word string) string {
	name, _, _ := strings.Cut(word, "=")
	return name
}

// repeatable says whether a flag may be given more than once.
func repeatable(f cli.Flag) bool {
	slice, ok := f.(cli.DocGenerationSliceFlag)
	return ok && slice.IsSliceFlag()
}

// flagOf returns the command's flag of that name, nil when there is none.
func flagOf(command *cli.Command, name string) cli.Flag {
	for _, f := range append(slices.Clone(command.Flags), cli.HelpFlag) {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// arguments returns the command's arguments when there is one for each of names.
func arguments(c *cli.Context, names ...string) ([]string, error) {
	given := c.Args().Slice()
	if len(given) == len(names) {
		return given, nil
	}
	want := "takes no arguments"
	if len(names) > 0 {
		want = "takes " + strings.Join(names, " ")
	}
	if len(given) == 0 {
		return nil, usagef(commandPath(c), "%s; none was given", want)
	}
	return nil, usagef(commandPath(c), "%s; given were %d: %q", want, len(given), given)
}

// commandPath is the command's name with those above it, without the program's.
func commandPath(c *cli.Context) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.Command.HelpName, c.App.Name), " ")
}

// noCommand is what a group of commands does when none of it was named.
func noCommand(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		return usagef(commandPath(c), "unknown command %q", name)
	}
	return usagef(commandPath(c), "which command?")
}

// usageError takes the parser's errors: values that are not what a flag takes, flags before the command's name.
func usageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return usagef(commandPath(c), "unknown flag %q here; the flags of a command stand after its name", name)
	}
	return usagef(commandPath(c), "%s", text)
}
