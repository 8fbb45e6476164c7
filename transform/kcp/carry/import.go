package carry

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// ImportOptions say what an Import brings into a shard.
type ImportOptions struct {
	Archive  *snapshot.Snapshot // stays open while the Import is in use
	Manifest *archive.Manifest  // of Archive, which archive.Check found to be as it was made
	Opener   inspect.Opener     // opens what is encrypted in Archive; nil where there is no configuration
	AsShard  string             // the shard's own name; "": what it calls itself
	FixOwner bool               // LogicalCluster and Workspace are to say at once that it lives here, and in which region
	Prefixes []string           // of the shard's storage, where its file has several
	Cache    *clusters.File     // of the cache server, where that has a file of its own; nil for none
}

var (
	// ErrNoLogicalCluster is returned for an archive that lacks the LogicalCluster of a logical cluster: nothing that etcdshift made.
	ErrNoLogicalCluster = errors.New("the archive has no LogicalCluster")
	// ErrNoName is returned where the name of the shard is to be written, and neither its file nor an option tells it.
	ErrNoName = errors.New("the file does not say what this shard is called")
)

// Import brings the logical clusters of an archive into a shard.
type Import struct {
	options ImportOptions
	*carrier
	dest       *destination
	incoming   []*clusters.Cluster // by name
	coming     map[string]bool     // their names
	serving    *survey.Serving
	edits      map[string]edit // by key in the archive
	unread     map[string]bool // keys in the archive of objects without which nobody knows what it needs
	wanted     wants
	moved      []movedOwner
	ownerSteps int // to be said of Workspaces
}

var (
	_ transform.Transform = (*Import)(nil)
	_ transform.Checker   = (*Import)(nil)
)

// NewImport makes an Import.
func NewImport(o ImportOptions) *Import { return &Import{options: o} }

// Plan stages the bound definitions that the shard lacks, then the records in the order of their revisions, then the Workspaces that
// are to lead to them. Errors wrap those of
// package clusters for a file that is no shard, ErrPartial, ErrSplit, ErrNoLogicalCluster or ErrNoName, or are those of reading the
// files.
func (i *Import) Plan(ctx context.Context, v *transform.View) error {
	return i.options.Archive.Guard(func() error { return i.plan(ctx, v) })
}

func (i *Import) plan(ctx context.Context, v *transform.View) error {
	if err := i.read(ctx, v); err != nil {
		return err
	}
	i.judgeClusters()
	if len(i.unread) == 0 {
		i.judgeUnwanted(i.wanted)
	}
	i.judgeIdentities()
	if err := i.settleOwners(ctx); err != nil {
		return err
	}
	if err := i.bring(ctx, i.serving, i.wanted); err != nil {
		return err
	}
	for _, c := range i.incoming {
		i.needDefinitions(i.serving, c, i.wanted)
	}
	if err := i.carryAll(ctx); err != nil {
		return err
	}
	if err := i.moveOwners(ctx); err != nil {
		return err
	}
	reportMisfits(v, i.serving)
	return i.report(ctx, v.Report())
}

// read finds out what there is on both sides.
func (i *Import) read(ctx context.Context, v *transform.View) (err error) {
	o := i.options
	if i.dest, err = readDestination(ctx, v.Reader(), o.Prefixes, o.AsShard, o.Cache); err != nil {
		return err
	}
	if o.FixOwner && i.dest.name == "" {
		return fmt.Errorf("%w: say it with --as-shard NAME", ErrNoName)
	}
	from, err := openOrigin(ctx, o.Archive, clusters.Read, o.Opener, o.Manifest.Origin.Prefix)
	if err != nil {
		return err
	}
	i.carrier = newCarrier(v, from, i.dest.shard.Prefix, "imported from "+o.Archive.Path())
	i.serving, i.edits, i.coming = survey.NewServing(i.dest.shard), map[string]edit{}, map[string]bool{}
	i.unread, i.wanted = map[string]bool{}, wants{}
	for _, m := range o.Manifest.Clusters {
		c := from.shard.Cluster(m.Name)
		if c == nil {
			return fmt.Errorf("%s: %w of %q", o.Archive.Path(), ErrNoLogicalCluster, m.Name)
		}
		i.incoming = append(i.incoming, c)
		i.coming[c.Name] = true
		i.serving.Bind(c)
		i.wanted.add(c)
	}
	return from.defineIn(ctx, i.serving, i.comes)
}

