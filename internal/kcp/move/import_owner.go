package move

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// planOwners plans changes of LogicalClusters and Workspaces. Without changes, kcp corrects both
// when the shard runs. But kcp ignores a LogicalCluster that names the right shard (kcp
// logicalcluster_reconcile_shard.go): both are changed, or neither.
func (i *importing) planOwners(ctx context.Context) error {
	for _, c := range i.incoming {
		key := string(kcp.LogicalClusterKey(i.from.layout.Prefix, c.Name))
		if c.Migrating != "" {
			i.addEdit(key, dropMigrating)
		}
		switch {
		case c.System && c.Owner == nil:
		case !i.options.FixOwner:
			i.leaveOwner(c)
		default:
			if err := i.fixOwner(ctx, c, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// addEdit appends an edit to the edits of a record of the archive.
func (i *importing) addEdit(key string, next edit) {
	before := i.edits[key]
	if before == nil {
		i.edits[key] = next
		return
	}
	i.edits[key] = func(value []byte) ([]byte, error) {
		out, err := before(value)
		if err != nil {
			return nil, err
		}
		return next(out)
	}
}

// ownerOf finds the owning Workspace: in the archive if its logical cluster is imported too, else
// in the file. nil if the Workspace is missing or another one of the same name.
func (i *importing) ownerOf(c *kcp.Cluster) *Link {
	if c.Owner == nil {
		return nil
	}
	own := i.dest.shard.WorkspaceIdentity // a foreign type may have the name of Workspaces, but not their identity
	for _, w := range i.workspaces.WorkspacesAt(c.Owner.Cluster, c.Owner.Name) {
		inArchive := w.Shard == i.from.shard
		if inArchive == i.comes(c.Owner.Cluster) && w.UID == c.Owner.UID && w.Cluster == c.Name &&
			(own == "" || w.Identity == own) {
			return &w
		}
	}
	return nil
}

// leaveOwner adds steps about owners that kcp corrects, and warns about other owners.
func (i *importing) leaveOwner(c *kcp.Cluster) {
	if c.Owner == nil {
		return
	}
	w, name := i.ownerOf(c), i.dest.name
	switch {
	case name != "" && w != nil && w.ShardName == name: // the Workspace names this shard already
	case name != "" && c.ShardName == name:
		where := "its Workspace is in neither file; see there that it says so too"
		if w != nil {
			where = fmt.Sprintf("its Workspace %q says shard %q", w.Name, w.ShardName)
		}
		i.raise(i.keyOf(c.Name), codeOwnerNotHealed,
			"the LogicalCluster of %q says shard %q already, and kcp goes no further then; %s", c.Name, name, where)
		annotations := transform.ShellWord(kcp.AnnotationShard+"="+name) + " " +
			transform.ShellWord(kcp.AnnotationShardHash+"="+shardHash(name))
		i.ownerStep("Workspace %q in logical cluster %q, unless it says already that %q lives on %s: %s",
			c.Owner.Name, c.Owner.Cluster, c.Name, i.dest.called(), i.kubectl(c, "annotate --overwrite", annotations))
	default:
		i.ownerStep("Workspace %q in logical cluster %q: when this shard runs, kcp has it say that %q lives on %s; "+
			"see that it does: %s",
			c.Owner.Name, c.Owner.Cluster, c.Name, i.dest.called(), i.kubectl(c, "get", "-o yaml"))
	}
	i.stepOfRegion(c, w)
}

// fixOwner changes the shard in LogicalCluster and Workspace.
func (i *importing) fixOwner(ctx context.Context, c *kcp.Cluster, key string) error {
	w, name := i.ownerOf(c), i.dest.name
	if w == nil {
		reason := fmt.Sprintf("%q belongs to nothing, as its LogicalCluster says: import it without --fix-owner",
			c.Name)
		if c.Owner != nil {
			reason = fmt.Sprintf("the owner of %q, %s %q in %q, is in neither file, or another by now: there is "+
				"nothing to fix", c.Name, c.Owner.Resource, c.Owner.Name, c.Owner.Cluster)
		}
		i.raise(i.keyOf(c.Name), codeOwnerElsewhere, "%s", reason)
		return nil
	}
	i.addEdit(key, func(value []byte) ([]byte, error) { return moveLogicalCluster(value, name) })
	region := i.regionFor(c, w)
	move := func(value []byte) ([]byte, error) { return moveWorkspace(value, name, region) }
	if w.Shard == i.from.shard {
		i.addEdit(w.Key, move)
		return nil
	}
	e, err := i.view.Get(ctx, []byte(w.Key))
	if err != nil || e == nil {
		return err
	}
	moved, err := edit(move).of(e)
	i.moved = append(i.moved, func() error { return i.change(ctx, e.Key, moved) })
	return err
}

// regionFor returns the region of the destination for a Workspace; "" to keep the label.
func (i *importing) regionFor(c *kcp.Cluster, w *Link) string {
	here := i.dest.registered()
	switch {
	case here != nil && here.Region != "":
		return here.Region
	case here != nil && w.Region == "":
		return ""
	case here != nil:
		i.raise(w.Key, codeRegionUnknown, "shard %q has no label region; that of Workspace %q stays", i.dest.name,
			w.Name)
	default:
		i.raise(w.Key, codeRegionUnknown, "no file has the Shard object %q, which tells its region; the label of "+
			"Workspace %q stays (--cache FILE)", i.dest.name, w.Name)
		i.stepOfRegion(c, w)
	}
	return ""
}

// steps adds the remaining manual steps, before the steps of planOwners.
func (i *importing) steps(r *transform.Report) {
	later := r.Steps
	r.Steps = nil
	if from := i.options.Manifest.Origin.Shard; from != "" && from == i.dest.name {
		stepToStop(r, fmt.Sprintf("kcp of shard %q, which is where the archive was made", from), LostWrites)
	} else {
		i.stepsOfOrigin(r)
	}
	stepToStart(r)
	for _, step := range later {
		r.AddStep("%s", step)
	}
	if more := i.ownerSteps - mostOwnerSteps; more > 0 {
		r.AddStep("and the like for the Workspaces of the other logical clusters that came in, %s",
			phrase.Count(more, "step"))
	}
}

// stepsOfOrigin adds the steps for the origin's half of a move.
func (i *importing) stepsOfOrigin(r *transform.Report) {
	m, copied := i.options.Manifest, i.options.Manifest.Names()
	purge, origin := "etcdshift kcp purge "+transform.ShellWord(m.Name)+" ORIGIN ORIGIN-OUT", "the origin"
	if len(m.Clusters) > 1 {
		purge += " --with-children"
	}
	if m.Origin.Shard != "" {
		origin = fmt.Sprintf("the origin, shard %q", m.Origin.Shard)
	}
	stepToStop(r, "kcp of both shards", LostWrites+"; restore both: a logical cluster must not live on two")
	r.AddStep("take it out of %s: %s --to-shard %s", origin, purge,
		transform.ShellWord(cmp.Or(i.dest.name, "NEW-SHARD")))
	if i.cachesHere(m.Origin.Shard) {
		r.AddStep("the cache in this shard's own file has copies from %s: %s; restore that output then", origin,
			copiesMove(copied, "OUT OUT-2", m.Origin.Shard, i.dest.name))
		stepToVerify(r, i.options.Archive.Path(), "OUT-2", false)
		return
	}
	stepToMoveCopies(r, copied, m.Origin.Shard, i.dest.name)
	stepToVerify(r, i.options.Archive.Path(), "OUT", true)
}

// cachesHere reports whether a cache in this file has the origin's copies of imported clusters.
func (i *importing) cachesHere(origin string) bool {
	for _, copied := range i.dest.file.Copies() {
		if copied.Shard == origin && i.comes(copied.Cluster) {
			return true
		}
	}
	return false
}

// mostOwnerSteps is the maximum of steps about single Workspaces.
const mostOwnerSteps = 20

func (i *importing) ownerStep(format string, args ...any) {
	if i.ownerSteps++; i.ownerSteps <= mostOwnerSteps {
		i.view.Report().AddStep(format, args...)
	}
}

// stepOfRegion adds a step for the region label, which kcp sets once and never changes.
func (i *importing) stepOfRegion(c *kcp.Cluster, w *Link) {
	here, region := i.dest.registered(), "REGION"
	if here != nil {
		region = here.Region
	}
	if region == "" || w != nil && w.Region == region {
		return
	}
	i.ownerStep("kcp never corrects the label region of Workspace %q in %q: %s",
		c.Owner.Name, c.Owner.Cluster, i.kubectl(c, "label --overwrite", transform.ShellWord("region="+region)))
}

// kubectl returns a command about the Workspace of a logical cluster.
func (i *importing) kubectl(c *kcp.Cluster, verb, rest string) string {
	server := "https://FRONT-PROXY"
	if here := i.dest.registered(); here != nil && here.ExternalURL != "" {
		server = strings.TrimSuffix(here.ExternalURL, "/")
	}
	return fmt.Sprintf("kubectl --server %s %s workspaces.tenancy.kcp.io %s %s",
		transform.ShellWord(server+"/clusters/"+c.Owner.Cluster), verb, transform.ShellWord(c.Owner.Name), rest)
}
