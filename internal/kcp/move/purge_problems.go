package move

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
)

// objections reports the reasons against a purge.
type objections struct{ *choice }

// checkChoice reports reasons against a purge.
func (c objections) checkChoice() {
	if c.shard != nil && c.shard.Name != "" && c.shard.Name != c.shardName {
		c.raise(c.keyOf(kcp.SystemShard), codeShardName,
			"this file calls itself shard %q, and --as-shard %q: copies of the latter go, and a Workspace that says "+
				"either leads here", c.shard.Name, c.shardName)
	}
	c.checkHome()
	for _, t := range c.targets {
		c.checkSystem(c.targetKey(t), t.name)
		if t.living != nil {
			c.checkLiving(t)
		}
		if (t.living != nil || t.orphan != nil) && !kcp.IsSystem(t.name) {
			c.checkOwner(t)
		}
		for _, p := range t.problems() {
			if p.Code == kcp.CodeKeyMismatch {
				c.raise(p.Key, p.Code, "%s", p.Reason)
			}
		}
	}
	c.checkUnreadOwners()
	c.checkChildren()
	c.checkBinders()
	c.checkExports()
	if reason := unknownShard(c.file, "", c.options.ToShard); reason != "" {
		c.raise("", codeUnknownShard, "%s", reason)
	}
	storages := map[string]bool{}
	for p := range c.Places {
		storages[p.Prefix] = true
	}
	warnUnknown(c.view, c.file, storages)
}

func (t *target) problems() (all []finding.Finding) {
	if t.living != nil {
		all = append(all, t.living.Problems...)
	}
	if t.orphan != nil {
		all = append(all, t.orphan.Problems...)
	}
	for _, copied := range t.copies {
		all = append(all, copied.Problems...)
	}
	return all
}

// targetKey returns the key of a target's LogicalCluster; "" if the shard does not have it.
func (c objections) targetKey(t *target) string {
	has := func(r kcp.Resource) bool {
		return r.Custom && r.Resource == kcp.TypeName(kcp.LogicalClusterType)
	}
	if c.shard == nil || t.living == nil || !slices.ContainsFunc(t.living.Resources, has) {
		return ""
	}
	return c.keyOf(t.name)
}

// checkHome reports orphans of a file without living logical clusters of tenants.
func (c objections) checkHome() {
	if c.shard == nil || !c.options.Orphans || len(c.targets) == 0 {
		return
	}
	why := "no logical cluster lives there but parts of kcp itself: where theirs were lost, these are no orphans"
	switch {
	case c.shard.Partial:
		why = fmt.Sprintf("this is no whole shard, the LogicalCluster of %s is not there: they may be of logical "+
			"clusters that live", kcp.SystemShard)
	case slices.ContainsFunc(c.shard.Clusters, func(l *kcp.Cluster) bool { return !l.System }):
		return
	}
	const lie = "below %q lie keys of logical clusters without a LogicalCluster (%d, such as %q); %s"
	if args := []any{c.shard.Prefix, len(c.shard.Orphans), c.targets[0].name, why}; c.options.Name != "" {
		c.note("", codeNoHome, lie, args...)
	} else {
		c.raise("", codeNoHome, lie, args...)
	}
}

func (c objections) checkLiving(t *target) {
	if p := c.shard.Unread(t.living); p.Code != nil {
		c.raise(p.Key, p.Code, "whether %q is being deleted or moved, and whether a Workspace still leads to it, "+
			"cannot be told: %s", t.name, p.Reason)
	}
	c.checkTerminating(c.targetKey(t), t.living)
	c.checkMigrating(c.targetKey(t), t.living)
}

