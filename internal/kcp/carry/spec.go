package carry

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "kcp import".
var Spec = transform.Spec{
	Group: transform.GroupKCP,
	Name:  "import",
	Usage: "write a snapshot with the logical clusters of an archive, or with orphans back where they belong",
	Examples: `etcdshift kcp import consumer.archive shard-1.db shard-1-after.db
etcdshift kcp import --fix-owner --cache cache.db \
    consumer.archive root.db root-after.db
etcdshift kcp import --orphans-from shard-1.db root.db root-after.db`,
	Text: `Brings every record of an archive of "kcp extract" into a shard's snapshot: below the storage prefix of the shard, byte for byte,
with leases of the same TTL, each at a new revision on top. Encrypted values are decrypted, and encrypted as the shard's API servers
would. Definitions of bound types come along where the shard lacks them. The mark of a live migration is removed from LogicalClusters.

LogicalCluster and Workspace still name the old shard: the kcp of the new one corrects both when it runs. --fix-owner changes both at
once, and the label region, which kcp never corrects; it needs the file with the Workspace.

With --orphans-from SHARD1 there is no archive: keys of logical clusters that live on SHARD, and that a live migration left on
SHARD1, are put back where SHARD lacks them. Existing keys stay.`,
	ArgsText:  "ARCHIVE SHARD OUT  or  --orphans-from SHARD1 SHARD OUT",
	Arguments: importArgs,
	Alone:     true,
	Codes:     codes(),
	Settles: map[string]string{
		"encrypted":          "decrypt them with --archive-encryption-config FILE, the configuration of the origin",
		"owner-elsewhere":    "leave --fix-owner out, and kcp tells the Workspace when it runs",
		"unknown-identity":   "where a cache server knows it, give its snapshot with --cache FILE",
		"would-be-plaintext": "give --encryption-config FILE, the configuration of the shard that they go to",
	},
	Sections: []transform.Section{&survey.Receipts{}},
	Flags: []transform.Flag{
		{Name: "orphans-from", Usage: "put back the orphans that lie in the snapshot `SHARD1` and whose logical clusters live on SHARD"},
		{Name: "fix-owner", Default: false, Usage: "have LogicalCluster and Workspace name the new shard at once, and its region"},
		{Name: "as-shard", Usage: "take `S` for the name of the new shard (default: what it calls itself)"},
		{Name: "cache", Usage: "take identities and regions from the cache server's snapshot `FILE` too"},
		{Name: "archive-encryption-config",
			Usage: "decrypt values of the archive, or of SHARD1, with the EncryptionConfiguration in `FILE` (default: --encryption-config)"},
	},
	New: newImport,
}

func importArgs(a *transform.Args) []string {
	if a.IsSet("orphans-from") {
		return []string{"SHARD", "OUT"}
	}
	return []string{"ARCHIVE", "SHARD", "OUT"}
}

func newImport(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	orphans := a.IsSet("orphans-from")
	const noMove = " is for an archive; with --orphans-from no logical cluster moves"
	switch {
	case orphans && a.Bool("fix-owner"):
		return nil, transform.Usagef("--fix-owner" + noMove)
	case orphans && a.IsSet("as-shard"):
		return nil, transform.Usagef("--as-shard" + noMove)
	}
	cache, err := readCache(ctx, a)
	if err != nil {
		return nil, err
	}
	if orphans {
		f, err := a.Open(ctx, a.String("orphans-from"), "archive-encryption-config")
		if err != nil {
			return nil, err
		}
		return &PutBack{From: f.Snapshot(), Decrypter: f.Decrypter, Prefixes: a.Prefixes, Cache: cache}, nil
	}
	f, err := a.Open(ctx, a.Arguments[0], "archive-encryption-config")
	if err != nil {
		return nil, err
	}
	var m *archive.Manifest
	err = f.Read(ctx, func() error {
		m, err = archive.OpenChecked(ctx, f.Snapshot())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Import{
		Archive: f.Snapshot(), Manifest: m, Decrypter: f.Decrypter, AsShard: a.String("as-shard"), FixOwner: a.Bool("fix-owner"),
		Prefixes: a.Prefixes, Cache: cache,
	}, nil
}

func readCache(ctx context.Context, a *transform.Args) (f *clusters.File, err error) {
	if !a.IsSet("cache") {
		return nil, nil
	}
	path := a.String("cache")
	o, err := a.Open(ctx, path, "encryption-config")
	if err != nil {
		return nil, err
	}
	err = o.Read(ctx, func() error {
		if f, err = clusters.Read(ctx, o.Reader); err == nil && len(f.Caches) == 0 {
			_, err = f.Cache(nil) // says what it is instead
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func codes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, survey.CodeUndecodable, survey.CodeWouldBePlaintext, codeClusterExists, codeUnknownIdentity,
		codeDefinitionDiffers, codeOwnerElsewhere, codeOwnerNotHealed, codeRegionUnknown, codeKeyExists,
		codeNamespaceMissing, codeLivesNowhere, clusters.CodeKeyMismatch, survey.CodeSystemCluster, survey.CodeTerminating,
		survey.CodeMissingDefinition, survey.CodeUnlistedVersion, survey.CodeUnserved,
	}
}

// codeOf is a code of another package as an import reports it.
func codeOf(c *finding.Code) *finding.Code { return finding.Named(codes(), c.Name) }

// The codes that only an import reports, and what codes of other commands mean here.
var (
	codeEncrypted         = finding.Lookup("encrypted")
	codeClusterExists     = finding.Lookup("cluster-exists")
	codeUnknownIdentity   = finding.Lookup("unknown-identity")
	codeDefinitionDiffers = finding.Lookup("definition-differs")
	codeOwnerElsewhere    = finding.Lookup("owner-elsewhere")
	codeOwnerNotHealed    = finding.Lookup("owner-not-healed")
	codeRegionUnknown     = finding.Lookup("region-unknown")
	codeKeyExists         = finding.Lookup("key-exists")
	codeNamespaceMissing  = finding.Lookup("namespace-missing")
	codeLivesNowhere      = finding.Lookup("lives-nowhere")
)
