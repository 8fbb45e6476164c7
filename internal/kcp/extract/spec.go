package extract

import (
	"context"

	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "kcp extract".
var Spec = transform.Spec{
	Group: transform.GroupKCP,
	Name:  "extract",
	Usage: "write one logical cluster into an archive",
	Examples: `etcdshift kcp extract 2y3qvnqz5ga11oc4 root.db consumer.archive
etcdshift kcp extract 2y3qvnqz5ga11oc4 root.db consumer.archive \
    --with-children
etcdshift get consumer.archive configmaps -A --cluster 2y3qvnqz5ga11oc4`,
	Text: `Writes every live record of the logical cluster NAME, and of no other, into a new file: keys, values, revisions and leases as on the
shard, byte for byte, encrypted or not, and the bound definitions that its APIBindings name. A manifest lists the content of the
archive and the things that it relies on, with digests that docs/formats.md explains.

NAME is the name that etcdshift kcp list prints, not a path.

The archive is an etcd snapshot, which status, get, keys, sizes, verify and other commands read. It is not meant to be restored as a
shard: it has only the logical cluster. kcp import brings it into another shard; the shard stays as it is until kcp purge
deletes the logical cluster there.`,
	ArgsText:  "NAME SHARD ARCHIVE",
	Arguments: func(*transform.Args) []string { return []string{"NAME", "SHARD", "ARCHIVE"} },
	Builds:    true,
	Codes:     codes(),
	Settles:   map[string]string{codeEncrypted.Name: "decrypt them with --encryption-config FILE"},
	Sections:  []transform.Section{&survey.Receipts{}},
	Appendix:  &Manifest{},
	Flags: []transform.Flag{
		{Name: "with-children", Default: false,
			Usage: "also extract the logical clusters on this shard that belong to a Workspace in an extracted one"},
		{Name: "as-shard", Usage: "take `S` for the name of this shard (default: what it calls itself)"},
	},
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		return &Extract{
			Name: a.Arguments[0], Archive: a.Out, AsShard: a.String("as-shard"), WithChildren: a.Bool("with-children"), Prefixes: a.Prefixes,
		}, nil
	},
}
