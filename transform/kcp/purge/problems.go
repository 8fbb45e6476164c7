package purge

import (
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// checkChoice reports reasons against a purge.
func (c *choice) checkChoice() {
	if c.shard != nil && c.shard.Name != "" && c.shard.Name != c.shardName {
		c.raise(c.logicalClusterKey(clusters.SystemShard), survey.CodeShardName,
			"this file calls itself shard %q, and --as-shard %q: copies of the latter go, and a Workspace that says either leads here",
			c.shard.Name, c.shardName)
	}
	c.checkHome()
	for _, t := range c.targets {
		if clusters.IsSystem(t.name) {
			c.raise(c.keyOf(t), survey.CodeSystemCluster, "%q is a part of kcp itself", t.name)
		}
		if t.living != nil {
			c.checkLiving(t)
		}
		if (t.living != nil || t.orphan != nil) && !clusters.IsSystem(t.name) {
			c.checkOwner(t)
		}
		for _, p := range t.problems() {
			if p.Code == clusters.CodeKeyMismatch {
				c.raise(p.Key, p.Code, "%s", p.Reason)
			}
		}
	}
	c.checkUnreadOwners()
	c.checkChildren()
	c.checkBinders()
	c.checkExports()
	if reason := c.unknownShard("", c.options.ToShard); reason != "" {
		c.raise("", codeUnknownShard, "%s", reason)
	}
	storages := map[string]bool{}
	for p := range c.Places {
		storages[p.Prefix] = true
	}
	survey.WarnUnknown(c.view, c.file, storages)
}

func (c *choice) raise(key string, code *finding.Code, format string, args ...any) {
	c.view.Raise(key, code.Because(format, args...))
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

func (c *choice) logicalClusterKey(name string) string {
	return string(clusters.LogicalClusterKey(c.shard.Prefix, name))
}

// keyOf is the key of a LogicalCluster, for problems of the whole logical cluster; "" where it has
// none.
func (c *choice) keyOf(t *target) string {
	has := func(r clusters.Resource) bool {
		return r.Custom && r.Resource == clusters.TypeName(clusters.LogicalClusterType)
	}
	if c.shard == nil || t.living == nil || !slices.ContainsFunc(t.living.Resources, has) {
		return ""
	}
	return c.logicalClusterKey(t.name)
}

// unread returns why a LogicalCluster cannot be read; the zero Finding where it can.
func (c *choice) unread(living *clusters.Cluster) finding.Finding {
	return living.Unread()[c.logicalClusterKey(living.Name)]
}

// checkHome reports orphans of a file without living logical clusters of tenants.
func (c *choice) checkHome() {
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
	f := codeNoHome.Because("below %q lie keys of logical clusters without a LogicalCluster (%d, such as %q); %s",
		c.shard.Prefix, len(c.shard.Orphans), c.targets[0].name, why)
	if c.options.Name != "" {
		f.Decided(finding.Noted)
	}
	c.view.Raise("", f)
}

func (c *choice) checkLiving(t *target) {
	if p := c.unread(t.living); p.Code != nil {
		c.raise(p.Key, p.Code, "whether %q is being deleted or moved, and whether a Workspace still leads to it, cannot be told: %s", t.name, p.Reason)
	}
	if at := t.living.Terminating; at != "" {
		c.raise(c.keyOf(t), survey.CodeTerminating, "%q is being deleted since %s", t.name, at)
	}
	if by := t.living.Migrating; by != "" {
		c.raise(c.keyOf(t), survey.CodeMigrating, "%q is being moved by LogicalClusterMigration %q", t.name, by)
	}
}

// checkBinders reports logical clusters that stay and bind an APIExport that goes.
func (c *choice) checkBinders() {
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
			if c.goes(from) && !c.goes(l.Name) && !slices.Contains(binders[from], l.Name) {
				binders[from] = append(binders[from], l.Name)
			}
		}
	}
	for _, t := range c.targets {
		if all := binders[t.name]; t.living != nil && len(all) > 0 {
			c.raise(c.keyOf(t), codeExportsBound, "logical clusters that stay here (%d) bind what %q exports: %s; its copies in the cache have to move "+
				"with it (--to-shard), else they lose the labels of their permission claims", len(all), t.name, survey.FirstOf(all))
		}
	}
}
