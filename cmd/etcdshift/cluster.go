package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// clusterCommand is the group of what is done with kcp's logical clusters. Its examples are the first of each command.
func clusterCommand(sub ...*cli.Command) *cli.Command {
	var examples []string
	for _, c := range sub {
		first, _, _ := strings.Cut(c.Description, "\n")
		examples = append(examples, first)
	}
	return &cli.Command{
		Name:        "cluster",
		Usage:       "logical clusters of kcp: list them, move them, mend what a move broke",
		Description: strings.Join(examples, "\n"),
		Subcommands: sub,
	}
}
