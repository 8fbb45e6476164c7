package move

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// ImportSpec is the command "kcp import".
var ImportSpec = transform.Spec{
	Group: transform.GroupKCP,
	Name:  "import",
	Usage: "write a snapshot with the logical clusters of an archive, or with orphans put back",
	Examples: `etcdshift kcp import consumer.archive shard-1.db shard-1-after.db
etcdshift kcp import --fix-owner --cache cache.db \
    consumer.archive root.db root-after.db
etcdshift kcp import --orphans-from shard-1.db root.db root-after.db`,
	Text: `Adds every record of an archive of "kcp extract" to a shard's snapshot: below the storage prefix of the
shard, byte for byte, with leases of the same TTL, each at a new revision. Encrypted values are decrypted, and
encrypted again like the shard's API servers do. Definitions of bound types are added if the shard lacks them. The
mark of a live migration is removed from LogicalClusters.

LogicalCluster and Workspace still name the old shard: kcp on the new shard corrects both when it runs. --fix-owner
corrects both at once, and also the label region, which kcp never corrects; it requires a SHARD with the Workspace.

With --orphans-from SHARD1 there is no archive: it copies keys of logical clusters that live on SHARD from SHARD1,
where a live migration left them, if SHARD lacks them. Existing keys stay.`,
	ArgsText:  "ARCHIVE SHARD OUT  or  --orphans-from SHARD1 SHARD OUT",
	Arguments: importArgs,
	Alone:     true,
	Codes:     importCodes(),
	Settles: map[string]string{
		"encrypted":          "decrypt them with --archive-encryption-config FILE, the configuration of the origin",
		"owner-elsewhere":    "omit --fix-owner: kcp corrects the Workspace when it runs",
		"unknown-identity":   "if a cache server knows the identity, give its snapshot with --cache FILE",
		"would-be-plaintext": "give --encryption-config FILE, the configuration of the destination",
	},
	Sections: []transform.Section{&Receipts{}},
	Flags: []transform.Flag{
		{Name: "orphans-from", Usage: "put back orphans from the snapshot `SHARD1` if their logical clusters " +
			"live on SHARD"},
		{Name: "fix-owner", Default: false, Usage: "write the new shard and its region into LogicalCluster and " +
			"Workspace"},
		{Name: "as-shard", Usage: "use `S` as the name of the new shard (default: the name in the snapshot)"},
		{Name: "cache", Usage: "also read identities and regions from the cache server's snapshot `FILE`"},
		{Name: "archive-encryption-config",
			Usage: "decrypt values of the archive, or of SHARD1, with the EncryptionConfiguration in `FILE` " +
				"(default: --encryption-config)"},
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
		Archive: f.Snapshot(), Manifest: m, Decrypter: f.Decrypter, AsShard: a.String("as-shard"),
		FixOwner: a.Bool("fix-owner"),
		Prefixes: a.Prefixes, Cache: cache,
	}, nil
}

