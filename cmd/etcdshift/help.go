package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Help shows examples (Description), paragraphs (UsageText), flags (describeFlags).
const (
	appHelp = `Example:
{{indent 3 .Description}}

{{.Name}}: {{.Usage}}

Commands:{{template "visibleCommandCategoryTemplate" .}}

Flags stand anywhere after the command's name. "etcdshift COMMAND --help" shows an example of each.

Global flags:{{template "visibleFlagTemplate" .}}
`
	groupHelp = `Example:
{{indent 3 .Description}}

{{.HelpName}}: {{.Usage}}

Commands:{{range .VisibleCommands}}
   {{join .Names ", "}}{{"\t"}}{{.Usage}}{{end}}
`
	commandHelp = `Example:
{{indent 3 .Description}}

{{.HelpName}}: {{.Usage}}
{{if .UsageText}}
{{.UsageText}}
{{end}}
Usage:
   {{.HelpName}} [flags]{{with .ArgsUsage}} {{.}}{{end}}
`
)

// helpCommand is "help COMMAND". The library's own takes one word only.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name:        "help",
		Aliases:     []string{"h"},
		Usage:       "show the help of a command",
		ArgsUsage:   "[COMMAND...]",
		Description: "etcdshift help get\netcdshift help migrate calico-v3",
		Action: func(c *cli.Context) error {
			return c.App.RunContext(c.Context, slices.Concat([]string{c.App.Name}, c.Args().Slice(), []string{"--help"}))
		},
	}
}

const (
	flagColumn = 36  // where what a flag does begins
	helpWidth  = 110 // of lines
)

// describeFlags lists flags under their categories, in the order of declaration, then those without
// one, and --help. The result is safe in a template.
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
		if described, ok := f.(cli.DocGenerationFlag); ok {
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

// describeFlag returns the help of one flag.
func describeFlag(f cli.DocGenerationFlag) string {
	before, rest, _ := strings.Cut(f.GetUsage(), "`")
	placeholder, after, quoted := strings.Cut(rest, "`")
	usage := before + placeholder + after
	if !quoted {
		usage, placeholder = f.GetUsage(), "VALUE"
	}
	var names []string
	for _, name := range f.Names() {
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		names = append(names, dashes+name)
	}
	left := strings.Join(names, ", ")
	if f.TakesValue() {
		left += " " + placeholder
	}
	if value := f.GetDefaultText(); value != "" && value != "false" && value != "0" { // 0 is a number that is not given
		usage += " (default: " + strings.Trim(value, `"`) + ")"
	}
	return entry(flagColumn, left, usage)
}

// entry wraps a text behind a word, from a column on. A long word has a line of its own.
func entry(column int, left, text string) string {
	out, line := "", "   "+left
	if len(line) > column-2 {
		out, line = line+"\n", ""
	}
	line = fmt.Sprintf("%-*s", column, line)
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && len(line)+1+len(word) > helpWidth:
			out += line + "\n"
			line = strings.Repeat(" ", column) + word
		case i > 0:
			line += " " + word
		default:
			line += word
		}
	}
	return out + line + "\n"
}