// checkBinders reports remaining logical clusters that bind a purged APIExport.
func (c objections) checkBinders() {
	if c.shard == nil {
		return
	}
	paths, binders := map[string]string{}, map[string][]string{}
	for _, t := range c.targets {
		if t.living != nil && t.living.Path != "" {
			paths[t.living.Path] = t.name
		}
	}
	for _, l := range c.shard.Clusters {
		for _, b := range l.Bindings {
			from := b.Export.Cluster
			if from == "" {
				from = paths[b.Export.Path]
			}
			if c.isPurged(from) && !c.isPurged(l.Name) && !slices.Contains(binders[from], l.Name) {
				binders[from] = append(binders[from], l.Name)
			}
		}
	}
	for _, t := range c.targets {
		if all := binders[t.name]; t.living != nil && len(all) > 0 {
			c.raise(c.targetKey(t), codeExportsBound,
				"logical clusters that stay here (%d) bind what %q exports: %s; its copies in the cache have to move "+
					"with it (--to-shard), else they lose the labels of their permission claims", len(all), t.name,
				phrase.List(all, 10))
		}
	}
}

// checkOwner reports remaining Workspaces of a purged logical cluster on this shard.
func (c objections) checkOwner(t *target) {
	for _, w := range c.leadingHere(t) {
		where := fmt.Sprintf("on shard %q, which is this one", w.ShardName)
		switch {
		case w.ShardName == "":
			where = "somewhere: it has no annotation " + kcp.AnnotationShard
		case c.shardName == "":
			where = fmt.Sprintf("on shard %q, and this file does not say what this one is called (--as-shard)",
				w.ShardName)
		}
		c.raise(w.Key, codeOwnerPointsHere, "Workspace %q in %q says that %q lives %s", w.Name, w.Parent.Name, t.name,
			where)
	}
	if t.living != nil && c.shard.Unread(t.living).Code == nil {
		c.checkUnseen(t)
	}
}

// leadingHere returns the remaining Workspaces that name this shard for a logical cluster. A
// Workspace without a shard name counts too, unless the target is an orphan that lives on another
// shard of the file.
func (c *choice) leadingHere(t *target) (all []Link) {
	for _, w := range c.Leading[t.name] {
		here := t.orphan == nil || !c.file.Lives(t.name)
		if w.ShardName != "" && c.shardName != "" {
			here = w.ShardName == c.shardName || c.shard != nil && w.ShardName == c.shard.Name
		}
		if here && !c.workspaceIsPurged(w) && c.shard != nil {
			all = append(all, w)
		}
	}
	return all
}

// workspaceIsPurged reports whether a Workspace is purged too.
func (c *choice) workspaceIsPurged(w Link) bool {
	return w.Shard == c.shard && c.isPurged(w.Parent.Name)
}

// checkUnseen reports an owner that is not in the file.
func (c objections) checkUnseen(t *target) {
	owner, key := t.living.Owner, c.targetKey(t)
	switch {
	case owner == nil:
		c.raiseUntold(key, t.name)
		return
	case owner.Resource != "workspaces" || !strings.HasPrefix(owner.APIVersion, "tenancy.kcp.io/"):
		c.raise(key, codeOwnerUnseen, "%q belongs to %q in %q, which is no Workspace: look there whether it says "+
			"that %q lives here", t.name, owner.Name, owner.Cluster, t.name)
		return
	}
	for _, w := range c.WorkspacesAt(owner.Cluster, owner.Name) {
		switch {
		case w.Cluster == t.name, w.Cluster == "" && c.workspaceIsPurged(w):
			return
		case w.Cluster == "":
			c.raise(w.Key, codeOwnerUnseen, "Workspace %q in %q cannot be read, or names nothing: look whether it "+
				"says that %q lives here", w.Name, w.Parent.Name, t.name)
			return
		}
	}
	if c.file.Lives(owner.Cluster) {
		c.raise(key, codeOwnerUnseen, "%q says that it belongs to Workspace %q in %q, which is not there, or leads "+
			"to another", t.name, owner.Name, owner.Cluster)
		return
	}
	c.raiseUnseen(key, t.name, owner)
}

