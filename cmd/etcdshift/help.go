package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The help of each level shows what to type before it explains anything. Description holds the examples, UsageText what is
// worth a paragraph. What prints the flags is describeFlags.
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

// helpCommand is "help COMMAND", which is COMMAND --help. The library's own knows the first word alone.
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

// describeFlags lists flags under their categories, in the order they are declared; those without one come last, and --help
// at the end of them. The text holds nothing that a template would act on.
func describeFlags(flags []cli.Flag) string {
	var order []string
	groups := map[string][]string{}
	for _, f := range flags {
		described, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		name := ""
		if c, ok := f.(cli.CategorizableFlag); ok {
			name = c.GetCategory()
		}
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		groups[name] = append(groups[name], describeFlag(described))
	}
	slices.SortStableFunc(order, func(a, b string) int { return strings.Compare(last(a), last(b)) })
	groups[""] = append(groups[""], entry("--help, -h", "show this"))
	if !slices.Contains(order, "") {
		order = append(order, "")
	}
	var out strings.Builder
	for _, name := range order {
		if name == "" {
			name = "Flags"
			if len(order) > 1 {
				name = "Other flags"
			}
			fmt.Fprintf(&out, "\n%s:\n%s", name, strings.Join(groups[""], ""))
			continue
		}
		fmt.Fprintf(&out, "\n%s:\n%s", name, strings.Join(groups[name], ""))
	}
	return out.String()
}

// last sorts what has no category behind what has one, and nothing else.
func last(category string) string {
	if category == "" {
		return "1"
	}
	return "0"
}

// describeFlag is the entry of one flag: its names, what it takes, what it does and the default.
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
	return entry(left, usage)
}

// entry is a flag and its text, wrapped; a long flag has a line of its own.
func entry(left, text string) string {
	var out strings.Builder
	column := 3 + len(left)
	out.WriteString("   " + left)
	if column > flagColumn-2 {
		out.WriteString("\n")
		column = 0
	}
	begin := func() {
		out.WriteString(strings.Repeat(" ", flagColumn-column))
		column = flagColumn
	}
	begin()
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > helpWidth:
			out.WriteString("\n")
			column = 0
			begin()
		default:
			out.WriteString(" ")
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String() + "\n"
}