// comes tells whether a logical cluster is one of those that come in.
func (i *Import) comes(name string) bool { return i.coming[name] }

// keyOf is where the LogicalCluster of a logical cluster comes to lie.
func (c *carrier) keyOf(cluster string) string {
	return string(clusters.LogicalClusterKey(c.to.Prefix, cluster))
}

// judgeClusters reports what speaks against whole logical clusters.
func (i *Import) judgeClusters() {
	for _, c := range i.incoming {
		if key, what := i.dest.presence(c.Name); what != "" {
			i.held = true
			i.view.Refuse(key, codeClusterExists, what)
		}
		if c.System {
			i.view.GoOn(i.keyOf(c.Name), survey.CodeSystemCluster, fmt.Sprintf("%q is a part of kcp itself", c.Name))
		}
		if c.Terminating != "" {
			i.view.GoOn(i.keyOf(c.Name), survey.CodeTerminating, fmt.Sprintf("%q is being deleted since %s", c.Name, c.Terminating))
		}
		for _, p := range c.Problems {
			i.judgeProblem(p)
		}
	}
}

// judgeProblem reports what is wrong with an object of the archive that tells about a logical cluster.
func (i *Import) judgeProblem(p clusters.Problem) {
	key, err := i.from.layout.Parse([]byte(p.Key))
	switch {
	case err == nil && unread(key, p):
		i.unread[p.Key] = true
		i.never(i.to.Format(key), p.Code, "in the archive: it tells what the logical cluster needs: "+p.Reason)
	case p.Code != clusters.CodeEncrypted: // which is reported when the record is to be written
		i.view.Warn(p.Key, p.Code, "in the archive: "+p.Reason)
	}
}

// unread tells whether an object could not be read without which nobody knows the state of a logical cluster, and what it needs: its
// LogicalCluster, or an APIBinding.
func unread(key keys.Key, p clusters.Problem) bool {
	if p.Code != clusters.CodeEncrypted && p.Code != clusters.CodeUndecodable || !key.Custom {
		return false
	}
	return key.Resource == clusters.BindingType() ||
		key.Resource == clusters.LogicalClusterType()
}

// judgeIdentities reports the identities that nothing of the destination vouches for.
func (i *Import) judgeIdentities() {
	needs := needs{}
	for _, c := range i.incoming {
		for _, b := range c.Bindings {
			for _, bound := range b.Bound {
				if !bound.Virtual {
					needs.add(bound.Identity, bound.Resource.String())
				}
			}
		}
		for _, r := range c.Resources {
			needs.add(r.Identity, r.Resource.String())
		}
	}
	for _, c := range i.incoming {
		for _, e := range c.Exports {
			delete(needs, e.Identity)
		}
	}
	needs.judge(i.view, i.dest)
}

// carryAll stages the records of the logical clusters.
func (i *Import) carryAll(ctx context.Context) error {
	for r, err := range i.from.records(ctx, []byte(i.from.layout.Prefix+"/")) {
		if err != nil {
			return err
		}
		if !i.comes(r.key.Cluster) || i.unread[string(r.Key)] {
			continue
		}
		if err := i.carry(ctx, r, i.edits[string(r.Key)]); err != nil {
			return err
		}
		if r.Sealed == nil {
			i.serving.Judge(r.key, i.to.Format(r.key), r.Value)
		}
	}
	return nil
}

// Check proves that what came in is what the archive has, and that all else is as it was. The error wraps snapshot.ErrVerify.
func (i *Import) Check(ctx context.Context, v *transform.View, out *inspect.Reader) error {
	return i.options.Archive.Guard(func() error { return i.checkReport(ctx, out) })
}

// report says what comes in, and what is left to do.
func (i *Import) report(ctx context.Context, r *transform.Report) error {
	info, err := transform.InfoOf(ctx, i.options.Archive)
	if err != nil {
		return err
	}
	r.Archive = &info
	warnOfOrigin(i.view, i.options.Archive)
	for _, m := range i.options.Manifest.Clusters {
		i.receipts.Clusters = append(i.receipts.Clusters, survey.Receipt{Name: m.Name, Path: m.Path, Sum: m.Sum})
	}
	i.steps(r)
	return nil
}
