package purge

import (
	"context"

	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "kcp purge".
var Spec = transform.Spec{
	Group: transform.GroupKCP,
	Name:  "purge",
	Usage: "write a snapshot without a logical cluster, or without orphans",
	Examples: `etcdshift kcp purge 2y3qvnqz5ga11oc4 root.db root-after.db
etcdshift kcp purge 2y3qvnqz5ga11oc4 cache.db cache-after.db \
    --from-shard root --to-shard shard-1
etcdshift kcp purge --orphans shard-1.db shard-1-after.db`,
	Text: `Deletes every key of the logical cluster NAME from a shard's snapshot, and no other: each key is parsed by itself, whatever tenants
name their objects. Copies of NAME from this shard in a cache of the same file go too. With --from-shard S the file is that of a cache
server, and only its copies of NAME from shard S are changed. --orphans deletes the keys of logical clusters that do not live on this
shard, as a live migration leaves them: those of NAME, or of all.

With --to-shard T the copies in a cache move to shard T, on which the logical cluster was imported: each gets the key of T, and its
annotation kcp.io/shard names T; all else stays. Without it the copies are deleted. Deleting the last copy of an APIExport has to be
allowed (exports-in-cache): other tenants would lose the labels of its permission claims.

NAME is the name that etcdshift kcp list prints, not a path.

The deletions are new revisions on top, so that watching clients see them; the old records stay in the file until etcd is compacted.
--scrub writes the file anew without any record of these keys, of any revision.`,
	ArgsText:  "NAME SHARD|CACHE OUT  or  --orphans [NAME] SHARD OUT",
	Arguments: purgeArgs,
	Alone:     true,
	Codes:     codes(),
	Settles: map[string]string{
		"owner-points-here": "where it was imported on another shard, kcp there will correct the Workspace, and to allow it is right",
		"encrypted":         "--encryption-config FILE decrypts LogicalClusters, Workspaces, and copies that move",
		"exports-in-cache":  "--to-shard T moves the copies to the shard that it was imported on",
		"unknown-shard":     "spell --to-shard as \"etcdshift kcp list\" prints the shard",
		"no-home":           "name the logical cluster whose orphans are to go",
	},
	Sections: []transform.Section{&survey.Receipts{}},
	Flags: []transform.Flag{
		{Name: "with-children", Default: false,
			Usage: "also purge the logical clusters on this shard that belong to a Workspace in a purged one"},
		{Name: "orphans", Default: false, Usage: "purge the keys of logical clusters that do not live on this shard, and no others"},
		{Name: "from-shard", Usage: "purge what a cache has of NAME as shard `S` wrote it, and no others"},
		{Name: "to-shard", Usage: "move the copies in a cache to shard `T`, instead of deleting them"},
		{Name: "as-shard", Usage: "take `S` for the name of this shard (default: what it calls itself)"},
		{Name: "scrub", Default: false, Usage: "leave nothing of these keys in the file, no older value and no deletion"},
	},
	New: newPurge,
}

func purgeArgs(a *transform.Args) []string {
	switch {
	case a.IsSet("from-shard"):
		return []string{"NAME", "CACHE", "OUT"}
	case a.Bool("orphans") && len(a.Arguments) < 3:
		return []string{"SHARD", "OUT"}
	}
	return []string{"NAME", "SHARD", "OUT"}
}

func newPurge(_ context.Context, a *transform.Args) (transform.Transform, error) {
	o := &Purge{
		Orphans: a.Bool("orphans"), WithChildren: a.Bool("with-children"), Scrub: a.Bool("scrub"),
		FromShard: a.String("from-shard"), ToShard: a.String("to-shard"), AsShard: a.String("as-shard"), Prefixes: a.Prefixes,
	}
	if len(a.Arguments) > 0 {
		o.Name = a.Arguments[0]
	}
	switch cache := o.FromShard != ""; {
	case cache && o.Orphans:
		return nil, transform.Usagef("--from-shard and --orphans exclude each other")
	case cache && o.WithChildren:
		return nil, transform.Usagef("--from-shard and --with-children exclude each other")
	case cache && o.AsShard != "":
		return nil, transform.Usagef("--from-shard and --as-shard exclude each other")
	case o.Orphans && o.WithChildren:
		return nil, transform.Usagef("--orphans and --with-children exclude each other")
	case o.ToShard != "" && o.ToShard == o.FromShard:
		return nil, transform.Usagef("--to-shard and --from-shard are both %q", o.ToShard)
	case o.ToShard != "" && o.Orphans && o.Name == "":
		return nil, transform.Usagef("--to-shard takes the NAME of the logical cluster that lives there")
	}
	return o, nil
}
