package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

const flagColumn = 29 // first column of a flag's description

// runApp runs arguments. The help of all commands is written only for --help: it takes 8 ms.
func runApp(ctx context.Context, app *cli.App, args []string) error {
	if slices.ContainsFunc(args, asksHelp) {
		app.CustomAppHelpTemplate = helpOf(programName, program(app.Commands))
		setHelp(programName, app.Commands)
	}
	return app.RunContext(ctx, args)
}

// asksHelp reports whether a word looks like the help flag, even if the word is a value.
func asksHelp(word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return slices.Contains(cli.HelpFlag.Names(), name)
}

// setHelp sets the help of the commands below a path.
func setHelp(path string, commands []*cli.Command) {
	for _, c := range commands {
		below := path + " " + c.Name
		c.CustomHelpTemplate = helpOf(below, c)
		setHelp(below, c.Subcommands)
	}
}

// helpOf returns the help as a template.
func helpOf(path string, c *cli.Command) string {
	return strings.ReplaceAll(helpText(path, c), "{{", `{{"{{"}}`)
}

// helpText returns the help of a command or a group: examples (Description), paragraphs
// (UsageText), and commands or flags.
func helpText(path string, c *cli.Command) string {
	text := "Example:\n   " + strings.ReplaceAll(c.Description, "\n", "\n   ") + "\n\n" + wrapped(path+": "+c.Usage)
	if c.UsageText != "" {
		text += "\n" + wrapped(c.UsageText)
	}
	if len(c.Subcommands) == 0 {
		text += "\nUsage:\n" + strings.Join(usageLines(path, c), "")
	} else {
		text += "\nCommands:\n" + describeCommands(c.Subcommands)
	}
	return text + describeFlags(c.Flags) + runbookText(path)
}

// usageLines returns the ways to call a command: "IN OUT  or  --all OUT" are two.
func usageLines(path string, c *cli.Command) []string {
	return stream.Mapped(strings.Split(c.ArgsUsage, "  or  "), func(arguments string) string {
		return strings.TrimRight("   "+path+" [flags] "+arguments, " ") + "\n"
	})
}

// wrapped wraps the lines of paragraphs. Lines that begin with a space stay.
func wrapped(text string) string {
	paragraphs := stream.Mapped(strings.Split(text, "\n\n"), func(p string) string {
		if strings.HasPrefix(p, " ") {
			return p + "\n"
		}
		return entry(0, "", p)
	})
	return strings.Join(paragraphs, "\n")
}

// describeCommands lists commands that are not hidden.
func describeCommands(commands []*cli.Command) (text string) {
	column := 0
	shown := slices.DeleteFunc(slices.Clone(commands), func(c *cli.Command) bool { return c.Hidden })
	for _, c := range shown {
		column = max(column, len("   "+c.Name+"  "))
	}
	for _, c := range shown {
		text += entry(column, c.Name, c.Usage)
	}
	return text
}

// helpCommand is "help COMMAND" and "help PAGE". The library's own help takes only one word.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name:        "help",
		Aliases:     []string{"h"},
		Usage:       "show the help of a command, or a page of the documentation",
		ArgsUsage:   "[COMMAND...|PAGE.md]",
		Description: "etcdshift help get\netcdshift help migrate calico-v3\netcdshift help restore.md",
		UsageText:   `"etcdshift help pages" lists the pages.`,
		Action: func(c *cli.Context) error {
			words := append([]string{c.App.Name}, c.Args().Slice()...)
			command, path, at := commandOf(c.App, words)
			if at == 1 && len(words) == 2 {
				if said, err := printPages(c.App.Writer, words[1]); said {
					return err
				}
			}
			if at < len(words) && len(command.Subcommands) == 0 {
				return usagef("help", "%q has no command %q", path, words[at])
			}
			err := runApp(c.Context, c.App, append(words, "--help"))
			if f := (*failure)(nil); at == 1 && errors.As(err, &f) {
				f.hint += `; "etcdshift help pages" lists the pages`
			}
			return err
		},
	}
}

// describeFlags lists flags by category, in order of declaration, then flags without a category,
// and --help.
func describeFlags(flags []cli.Flag) string {
	var order []string
	groups := map[string]string{}
	for _, f := range flags {
		category := ""
		if c, ok := f.(cli.CategorizableFlag); ok {
			category = c.GetCategory()
		}
		if category != "" && groups[category] == "" {
			order = append(order, category)
		}
		if described, ok := f.(cli.DocGenerationFlag); ok && !isHidden(f) {
			groups[category] += describeFlag(described)
		}
	}
	text := ""
	for _, category := range order {
		text += "\n" + category + ":\n" + groups[category]
	}
	title := "Flags"
	if order != nil {
		title = "Other flags"
	}
	return text + "\n" + title + ":\n" + groups[""] + entry(flagColumn, "--help, -h", "show this")
}

func describeFlag(f cli.DocGenerationFlag) string {
	before, rest, _ := strings.Cut(f.GetUsage(), "`")
	placeholder, after, quoted := strings.Cut(rest, "`")
	usage := before + placeholder + after
	if !quoted {
		usage, placeholder = f.GetUsage(), "VALUE"
	}
	if quoted {
		usage = strings.TrimPrefix(usage, placeholder+": ") // already at the left
	}
	left := strings.Join(stream.Mapped(f.Names(), func(name string) string {
		if len(name) == 1 {
			return "-" + name
		}
		return "--" + name
	}), ", ")
	if f.TakesValue() {
		left += " " + placeholder
	}
	if value := f.GetDefaultText(); value != "" && value != "false" && value != "0" { // 0 means: not given
		usage += " (default: " + strings.Trim(value, `"`) + ")"
	}
	return entry(flagColumn, left, usage)
}

// entry wraps a text after a word, from a column on. A long word gets its own line.
func entry(column int, left, text string) string {
	out, line := "", ""
	if left != "" {
		line = "   " + left
	}
	if len(line) > max(column-2, 0) {
		out, line = line+"\n", ""
	}
	return out + render.Wrap(fmt.Sprintf("%-*s", column, line), text)
}

func manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Hidden:      true,
		Description: "etcdshift man > etcdshift.1",
		Action: taking(func(c *cli.Context, _ []string) error {
			_, err := fmt.Fprint(c.App.Writer, manual(c.App.Commands))
			return err
		}),
	}
}

// manual returns the manual page: the help of the program, then of each command.
func manual(commands []*cli.Command) string {
	all := program(commands)
	page := ".TH ETCDSHIFT 1\n.SH NAME\n" + programName + " \\- " + all.Usage + "\n"
	add := func(path string, c *cli.Command) {
		text := strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^",
			`\(ha`).Replace(helpText(path, c))
		text = strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")
		page += ".SH " + strings.ToUpper(path) + "\n.nf" + text + ".fi\n"
	}
	add(programName, all)
	var below func(path string, commands []*cli.Command)
	below = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			if !c.Hidden {
				add(path+" "+c.Name, c)
				below(path+" "+c.Name, c.Subcommands)
			}
		}
	}
	below(programName, commands)
	return page
}
