package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// arguments returns the command's arguments, which are as many as names, or else the words of its usage, say: one in brackets may be
// missing, one with "..." stands for any number.
func arguments(c *cli.Context, names ...string) ([]string, error) {
	if names == nil {
		names = strings.Fields(c.Command.ArgsUsage)
	}
	given := c.Args().Slice()
	least, most := 0, len(names)
	for _, name := range names {
		if name[0] != '[' {
			least++
		}
		if strings.HasSuffix(strings.TrimSuffix(name, "]"), "...") {
			most = math.MaxInt
		}
	}
	if least <= len(given) && len(given) <= most {
		return given, nil
	}
	want := "takes no arguments"
	if len(names) > 0 {
		want = "takes " + strings.Join(names, " ")
	}
	if len(given) == 0 {
		return nil, usagef(commandPath(c), "%s; none was given", want)
	}
	return nil, usagef(commandPath(c), "%s; got %d: %q", want, len(given), given)
}

// commandPath is the command's name with those above it, without the program's.
func commandPath(c *cli.Context) string {
	return strings.TrimPrefix(strings.TrimPrefix(c.Command.HelpName, c.App.Name), " ")
}

// noCommand is what a group of commands does when none of it was named.
func noCommand(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		err := usagef(commandPath(c), "unknown command %q", name)
		if f := (*failure)(nil); errors.As(err, &f) {
			f.hint = strings.ReplaceAll(f.hint, "tells what it takes", "lists the commands")
		}
		return err
	}
	return usagef(commandPath(c), "which command?")
}

// usageError puts the parser's errors into the words of this program: values that are not what a flag takes, flags before the
// command's name.
func usageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return usagef(commandPath(c), "unknown flag %q here; the flags of a command stand after its name", asTyped(c, name))
	}
	if value, rest, ok := cutQuoted(text); ok {
		name, reason, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, " for "), "flag "), ":")
		name = strings.TrimPrefix(name, "-")
		return usagef(commandPath(c), "%s is %s; it takes %s", dashed(name), value, takes(flagOf(c.Command, name), strings.Contains(reason, "range")))
	}
	return usagef(commandPath(c), "%s", text)
}

// cutQuoted takes the quoted value out of an error of package flag: invalid value "x" for flag -top: parse error.
func cutQuoted(text string) (value, rest string, ok bool) {
	for _, head := range []string{"invalid value ", "invalid boolean value "} {
		if tail, is := strings.CutPrefix(text, head); is {
			if value, err := strconv.QuotedPrefix(tail); err == nil {
				return value, tail[len(value):], true
			}
		}
	}
	return "", "", false
}

// takes says what a flag takes; nil is one of the program's own, which are switches.
func takes(f cli.Flag, outOfRange bool) string {
	switch f.(type) {
	case *cli.IntFlag, *cli.Int64Flag:
		if outOfRange {
			return fmt.Sprintf("a whole number up to %d", math.MaxInt64)
		}
		return "a whole number"
	case *cli.DurationFlag:
		return "a time such as 30s"
	}
	return "true or false"
}

// dashed is the name of a flag with its dashes.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// asTyped is a flag with the dashes and the value that were typed.
func asTyped(c *cli.Context, name string) string {
	words, _ := c.App.Metadata["words"].([]string)
	for _, word := range words {
		if word != name && strings.TrimLeft(flagName(word), "-") == name {
			return word
		}
	}
	return dashed(name)
}
