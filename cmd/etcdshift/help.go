package main

// The help of each level shows what to type before it explains anything. Description holds the examples, UsageText what is
// worth a paragraph.
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

Flags:{{template "visibleFlagTemplate" .}}
`
)
