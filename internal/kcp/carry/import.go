package carry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Import brings the logical clusters of an archive into a shard.
type Import struct {
	Archive   *snapshot.Snapshot // stays open while the Import is in use
	Manifest  *archive.Manifest  // of Archive, which archive.Check found to be as it was made
	Decrypter inspect.Decrypter  // decrypts Archive; nil without a configuration
	AsShard   string             // the shard's own name; "": what it calls itself
	FixOwner  bool               // LogicalCluster and Workspace are to say at once that it lives here, and in which region
	Prefixes  []string           // of the shard's storage, where its file has several
	Cache     *clusters.File     // of the cache server, where that has a file of its own; nil for none
}

var (
	// ErrNoLogicalCluster is returned for an archive without the LogicalCluster of a logical
	// cluster: etcdshift makes none.
	ErrNoLogicalCluster = errors.New("the archive has no LogicalCluster")
	// ErrNoName is returned where the name of the shard has to be written, and neither its file nor
	// an option has it.
	ErrNoName = errors.New("the file does not say what this shard is called")
)

// Plan stages the bound definitions that the shard lacks, the records in the order of their
// revisions, then the Workspaces that lead to them.
func (i *Import) Plan(ctx context.Context, v *transform.View) error {
	return i.Archive.Guard(func() error {
		run, err := i.read(ctx, v)
		if err == nil {
			run.plan()
			err = run.Err
		}
		return err
	})
}

type importing struct {
	*carrier
	options    *Import
	incoming   []*clusters.Cluster // by name
	coming     map[string]bool     // their names
	edits      map[string]edit     // by key in the archive
	unread     map[string]bool     // keys in the archive of unreadable objects that describe its needs
	wanted     wants
	moved      []func()      // changes of Workspaces
	workspaces *survey.Index // of the file and of the archive
	ownerSteps int           // to be said of Workspaces
}

func (o *Import) read(ctx context.Context, v *transform.View) (*importing, error) {
	dest, err := readDestination(ctx, v.Reader(), o.Prefixes, o.AsShard, o.Cache)
	if err != nil {
		return nil, err
	}
	if o.FixOwner && dest.name == "" {
		return nil, fmt.Errorf("%w: say it with --as-shard NAME", ErrNoName)
	}
	from, err := openOrigin(ctx, o.Archive, clusters.Read, o.Decrypter, o.Manifest.Origin.Prefix)
	if err != nil {
		return nil, err
	}
	c := newCarrier(ctx, v, from, dest)
	i := &importing{
		carrier: c, options: o, coming: map[string]bool{}, edits: map[string]edit{}, unread: map[string]bool{}, wanted: wants{},
		workspaces: survey.NewIndex(&clusters.File{Shards: append(slices.Clone(dest.file.Shards), from.shard)}),
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
	i.defineIn(from, i.comes)
	return i, i.Err
}

func (i *importing) plan() {
	i.checkClusters()
	for _, d := range i.from.shard.Definitions {
		if i.wanted[d.Name] == nil && len(i.unread) == 0 { // etcdshift makes no such archive
			i.raise(string(i.definitionKey(d.Name)), codeDefinitionDiffers, "no APIBinding of the archive names this definition, and it stays out")
		}
	}
	i.checkNeeds()
	i.planOwners()
	i.bring(i.wanted)
	for _, c := range i.incoming {
		i.needDefinitions(c, i.wanted)
	}
	for r := range survey.Each(&i.Reading, i.from.records(i.Ctx, []byte(i.from.layout.Prefix+"/"))) {
		if i.comes(r.key.Cluster) && !i.unread[string(r.Key)] {
			i.carryObject(r, i.edits[string(r.Key)])
		}
	}
	for _, change := range i.moved { // after the records of the logical clusters that they lead to
		change()
	}
	i.reportUnreadable()
	i.reportOrigin()
	i.receipts.Receive(i.options.Manifest)
	i.steps(i.view.Report())
}

func (i *importing) comes(name string) bool { return i.coming[name] }

// checkClusters reports reasons against importing whole logical clusters.
func (i *importing) checkClusters() {
	for _, c := range i.incoming {
		if key, what := i.dest.presence(c.Name); what != "" {
			i.held = true
			i.raise(key, codeClusterExists, "%s", what)
		}
		if c.System {
			i.raise(i.keyOf(c.Name), survey.CodeSystemCluster, "%q is a part of kcp itself", c.Name)
		}
		if c.Terminating != "" {
			i.raise(i.keyOf(c.Name), survey.CodeTerminating, "%q is being deleted since %s", c.Name, c.Terminating)
		}
		for _, p := range c.Problems {
			i.checkProblem(p, c.Hidden[p.Key])
		}
	}
}

// checkProblem reports a problem of a record in the archive. Without a hidden one the needs of a
// logical cluster are not known.
func (i *importing) checkProblem(p finding.Finding, hidden bool) {
	switch {
	case hidden:
		i.unread[p.Key] = true
		i.refuse(i.to.Prefix+p.Key[len(i.from.layout.Prefix):], codeOf(p.Code), "in the archive: it tells what the logical cluster needs: %s", p.Reason)
	case p.Code != clusters.CodeEncrypted: // which is reported when the record is to be written
		i.note(p.Key, codeOf(p.Code), "in the archive: %s", p.Reason)
	}
}

// checkNeeds reports identities that the logical clusters rely on and the destination lacks.
func (i *importing) checkNeeds() {
	types := map[string][]string{}
	for _, c := range i.incoming {
		for _, bound := range c.Bound() {
			if !bound.Virtual {
				types[bound.Identity] = append(types[bound.Identity], bound.Resource.String())
			}
		}
		for _, r := range c.Resources {
			types[r.Identity] = append(types[r.Identity], r.Resource.String())
		}
	}
	for _, c := range i.incoming {
		for _, e := range c.Exports {
			delete(types, e.Identity)
		}
	}
	i.checkIdentities(types)
}
