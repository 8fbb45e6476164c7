package main

import (
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/transform"
)

// clusterCommand is the group for logical clusters of kcp, with the first example of each command.
func clusterCommand(specs []transform.Spec) *cli.Command {
	sub := append([]*cli.Command{clusterListCommand()}, specCommands(specs, transform.GroupCluster)...)
	sub = append(sub, clusterVerifyCommand())
	var examples []string
	for _, c := range sub {
		c.Action = withShardNames(c.Action)
		first, _, _ := strings.Cut(c.Description, "\n")
		examples = append(examples, first)
	}
	return &cli.Command{
		Name:        "cluster",
		Usage:       "logical clusters of kcp: list, move and repair them",
		Description: strings.Join(examples, "\n"),
		Subcommands: sub,
	}
}

// moveOrder is in the help of each command of a move.
const moveOrder = `

In a move, stop all front-proxies first, then kcp of both shards and the cache server; restore; start the etcds, the cache server
and the shards, and start the front-proxies last. A front-proxy that runs on sends requests to the old shard for a minute or more.`

// withShardNames checks the flags that name shards before an action.
func withShardNames(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		for _, flag := range []string{"as-shard", "from-shard", "to-shard"} {
			if name := c.String(flag); name != "" && !namesShard.MatchString(name) {
				return usagef(commandPath(c), "--%s is %q; the name of a shard is made of 1 to 61 of a-z, 0-9, - and :", flag, name)
			}
		}
		return action(c)
	}
}

// namesShard matches shard names that kcp's cache server accepts (pkg/cache/server/handler.go).
var namesShard = regexp.MustCompile(`^[a-z0-9:-]{1,61}$`)