func readCache(ctx context.Context, a *transform.Args) (f *kcp.File, err error) {
	if !a.IsSet("cache") {
		return nil, nil
	}
	path := a.String("cache")
	o, err := a.Open(ctx, path, "encryption-config")
	if err != nil {
		return nil, err
	}
	err = o.Read(ctx, func() error {
		if f, err = kcp.Read(ctx, o.Reader); err == nil && len(f.Caches) == 0 {
			_, err = f.Cache(nil) // the error describes the contents of the file
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func importCodes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, codeUndecodable, codeWouldBePlaintext, codeClusterExists, codeUnknownIdentity,
		codeDefinitionDiffers, codeOwnerElsewhere, codeOwnerNotHealed, codeRegionUnknown, codeKeyExists,
		codeNamespaceMissing, codeLivesNowhere, kcp.CodeKeyMismatch, codeSystemCluster, codeTerminating,
		codeMissingDefinition, codeUnlistedVersion, codeUnserved,
	}
}

// importCodeOf returns an import's form of a code of another package.
func importCodeOf(c *finding.Code) *finding.Code { return finding.Named(importCodes(), c.Name) }

// The codes that only an import reports.
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

// Import adds the logical clusters of an archive to a shard.
type Import struct {
	Archive   *snapshot.Snapshot // stays open while the Import is in use
	Manifest  *archive.Manifest  // of Archive; archive.Check must have passed
	Decrypter inspect.Decrypter  // decrypts Archive; nil without a configuration
	AsShard   string             // the shard's own name; "": the name in the file
	FixOwner  bool               // set this shard and its region in LogicalCluster and Workspace
	Prefixes  []string           // of the shard's storage, if the file has several
	Cache     *kcp.File          // of the cache server, if in a separate file; nil for none
}

var (
	// ErrNoLogicalCluster is returned for an archive without the LogicalCluster of a logical
	// cluster: etcdshift never writes such an archive.
	ErrNoLogicalCluster = errors.New("the archive has no LogicalCluster")
	// ErrNoName is returned if the name of the shard has to be written, and neither its file nor an
	// option has the name.
	ErrNoName = errors.New("the file does not say what this shard is called")
)

// Plan stages the bound definitions that the shard lacks, the records in the order of their
// revisions, then their Workspaces.
func (i *Import) Plan(ctx context.Context, v *transform.View) error {
	return i.Archive.Guard(func() error {
		run, err := i.read(ctx, v)
		if err != nil {
			return err
		}
		return run.plan(ctx)
	})
}

type importing struct {
	*carrier
	options    *Import
	incoming   []*kcp.Cluster  // by name
	coming     map[string]bool // names of incoming
	edits      map[string]edit // by key in the archive
	unread     map[string]bool // keys in the archive of unreadable objects that describe needs of incoming
	wanted     wants
	moved      []func() error // changes of Workspaces
	workspaces *Index         // of the file and of the archive
	ownerSteps int            // number of steps about Workspaces
}

func (o *Import) read(ctx context.Context, v *transform.View) (*importing, error) {
	dest, err := readDestination(ctx, v.Reader(), o.Prefixes, o.AsShard, o.Cache)
	if err != nil {
		return nil, err
	}
	if o.FixOwner && dest.name == "" {
		return nil, fmt.Errorf("%w: say it with --as-shard NAME", ErrNoName)
	}
	from, err := openOrigin(ctx, o.Archive, kcp.Read, o.Decrypter, o.Manifest.Origin.Prefix)
	if err != nil {
		return nil, err
	}
	c, err := newCarrier(ctx, v, from, dest)
	if err != nil {
		return nil, err
	}
	i := &importing{
		carrier: c, options: o, coming: map[string]bool{}, edits: map[string]edit{}, unread: map[string]bool{},
		wanted:     wants{},
		workspaces: newIndex(&kcp.File{Shards: append(slices.Clone(dest.file.Shards), from.shard)}),
	}
	for _, m := range o.Manifest.Clusters {
		cluster := from.shard.Cluster(m.Name)
		if cluster == nil {
			return nil, fmt.Errorf("%s: %w of %q", o.Archive.Path(), ErrNoLogicalCluster, m.Name)
		}
		i.incoming = append(i.incoming, cluster)
		i.coming[m.Name] = true
		i.serving.Bind(cluster)
		for _, bound := range cluster.Bound() {
			if !bound.Virtual && bound.UID != "" { // a virtual type has no stored objects
				i.wanted[bound.UID] = append(i.wanted[bound.UID], bound.Resource)
			}
		}
	}
	return i, i.defineIn(ctx, from, i.comes)
}

func (i *importing) plan(ctx context.Context) error {
	i.checkClusters()
	for _, d := range i.from.shard.Definitions {
		if i.wanted[d.Name] == nil && len(i.unread) == 0 { // etcdshift writes no such archive
			i.raise(string(i.definitionKey(d.Name)), codeDefinitionDiffers,
				"no APIBinding of the archive names this definition, and it stays out")
		}
	}
	i.checkNeeds()
	if err := i.planOwners(ctx); err != nil {
		return err
	}
	if err := i.addDefinitions(ctx, i.wanted); err != nil {
		return err
	}
	for _, c := range i.incoming {
		i.needDefinitions(c, i.wanted)
	}
	err := stream.Each(i.from.records(ctx, []byte(i.from.layout.Prefix+"/")), func(r original) error {
		if !i.comes(r.key.Cluster) || i.unread[string(r.Key)] {
			return nil
		}
		return i.carryObject(ctx, r, i.edits[string(r.Key)])
	})
	if err != nil {
		return err
	}
	for _, change := range i.moved { // after the records of their logical clusters
		if err := change(); err != nil {
			return err
		}
	}
	i.reportUnreadable()
	if err := i.reportOrigin(ctx); err != nil {
		return err
	}
	i.receipts.Receive(i.options.Manifest)
	i.steps(i.view.Report())
	return nil
}

func (i *importing) comes(name string) bool { return i.coming[name] }

// checkClusters reports reasons against importing whole logical clusters.
func (i *importing) checkClusters() {
	for _, c := range i.incoming {
		if key, what := i.dest.presence(c.Name); what != "" {
			i.held = true
			i.raise(key, codeClusterExists, "%s", what)
		}
		i.checkSystem(i.keyOf(c.Name), c.Name)
		i.checkTerminating(i.keyOf(c.Name), c)
		for _, p := range c.Problems {
			i.checkProblem(p, c.Hidden[p.Key])
		}
	}
}

// checkProblem reports a problem of a record in the archive. A hidden record could describe needs
// of a logical cluster: such a problem always refuses the run.
func (i *importing) checkProblem(p finding.Finding, hidden bool) {
	switch {
	case hidden:
		i.unread[p.Key] = true
		i.refuse(i.to.Prefix+p.Key[len(i.from.layout.Prefix):], importCodeOf(p.Code),
			"in the archive: it tells what the logical cluster needs: %s", p.Reason)
	case p.Code != kcp.CodeEncrypted: // reported when the record is written
		i.note(p.Key, importCodeOf(p.Code), "in the archive: %s", p.Reason)
	}
}

// checkNeeds reports identities that the logical clusters depend on and the destination lacks.
func (i *importing) checkNeeds() {
	types := map[string][]string{}
	for _, c := range i.incoming {
		for identity, all := range c.Relied() {
			types[identity] = append(types[identity], all...)
		}
	}
	for _, c := range i.incoming {
		for _, e := range c.Exports {
			delete(types, e.Identity)
		}
	}
	i.checkIdentities(types)
}
