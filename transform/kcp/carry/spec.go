package carry

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// Spec is the command "cluster import".
var Spec = transform.Spec{
	Group: transform.GroupCluster,
	Name:  "import",
	Usage: "write a snapshot with the logical clusters of an archive, or with orphans back where they belong",
	Examples: `etcdshift cluster import consumer.archive shard-1.db shard-1-after.db
etcdshift cluster import --fix-owner --cache cache.db \
    consumer.archive root.db root-after.db
etcdshift cluster import --orphans-from shard-1.db root.db root-after.db`,
	Text: `Brings every record of an archive of "cluster extract" into a shard's snapshot: below the storage prefix of the shard, byte for byte,
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
	codeEncrypted = transform.ErrorCode("encrypted", "a value cannot be decrypted",
		"The reason names the provider and key that encrypted it. Not allowable for a LogicalCluster or an APIBinding, which show what the cluster "+
			"needs; under another storage prefix, where nobody could decrypt it; and where the value has to change (`--fix-owner`, the mark of a live "+
			"migration).",
		"Give the origin's configuration: `--archive-encryption-config FILE`.",
		"The value is written as it is in the archive, under the same key. The API servers of the shard need the key that encrypted it.")
	codeClusterExists = transform.ErrorCode("cluster-exists", "the shard has keys of the logical cluster already",
		"It lives there, or left orphans. They may lie below another storage prefix of the same file, which the reason names: another shard's "+
			"storage. `etcdshift cluster list` shows which.",
		"Purge orphans first: `etcdshift cluster purge --orphans NAME SHARD OUT`.", "")
	codeUnknownIdentity = survey.ErrorCode("unknown-identity", "nothing on the shard knows the identity of objects",
		"No APIExport and no APIBinding of this shard, nor of its cache, has the identity: the export lives on a shard that this one does not "+
			"know, or in another installation of kcp. The objects would not be served. Between installations identities differ: such a cluster cannot be "+
			"moved as it is.",
		"Give the cache, if it knows the export: `--cache FILE`.",
		"The objects are written, unserved until a binding with that identity exists.")
	codeDefinitionDiffers = survey.ErrorCode("definition-differs", "shard and archive define a type differently",
		"It has the same UID and another spec, or the two cannot be compared: one is damaged or cannot be decrypted. Or no APIBinding of the "+
			"archive names the definition: etcdshift makes no such archive.",
		"Compare both files with `etcdshift get`; bring the shard to the state of the origin.",
		"The shard's definition stays; its storedVersions gains the objects' versions. A definition that no APIBinding names stays out.")
	codeOwnerElsewhere = transform.ErrorCode("owner-elsewhere", "`--fix-owner` cannot change the Workspace",
		"It is neither in the same file nor in the archive; or it has another UID or leads to another logical cluster by now; or the "+
			"LogicalCluster does not name its owner.",
		"Leave it out: kcp of the new shard corrects the Workspace through the front-proxy.", "")
	codeOwnerNotHealed = transform.WarningCode("owner-not-healed", "kcp will not correct the Workspace",
		"The LogicalCluster names this shard already, so its kcp will not update the Workspace, which may name another.",
		"Give `--fix-owner` if the Workspace is in the same file; else change its annotation `core.kcp.io/shard`.")
	codeRegionUnknown = transform.WarningCode("region-unknown", "the region of the shard is not known",
		"`--fix-owner` found no Shard object with the region of this shard; the cache server's snapshot may have it. The Workspace's label "+
			"`region` stays as it is.",
		"Give `--cache FILE`; or change the label, if something selects by it.")
	codeKeyExists = &finding.Code{Name: "key-exists", Level: finding.Error, Allowed: finding.Skipped, Title: "the key of an orphan is taken",
		Warns:   "for ConfigMaps `kube-root-ca.crt`, and `ca.crt` in Secrets with a service account token, which kcp writes itself",
		Meaning: "A record that a live migration took was written again since, with another value, and cannot be put back.",
		Remedy:  "Compare the two; decide which is to live.",
		Allow:   "The living one stays, the orphan is left out. Exit status 4.",
	}
	codeNamespaceMissing = survey.ErrorCode("namespace-missing", "the namespace of an orphan is gone",
		"The logical cluster no longer has the namespace: nothing would ever delete the record.",
		"Create the namespace, take a new snapshot.",
		"The record is written all the same.")
	codeLivesNowhere = transform.WarningCode("lives-nowhere", "the logical cluster of orphans does not live here",
		"The other shard has orphans of logical clusters that do not live on this one: they stay where they are.",
		"Put them back on their cluster's shard, or purge them: `etcdshift cluster purge --orphans NAME SHARD OUT`.")
)
