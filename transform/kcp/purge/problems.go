package purge

import (
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// judge reports what speaks against a purge.
func (c *choice) judge(v *transform.View) {
	c.judgeName(v)
	c.judgeHome(v)
	for _, t := range c.targets {
		if clusters.IsSystem(t.name) {
			v.GoOn(c.keyOf(t), survey.CodeSystemCluster, fmt.Sprintf("%q is a part of kcp itself", t.name))
		}
		if t.living != nil {
			c.judgeLiving(v, t)
		}
		if (t.living != nil || t.orphan != nil) && !clusters.IsSystem(t.name) {
			c.judgeOwner(v, t)
		}
		c.judgeKeys(v, t)
	}
	c.judgeUnreadOwners(v)
	c.judgeChildren(v)
	c.judgeBinders(v)
	c.judgeExports(v)
	c.judgeToShard(v)
	c.judgeUnknown(v)
}

// keyOf is the key that a problem of the whole logical cluster is about: its LogicalCluster's; "" where it has none, as some of kcp's own.
func (c *choice) keyOf(t *target) string {
	has := func(r clusters.Resource) bool { return r.Custom && r.Resource == clusters.TypeName(clusters.LogicalClusterType()) }
	if c.shard == nil || t.living == nil || !slices.ContainsFunc(t.living.Resources, has) {
		return ""
	}
	return string(clusters.LogicalClusterKey(c.shard.Prefix, t.name))
}

// unread is why the LogicalCluster of a living one cannot be read; the zero Problem where it can.
func (c *choice) unread(living *clusters.Cluster) clusters.Problem {
	p := survey.ProblemOf(living.Problems, string(clusters.LogicalClusterKey(c.shard.Prefix, living.Name)))
	if !survey.Unread(p) {
		return clusters.Problem{}
	}
	return p
}

// judgeName reports a file that calls itself otherwise than it is called.
func (c *choice) judgeName(v *transform.View) {
	if c.shard == nil || c.shard.Name == "" || c.shard.Name == c.shardName {
		return
	}
	v.Warn(string(clusters.LogicalClusterKey(c.shard.Prefix, clusters.SystemShard)), survey.CodeShardName,
		fmt.Sprintf("this file calls itself shard %q, and --as-shard %q: copies of the latter go, and a Workspace that says either leads here",
			c.shard.Name, c.shardName))
}

// judgeHome reports orphans of a file that tells of nothing, or of no tenant's logical cluster, that it lives there.
func (c *choice) judgeHome(v *transform.View) {
	if c.shard == nil || !c.options.Orphans || len(c.targets) == 0 {
		return
	}
	why := "no logical cluster lives there but parts of kcp itself: where theirs were lost, these are no orphans"
	switch {
	case c.shard.Partial:
		why = fmt.Sprintf("this is no whole shard, the LogicalCluster of %s is not there: they may be of logical clusters that live", clusters.SystemShard)
	case slices.ContainsFunc(c.shard.Clusters, func(l *clusters.Cluster) bool { return !l.System }):
		return
	}
	reason := fmt.Sprintf("below %q lie keys of logical clusters without a LogicalCluster (%d, such as %q); %s",
		c.shard.Prefix, len(c.shard.Orphans), c.targets[0].name, why)
	if c.options.Name != "" {
		v.Warn("", codeNoHome, reason)
		return
	}
	v.GoOn("", codeNoHome, reason)
}

func (c *choice) judgeLiving(v *transform.View, t *target) {
	if p := c.unread(t.living); p.Code != "" {
		v.GoOn(p.Key, p.Code, fmt.Sprintf("whether %q is being deleted or moved, and whether a Workspace still leads to it, cannot be told: %s", t.name, p.Reason))
	}
	if at := t.living.Terminating; at != "" {
		v.GoOn(c.keyOf(t), survey.CodeTerminating, fmt.Sprintf("%q is being deleted since %s", t.name, at))
	}
	if by := t.living.Migrating; by != "" {
		v.GoOn(c.keyOf(t), survey.CodeMigrating, fmt.Sprintf("%q is being moved by LogicalClusterMigration %q", t.name, by))
	}
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
			v.GoOn(p.Key, clusters.CodeKeyMismatch, p.Reason)
		}
	}
}

// judgeBinders reports logical clusters that stay and bind what one that goes exports.
func (c *choice) judgeBinders(v *transform.View) {
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
			if c.goes(from) && !c.goes(l.Name) && !(len(binders[from]) > 0 && binders[from][len(binders[from])-1] == l.Name) {
				binders[from] = append(binders[from], l.Name)
			}
		}
	}
	for _, t := range c.targets {
		if all := binders[t.name]; t.living != nil && len(all) > 0 {
			v.Warn(c.keyOf(t), codeExportsBound, fmt.Sprintf("logical clusters that stay here (%d) bind what %q exports: %s; its copies in the cache have to move with it (--to-shard), else they lose the labels of their permission claims",
				len(all), t.name, survey.FirstOf(all)))
		}
	}
}

// judgeUnknown reports keys in the storages that are purged and that are of no logical cluster: they stay.
func (c *choice) judgeUnknown(v *transform.View) {
	storages := map[string]bool{}
	for p := range c.Places {
		storages[p.Prefix] = true
	}
	for _, u := range c.file.Unknown {
		if s, ok := c.Layouts.Of([]byte(u.Key)); ok && storages[s.Prefix] && !u.Expected {
			v.Warn(u.Key, survey.CodeUnknownKey, "it is of no logical cluster, and stays: "+u.Reason)
		}
	}
}