// checkUnreadOwners reports unreadable Workspaces: they may own orphans of this snapshot.
func (c objections) checkUnreadOwners() {
	if !c.options.Orphans || len(c.targets) == 0 {
		return
	}
	var unread []string
	for _, shard := range c.file.Shards {
		for _, parent := range shard.Clusters {
			problems := parent.Unread()
			for _, w := range parent.Workspaces {
				if problems[w.Key].Code != nil {
					unread = append(unread, w.Key)
				}
			}
		}
	}
	if n := len(unread); n > 0 {
		c.raise(unread[0], codeOwnerUnseen,
			"Workspaces of this file cannot be read (%d): whether one says that these logical clusters live here "+
				"cannot be told", n)
	}
}

// checkChildren reports logical clusters that remain without their Workspaces.
func (c objections) checkChildren() {
	for _, t := range c.targets {
		if t.living == nil && t.orphan == nil {
			continue
		}
		lying := c.workspacesOf(t)
		told := map[string]bool{} // Workspaces that a logical cluster names as its owner
		for _, child := range c.shard.Children(t.name) {
			told[child.Owner.Name] = true
			switch {
			case c.isPurged(child.Name):
			case lying[child.Owner.Name]:
				c.raise(c.keyOf(child.Name), codeChildrenStay, "%q stays, and its Workspace %q is deleted with %q",
					child.Name, child.Owner.Name,
					t.name)
			case t.living != nil: // otherwise the Workspace is on the shard of the parent
				c.raise(c.keyOf(child.Name), codeChildrenStay, "%s", staysWithout(child))
			}
		}
		if t.living != nil {
			c.checkWorkspaces(t, told)
		}
	}
}

// workspacesOf returns the names of the Workspaces purged with a logical cluster.
func (c objections) workspacesOf(t *target) map[string]bool {
	if t.living != nil {
		return workspacesIn(t.living)
	}
	names := map[string]bool{}
	for _, key := range t.orphan.Keys {
		if k, _, err := c.Layouts.Parse([]byte(key)); err == nil && k.Identity != "" &&
			k.Resource == kcp.WorkspaceType {
			names[k.Name] = true
		}
	}
	return names
}

// checkWorkspaces reports logical clusters of purged Workspaces, if they name another owner.
func (c objections) checkWorkspaces(t *target, told map[string]bool) {
	problems := t.living.Unread()
	for _, w := range t.living.Workspaces {
		child, why := c.shard.Cluster(w.Cluster), problems[w.Key]
		switch {
		case w.Cluster == "" && (told[w.Name] || why.Code == nil) || c.isPurged(w.Cluster):
		case w.Cluster == "" && c.options.WithChildren:
			c.raise(w.Key, why.Code, "which logical cluster Workspace %q in %q leads to, and whether it lives here, "+
				"cannot be told: %s", w.Name, t.name, why.Reason)
		case w.Cluster == "":
			c.raise(w.Key, codeChildElsewhere,
				"Workspace %q in %q goes, and which logical cluster it leads to cannot be told: %s", w.Name, t.name,
				why.Reason)
		case child == nil:
			c.raise(w.Key, codeChildElsewhere, "%q, behind Workspace %q in %q, %s; the Workspace is deleted", w.Cluster,
				w.Name, t.name, elsewhere(w))
		case child.Owner == nil: // only a Workspace, which any user may have written, names the cluster as a child
			if p := c.shard.Unread(child); p.Code != nil && c.options.WithChildren {
				c.raise(p.Key, p.Code, "it is unknown whether %q belongs to Workspace %q in %q and must be purged "+
					"too: %s", child.Name, w.Name, t.name, p.Reason)
			}
			c.raise(c.keyOf(child.Name), codeChildrenStay,
				"%q stays: Workspace %q in %q claims it, but its LogicalCluster names no owner",
				child.Name, w.Name, t.name)
		case child.Owner.Cluster != t.name:
			c.raise(w.Key, codeChildElsewhere,
				"%q lives here, but says that it does not belong to Workspace %q in %q, which names it, and goes",
				w.Cluster, w.Name, t.name)
		}
	}
}
