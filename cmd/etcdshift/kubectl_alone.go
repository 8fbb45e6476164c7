package main

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/kubectl"
)

// alone is a command of kubectl that is a command of its own, with the same flags: "events
// SNAPSHOT" is "kubectl SNAPSHOT events".
type alone struct {
	name  string
	flags []*pflag.Flag
}

func eventsCommand() *cli.Command {
	return alone{"events", kubectl.Flags("events")}.command(
		"list events, as kubectl does", `etcdshift events before.db -n shop
etcdshift events before.db -n shop --for pod/web-0
etcdshift events before.db -A --types Warning`)
}

func apiResourcesCommand() *cli.Command {
	return alone{"api-resources", kubectl.Flags("api-resources")}.command(
		"list the types that a server on the snapshot has", `etcdshift api-resources before.db
etcdshift api-resources before.db --api-group apps -o wide`)
}

func (a alone) command(usage, examples string) *cli.Command {
	return &cli.Command{
		Name:        a.name,
		Usage:       usage,
		ArgsUsage:   "SNAPSHOT",
		Description: examples,
		UsageText: `Prints what "etcdshift kubectl SNAPSHOT ` + a.name + `" prints, and takes the same flags. Ages count from now.

Exit status: 0 done, 1 kubectl failed, 2 usage, 130 interrupted.`,
		Flags: readFlags("decrypt values with", append(mapped(a.flags, fromKubectl), atFlag("read"))...),
		Action: taking(func(c *cli.Context, args []string) error {
			return runKubectl(c, append(args, a.words(c)...))
		}),
	}
}

// fromKubectl is a flag of kubectl as one of this program.
func fromKubectl(f *pflag.Flag) cli.Flag {
	var aliases []string
	if f.Shorthand != "" {
		aliases = []string{f.Shorthand}
	}
	usage := strings.TrimSuffix(strings.ToLower(f.Usage[:1])+f.Usage[1:], ".")
	switch f.Value.Type() {
	case "bool":
		return &cli.BoolFlag{Name: f.Name, Aliases: aliases, Usage: usage}
	case "stringSlice":
		return &cli.StringSliceFlag{Name: f.Name, Aliases: aliases, Usage: usage}
	}
	return &cli.StringFlag{Name: f.Name, Aliases: aliases, Usage: usage}
}

// words are the command line for kubectl: flags that were not given keep its defaults.
func (a alone) words(c *cli.Context) []string {
	out := []string{a.name}
	for _, f := range a.flags {
		if !c.IsSet(f.Name) {
			continue
		}
		values := []string{c.String(f.Name)}
		switch f.Value.Type() {
		case "bool":
			values = []string{strconv.FormatBool(c.Bool(f.Name))}
		case "stringSlice":
			values = c.StringSlice(f.Name)
		}
		for _, value := range values {
			out = append(out, "--"+f.Name+"="+value)
		}
	}
	return out
}
