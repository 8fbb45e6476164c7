package main

import (
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/logicalcluster"
)

func clusterPurgeCommand() *cli.Command {
	return migration{
		name:  "purge",
		usage: "write a snapshot without a logical cluster, or without orphans",
		examples: `etcdshift cluster purge 2y3qvnqz5ga11oc4 root.db root-after.db
etcdshift cluster purge 2y3qvnqz5ga11oc4 cache.db cache-after.db --from-shard root --to-shard shard-1
etcdshift cluster purge --orphans shard-1.db shard-1-after.db`,
		text: `Deletes every key of the logical cluster NAME from a shard's snapshot, and no other: each key is taken apart by itself, whatever a
tenant named its objects. What a cache in the same file has of NAME from this shard goes too. With --from-shard S the file is that of
a cache server, and only its copies of NAME from shard S are changed. With --orphans the keys go that are of logical clusters which do not live on this
shard, as a live migration leaves them: those of NAME, or of all.

With --to-shard T the copies in a cache move to shard T, which the logical cluster was imported on: each gets the key of T, and its
annotation kcp.io/shard says T; all else in it stays. Without it the copies are deleted. The last copy of an APIExport is not deleted
unless that is allowed (exports-in-cache): other tenants would lose the labels of its permission claims.

NAME is the name that etcdshift cluster list prints, not a path.

The deletions are new revisions on top, so that clients that watch see them; what is deleted is in the file until etcd is compacted.
With --scrub the file is written anew without any record of these keys, whatever its revision.` + moveOrder,
		usageArgs: "NAME SHARD|CACHE OUT  or  --orphans [NAME] SHARD OUT",
		args:      purgeArgs,
		codes:     logicalcluster.PurgeCodes(),
		settles: map[string]string{
			"owner-points-here": "where it was imported on another shard, kcp there will correct the Workspace, and to allow it is right",
			"encrypted":         "--encryption-config FILE opens what tells whose the logical cluster is, and copies that move",
			"exports-in-cache":  "--to-shard T moves the copies to the shard that it was imported on",
			"unknown-shard":     "spell --to-shard as \"etcdshift cluster list\" prints the shard",
			"no-home":           "name the logical cluster whose orphans are to go",
		},
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "with-children", Usage: "purge all logical clusters too that live on this shard and belong to a Workspace in one that is purged"},
			&cli.BoolFlag{Name: "orphans", Usage: "purge the keys of logical clusters that do not live on this shard, and no others"},
			&cli.StringFlag{Name: "from-shard", Usage: "purge what a cache has of NAME as shard `S` wrote it, and no others"},
			&cli.StringFlag{Name: "to-shard", Usage: "move the copies in a cache to shard `T`, instead of deleting them"},
			&cli.StringFlag{Name: "as-shard", Usage: "take `S` for the name of this shard (default: what it calls itself)"},
			&cli.BoolFlag{Name: "scrub", Usage: "leave nothing of these keys in the file, no older value and no deletion"},
		},
		build: buildPurge,
	}.command()
}

// purgeArgs are the arguments of the form of the command that the flags tell.
func purgeArgs(c *cli.Context) []string {
	switch {
	case c.IsSet("from-shard"):
		return []string{"NAME", "CACHE", "OUT"}
	case c.Bool("orphans") && c.NArg() < 3:
		return []string{"SHARD", "OUT"}
	}
	return []string{"NAME", "SHARD", "OUT"}
}

func buildPurge(c *cli.Context, args []string) (transform.Transform, error) {
	for _, pair := range [][2]string{
		{"from-shard", "orphans"}, {"from-shard", "with-children"}, {"from-shard", "as-shard"}, {"orphans", "with-children"},
	} {
		if given(c, pair[0]) && given(c, pair[1]) {
			return nil, usagef(commandPath(c), "--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	switch to := c.String("to-shard"); {
	case to != "" && to == c.String("from-shard"):
		return nil, usagef(commandPath(c), "--to-shard and --from-shard are both %q", to)
	case to != "" && c.Bool("orphans") && len(args) == 0:
		return nil, usagef(commandPath(c), "--to-shard takes the NAME of the logical cluster that lives there")
	}
	o := logicalcluster.PurgeOptions{
		Orphans: c.Bool("orphans"), WithChildren: c.Bool("with-children"), Scrub: c.Bool("scrub"),
		FromShard: c.String("from-shard"), ToShard: c.String("to-shard"), AsShard: c.String("as-shard"), Prefixes: readPrefixes(c),
	}
	if len(args) > 0 {
		o.Name = args[0]
	}
	return logicalcluster.NewPurge(o), nil
}

// given tells whether a flag was given, other than as false.
func given(c *cli.Context, name string) bool { return c.IsSet(name) && c.String(name) != "false" }
