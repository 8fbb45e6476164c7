package carry

import (
	"fmt"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/transform"
)

// planOwners plans changes of LogicalClusters and Workspaces. Without changes, kcp corrects both
// when the shard runs. It leaves a LogicalCluster that names the right shard (kcp
// logicalcluster_reconcile_shard.go): both are changed, or neither.
func (i *importing) planOwners() {
	for _, c := range i.incoming {
		key := string(clusters.LogicalClusterKey(i.from.layout.Prefix, c.Name))
		if c.Migrating != "" {
			i.addEdit(key, survey.DropMigrating)
		}
		switch {
		case c.System && c.Owner == nil:
		case !i.options.FixOwner:
			i.leaveOwner(c)
		default:
			i.fixOwner(c, key)
		}
	}
}

// addEdit adds an edit to those of a record of the archive.
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

// ownerOf finds the owner in the archive, if its logical cluster is imported too, else in the file.
// It returns nil where neither has it, or another of the same name.
func (i *importing) ownerOf(c *clusters.Cluster) *survey.Link {
	if c.Owner == nil {
		return nil
	}
	own := i.dest.shard.WorkspaceIdentity // a foreign type may have the name of Workspaces, not their identity
	for _, w := range i.workspaces.WorkspacesAt(c.Owner.Cluster, c.Owner.Name) {
		inArchive := w.Shard == i.from.shard
		if inArchive == i.comes(c.Owner.Cluster) && w.UID == c.Owner.UID && w.Cluster == c.Name && (own == "" || w.Identity == own) {
			return &w
		}
	}
	return nil
}

// leaveOwner adds steps about owners that kcp corrects, and warns about others.
func (i *importing) leaveOwner(c *clusters.Cluster) {
	if c.Owner == nil {
		return
	}
	w, name := i.ownerOf(c), i.dest.name
	switch {
	case name != "" && w != nil && w.ShardName == name: // it says so already
	case name != "" && c.ShardName == name:
		where := "its Workspace is in neither file; see there that it says so too"
		if w != nil {
			where = fmt.Sprintf("its Workspace %q says shard %q", w.Name, w.ShardName)
		}
		i.raise(i.keyOf(c.Name), codeOwnerNotHealed, "the LogicalCluster of %q says shard %q already, and kcp goes no further then; %s", c.Name, name, where)
		annotations := transform.ShellWord(clusters.AnnotationShard+"="+name) + " " + transform.ShellWord(survey.AnnotationShardHash+"="+survey.ShardHash(name))
		i.ownerStep("Workspace %q in logical cluster %q, unless it says already that %q lives on %s: %s",
			c.Owner.Name, c.Owner.Cluster, c.Name, i.dest.called(), i.kubectl(c, "annotate --overwrite", annotations))
	default:
		i.ownerStep("Workspace %q in logical cluster %q: when this shard runs, kcp has it say that %q lives on %s; see that it does: %s",
			c.Owner.Name, c.Owner.Cluster, c.Name, i.dest.called(), i.kubectl(c, "get", "-o yaml"))
	}
	i.stepOfRegion(c, w)
}

// fixOwner changes the shard in LogicalCluster and Workspace.
func (i *importing) fixOwner(c *clusters.Cluster, key string) {
	w, name := i.ownerOf(c), i.dest.name
	if w == nil {
		reason := fmt.Sprintf("%q belongs to nothing, as its LogicalCluster says: import it without --fix-owner", c.Name)
		if c.Owner != nil {
			reason = fmt.Sprintf("the owner of %q, %s %q in %q, is in neither file, or another by now: there is nothing to fix",
				c.Name, c.Owner.Resource, c.Owner.Name, c.Owner.Cluster)
		}
		i.raise(i.keyOf(c.Name), codeOwnerElsewhere, "%s", reason)
		return
	}
	i.addEdit(key, func(value []byte) ([]byte, error) { return survey.MoveLogicalCluster(value, name) })
	region := i.regionFor(c, w)
	move := func(value []byte) ([]byte, error) { return survey.MoveWorkspace(value, name, region) }
	if w.Shard == i.from.shard {
		i.addEdit(w.Key, move)
		return
	}
	e, err := i.view.Get(i.Ctx, []byte(w.Key))
	if i.Failed(err) || e == nil {
		return
	}
	moved, err := edit(move).of(e)
	i.Failed(err)
	i.moved = append(i.moved, func() { i.change(e.Key, moved) })
}

// regionFor is the region of the destination for a Workspace; "" to leave its label.
func (i *importing) regionFor(c *clusters.Cluster, w *survey.Link) string {
	here := i.dest.registered()
	switch {
	case here != nil && here.Region != "":
		return here.Region
	case here != nil && w.Region == "":
		return ""
	case here != nil:
		i.raise(w.Key, codeRegionUnknown, "shard %q has no label region; that of Workspace %q stays", i.dest.name, w.Name)
	default:
		i.raise(w.Key, codeRegionUnknown, "no file has the Shard object %q, which tells its region; the label of Workspace %q stays (--cache FILE)",
			i.dest.name, w.Name)
		i.stepOfRegion(c, w)
	}
	return ""
}
