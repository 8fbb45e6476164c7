package logicalcluster

import (
	"fmt"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
)

// judge reports what speaks against a purge.
func (c *choice) judge(v *transform.View) {
	for _, t := range c.targets {
		if clusters.IsSystem(t.name) {
			v.GoOn(c.keyOf(t), codeSystemCluster, fmt.Sprintf("%q is a part of kcp itself", t.name))
		}
		if t.living != nil {
			c.judgeLiving(v, t)
		}
		c.judgeKeys(v, t)
	}
	c.judgeChildren(v)
	c.judgeUnknown(v)
}

// keyOf is the key that a problem of the whole logical cluster is about: its LogicalCluster's.
func (c *choice) keyOf(t *target) string {
	if c.shard == nil || t.living == nil {
		return ""
	}
	return string(clusters.LogicalClusterKey(c.shard.Prefix, t.name))
}

func (c *choice) judgeLiving(v *transform.View, t *target) {
	if at := t.living.Terminating; at != "" {
		v.GoOn(c.keyOf(t), codeTerminating, fmt.Sprintf("%q is being deleted since %s", t.name, at))
	}
	if by := t.living.Migrating; by != "" {
		v.GoOn(c.keyOf(t), codeMigrating, fmt.Sprintf("%q is being moved by LogicalClusterMigration %q", t.name, by))
	}
	if !clusters.IsSystem(t.name) {
		c.judgeOwner(v, t)
	}
}

// judgeOwner finds out whether the Workspace of a logical cluster goes on leading here.
func (c *choice) judgeOwner(v *transform.View, t *target) {
	owner := t.living.Owner
	if owner != nil && c.goes(owner.Cluster) {
		return // it goes too
	}
	w, in := c.workspace(t)
	switch {
	case w != nil && c.leadsHere(w):
		v.GoOn(w.Key, codeOwnerPointsHere, fmt.Sprintf("Workspace %q in %q says that %q lives %s", w.Name, in, t.name, c.where(w)))
	case w != nil && w.Cluster == "":
		v.Warn(w.Key, codeOwnerUnseen, fmt.Sprintf("Workspace %q in %q cannot be read: look whether it says that %q lives here", w.Name, in, t.name))
	case w != nil:
	case owner == nil:
		v.Warn(c.keyOf(t), codeOwnerUnseen, fmt.Sprintf("the LogicalCluster of %q does not tell its owner, or cannot be read", t.name))
	case !c.lives(owner.Cluster):
		v.Warn(c.keyOf(t), codeOwnerUnseen, fmt.Sprintf("Workspace %q in %q is not in this file: look there whether it says that %q lives here",
			owner.Name, owner.Cluster, t.name))
	}
}

// workspace is the Workspace of the file that names the logical cluster, and where it lies: that of its owner, also one that cannot be
// read, or, where a LogicalCluster does not tell that, any.
func (c *choice) workspace(t *target) (w *clusters.Workspace, in string) {
	owner := t.living.Owner
	for _, shard := range c.file.Shards {
		for _, parent := range shard.Clusters {
			if owner != nil && parent.Name != owner.Cluster {
				continue
			}
			for i := range parent.Workspaces {
				w := &parent.Workspaces[i]
				if owner == nil && w.Cluster == t.name || owner != nil && w.Name == owner.Name && (w.Cluster == t.name || w.Cluster == "") {
					return w, parent.Name
				}
			}
		}
	}
	return nil, ""
}

// leadsHere tells whether a Workspace says of its logical cluster that it lives on this shard. Where either does not say a name,
// it does.
func (c *choice) leadsHere(w *clusters.Workspace) bool {
	return w.Cluster != "" && (w.ShardName == "" || c.shardName == "" || w.ShardName == c.shardName)
}

// where is what a Workspace says of its shard.
func (c *choice) where(w *clusters.Workspace) string {
	switch {
	case w.ShardName == "":
		return "somewhere: it has no annotation core.kcp.io/shard"
	case c.shardName == "":
		return fmt.Sprintf("on shard %q, and this file does not say what this one is called (--as-shard)", w.ShardName)
	}
	return fmt.Sprintf("on shard %q, which is this one", w.ShardName)
}

// lives tells whether a logical cluster lives on any shard of the file.
func (c *choice) lives(name string) bool {
	for _, shard := range c.file.Shards {
		if shard.Cluster(name) != nil {
			return true
		}
	}
	return false
}

// judgeKeys reports objects that say that they are of another logical cluster.
func (c *choice) judgeKeys(v *transform.View, t *target) {
	var problems []clusters.Problem
	if t.living != nil {
		problems = append(problems, t.living.Problems...)
	}
	if t.orphan != nil {
		problems = append(problems, t.orphan.Problems...)
	}
	for _, copied := range t.copies {
		problems = append(problems, copied.Problems...)
	}
	for _, p := range problems {
		if p.Code == clusters.CodeKeyMismatch {
			v.GoOn(p.Key, codeKeyMismatch, p.Reason)
		}
	}
}

// judgeChildren reports logical clusters that stay while the Workspaces that they belong to go.
func (c *choice) judgeChildren(v *transform.View) {
	for _, t := range c.targets {
		if t.living == nil {
			continue
		}
		for _, child := range c.shard.Children(t.name) {
			if !c.goes(child.Name) {
				key := string(clusters.LogicalClusterKey(c.shard.Prefix, child.Name))
				v.Warn(key, codeChildrenStay, fmt.Sprintf("%q stays, and its Workspace %q goes with %q", child.Name, child.Owner.Name, t.name))
			}
		}
		c.judgeUnreadable(v, t)
	}
}

// judgeUnreadable reports logical clusters that may be children: nothing but a Workspace says so, which anyone may have written.
func (c *choice) judgeUnreadable(v *transform.View, t *target) {
	for _, w := range t.living.Workspaces {
		child := c.shard.Cluster(w.Cluster)
		if child == nil || child.Owner != nil || c.goes(child.Name) {
			continue
		}
		v.Warn(string(clusters.LogicalClusterKey(c.shard.Prefix, child.Name)), codeChildrenStay,
			fmt.Sprintf("%q stays: only Workspace %q in %q says that it belongs there, its LogicalCluster does not tell", child.Name, w.Name, t.name))
	}
}

// judgeUnknown reports keys in the storages that are purged and that are of no logical cluster: they stay.
func (c *choice) judgeUnknown(v *transform.View) {
	storages := map[string]bool{}
	for p := range c.places {
		storages[p.prefix] = true
	}
	for _, u := range c.file.Unknown {
		if s, ok := c.layouts.Of([]byte(u.Key)); ok && storages[s.Prefix] && !u.Expected {
			v.Warn(u.Key, codeUnknownKey, "it is of no logical cluster, and stays: "+u.Reason)
		}
	}
}
