package carry

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// planOwners decides what LogicalClusters and Workspaces are to say. Left as they are, kcp mends them when the shard runs: it sees a
// LogicalCluster that names another shard than its own, and then corrects it and its Workspace. One that names the right shard it
// takes for settled (kcp pkg/reconciler/core/logicalcluster/logicalcluster_reconcile_shard.go); so both are changed, or neither.
func (i *importing) planOwners(ctx context.Context) error {
	for _, c := range i.incoming {
		key := string(clusters.LogicalClusterKey(i.from.layout.Prefix, c.Name))
		if c.Migrating != "" {
			i.addEdit(key, survey.DropMigrating)
		}
		var err error
		switch {
		case c.System && c.Owner == nil:
		case i.options.FixOwner:
			err = i.fixOwner(ctx, c, key)
		default:
			err = i.leaveOwner(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addEdit has a record of the archive edited, after what it is edited for already.
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

// owner is the Workspace that a logical cluster belongs to.
type owner struct {
	*clusters.Workspace
	comes  bool   // it is in the archive
	region string // its label
}

// ownerOf finds it: in the archive where its logical cluster comes too, else in the file. It is nil where it is in neither, or
// another of the same name.
func (i *importing) ownerOf(ctx context.Context, c *clusters.Cluster) (*owner, error) {
	if c.Owner == nil {
		return nil, nil
	}
	shards := i.dest.file.Shards
	if i.comes(c.Owner.Cluster) {
		shards = []*clusters.Shard{i.from.shard}
	}
	for _, s := range shards {
		parent := s.Cluster(c.Owner.Cluster)
		if parent == nil {
			continue
		}
		for n := range parent.Workspaces {
			w := &parent.Workspaces[n]
			if w.Name == c.Owner.Name && w.UID == c.Owner.UID && w.Cluster == c.Name && i.isWorkspace(w) {
				return i.readOwner(ctx, w, s == i.from.shard)
			}
		}
	}
	return nil, nil
}

// isWorkspace tells one of kcp's from an object of a type that someone else exports under the name.
func (i *importing) isWorkspace(w *clusters.Workspace) bool {
	own := i.dest.workspaces()
	return own == "" || w.Identity == own
}

func (i *importing) readOwner(ctx context.Context, w *clusters.Workspace, comes bool) (*owner, error) {
	o := &owner{Workspace: w, comes: comes}
	get := i.view.Get
	if comes {
		get = i.from.reader.Get
	}
	e, err := get(ctx, []byte(w.Key))
	if err != nil || e == nil || e.Undecryptable != nil { // it was read before, so that none of the latter two can be
		return o, err
	}
	meta, err := encoding.ReadMeta(e.Value)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", w.Key, err)
	}
	o.region = meta.Labels[survey.LabelRegion]
	return o, nil
}

// leaveOwner says what kcp mends, and warns where it does not.
func (i *importing) leaveOwner(ctx context.Context, c *clusters.Cluster) error {
	if c.Owner == nil {
		return nil
	}
	w, err := i.ownerOf(ctx, c)
	if err != nil {
		return err
	}
	name := i.dest.name
	switch {
	case name != "" && w != nil && w.ShardName == name: // it says so already
	case name != "" && c.ShardName == name:
		where := "its Workspace is in neither file; see there that it says so too"
		if w != nil {
			where = fmt.Sprintf("its Workspace %q says shard %q", w.Name, w.ShardName)
		}
		i.view.Raise(i.keyOf(c.Name), codeOwnerNotHealed.Because("the LogicalCluster of %q says shard %q already, and kcp goes no further then; %s", c.Name, name, where))
		i.stepToAnnotate(c)
	default:
		i.stepToHeal(c)
	}
	i.stepOfRegion(c, w)
	return nil
}

// fixOwner has LogicalCluster and Workspace say where the logical cluster lives now.
func (i *importing) fixOwner(ctx context.Context, c *clusters.Cluster, key string) error {
	name := i.dest.name
	w, err := i.ownerOf(ctx, c)
	if err != nil {
		return err
	}
	if w == nil {
		reason := fmt.Sprintf("%q belongs to nothing, as its LogicalCluster says: import it without --fix-owner", c.Name)
		if c.Owner != nil {
			reason = fmt.Sprintf("the owner of %q, %s %q in %q, is in neither file, or another by now: there is nothing to fix",
				c.Name, c.Owner.Resource, c.Owner.Name, c.Owner.Cluster)
		}
		i.view.Raise(i.keyOf(c.Name), codeOwnerElsewhere.Because("%s", reason))
		return nil
	}
	i.addEdit(key, func(value []byte) ([]byte, error) { return survey.MoveLogicalCluster(value, name) })
	region := i.regionFor(c, w)
	move := func(value []byte) ([]byte, error) { return survey.MoveWorkspace(value, name, region) }
	if w.comes {
		i.addEdit(w.Key, move)
		return nil
	}
	e, err := i.view.Get(ctx, []byte(w.Key))
	if err != nil || e == nil {
		return err
	}
	moved, err := move(e.Value)
	if err != nil {
		return fmt.Errorf("key %q: %w", w.Key, err)
	}
	i.moved = append(i.moved, movedOwner{e.Key, moved, fmt.Sprintf("%q lives on shard %q now", c.Name, name)})
	return nil
}

// movedOwner is a Workspace of the file that says something else now.
type movedOwner struct {
	key, value []byte
	why        string
}

// regionFor is the region that a Workspace is to name: that of the destination; "" to leave what it says.
func (i *importing) regionFor(c *clusters.Cluster, w *owner) string {
	here := i.dest.registered()
	switch {
	case here != nil && here.Region != "":
		return here.Region
	case here != nil && w.region == "":
		return ""
	case here != nil:
		i.view.Raise(w.Key, codeRegionUnknown.Because("shard %q has no label region; that of Workspace %q stays", i.dest.name, w.Name))
	default:
		i.view.Raise(w.Key, codeRegionUnknown.Because("no file has the Shard object %q, which tells its region; the label of Workspace %q stays (--cache FILE)", i.dest.name, w.Name))
		i.stepOfRegion(c, w)
	}
	return ""
}
