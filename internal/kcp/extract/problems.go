package extract

import (
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
)

// check reports reasons against an archive, and parts that it will not have.
func (e *extraction) check() {
	for _, c := range e.order {
		if !isName(c.Name) {
			e.raise(e.keyOf(c.Name), codeOddName, "%.100q is no name of a logical cluster that a manifest can list", c.Name)
		}
	}
	if e.AsShard != "" && e.shard.Name != "" && e.AsShard != e.shard.Name {
		e.raise(e.keyOf(clusters.SystemShard), survey.CodeShardName, "this file calls itself shard %q, and --as-shard %q: the manifest says the "+
			"latter, and copies from that in a cache of the same file are no part of the rest", e.shard.Name, e.AsShard)
	}
	for _, c := range e.order {
		e.checkCluster(c)
		e.checkChildren(c)
	}
	e.checkUnreadable()
	survey.WarnUnknown(e.view, e.file, map[string]bool{e.shard.Prefix: true})
}

func (e *extraction) raise(key string, code *finding.Code, format string, args ...any) {
	e.view.Report().Raise(key, code.Because(format, args...))
}

// note reports a finding that needs no decision.
func (e *extraction) note(key string, code *finding.Code, format string, args ...any) {
	e.view.Report().Raise(key, code.Because(format, args...).Decided(finding.Noted))
}

// keyOf is the key of a LogicalCluster, for problems of the whole logical cluster.
func (e *extraction) keyOf(name string) string {
	return string(clusters.LogicalClusterKey(e.shard.Prefix, name))
}

func (e *extraction) checkCluster(c *clusters.Cluster) {
	if c.System {
		e.raise(e.keyOf(c.Name), survey.CodeSystemCluster, "%q is a part of kcp itself", c.Name)
	}
	if c.Terminating != "" {
		e.raise(e.keyOf(c.Name), survey.CodeTerminating, "%q is being deleted since %s", c.Name, c.Terminating)
	}
	if c.Migrating != "" {
		e.raise(e.keyOf(c.Name), survey.CodeMigrating, "%q is being moved by LogicalClusterMigration %q", c.Name, c.Migrating)
	}
	if o := e.shard.Orphan(c.Path); o != nil && e.shard.Home(c.Path) == c {
		e.raise(o.Keys[0], codeKeysUnderPath, "%s of %q under its path %q", survey.Counted(o.Amount.Keys, "key"), c.Name, c.Path)
	}
	leads := e.leads(c)
	for _, p := range c.Problems {
		switch {
		case p.Code == clusters.CodeKeyMismatch:
			e.raise(p.Key, clusters.CodeKeyMismatch, "%s", p.Reason)
		case c.Hidden[p.Key]:
			e.raise(p.Key, codeOf(p), "it tells what the logical cluster needs: %s", p.Reason)
		case leads[p.Key]:
			e.raise(p.Key, codeOf(p), "which logical cluster it leads to, and --with-children takes along, cannot be told: %s", p.Reason)
		default:
			e.note(p.Key, codeOf(p), "it is taken as it is stored: %s", p.Reason)
		}
	}
	e.checkOwner(c)
}

// leads returns the keys of the Workspaces of a logical cluster whose children are taken too.
func (e *extraction) leads(c *clusters.Cluster) map[string]bool {
	keys := map[string]bool{}
	if e.WithChildren && len(c.Problems) > 0 {
		for _, w := range c.Workspaces {
			keys[w.Key] = true
		}
	}
	return keys
}

// checkOwner reports a parent that is not in the file.
func (e *extraction) checkOwner(c *clusters.Cluster) {
	owner := c.Owner
	switch {
	case c.System || owner != nil && e.file.Lives(owner.Cluster):
	case owner == nil:
		e.raise(e.keyOf(c.Name), survey.CodeOwnerUnseen, "the LogicalCluster of %q does not tell its owner", c.Name)
	default:
		e.raise(e.keyOf(c.Name), survey.CodeOwnerUnseen, "Workspace %q in %q is not in this file: look there whether it says that %q lives here", owner.Name,
			owner.Cluster, c.Name)
	}
}

// checkChildren reports logical clusters behind Workspaces that the archive does not take.
func (e *extraction) checkChildren(c *clusters.Cluster) {
	lying := survey.WorkspacesIn(c)
	for _, child := range e.shard.Children(c.Name) {
		if e.chosen[child.Name] != nil {
			continue
		}
		reason := survey.StaysWithout(child)
		if lying[child.Owner.Name] {
			reason = fmt.Sprintf("%q is not in the archive, and its Workspace %q is", child.Name, child.Owner.Name)
		}
		e.raise(e.keyOf(child.Name), survey.CodeChildrenStay, "%s; --with-children takes it along", reason)
	}
	for _, w := range c.Workspaces {
		child := e.shard.Cluster(w.Cluster)
		switch {
		case w.Cluster == "" || e.chosen[w.Cluster] != nil || child != nil && child.Owner != nil && child.Owner.Cluster == c.Name:
		case child == nil:
			e.raise(w.Key, survey.CodeChildElsewhere, "%q, behind Workspace %q in %q, %s", w.Cluster, w.Name, c.Name, survey.Elsewhere(w))
		case e.shard.Unread(child).Code != nil && !e.WithChildren:
			e.raise(e.keyOf(child.Name), survey.CodeChildrenStay,
				"%q is not in the archive: only Workspace %q in %q says that it belongs there, its LogicalCluster does not tell", child.Name, w.Name, c.Name)
		case e.shard.Unread(child).Code != nil:
			p := e.shard.Unread(child)
			e.raise(p.Key, codeOf(p), "it tells whether %q belongs to Workspace %q in %q: %s", child.Name, w.Name, c.Name, p.Reason)
		default:
			e.raise(w.Key, survey.CodeChildElsewhere, "%q lives here, but says that it does not belong to Workspace %q in %q, which names it", w.Cluster,
				w.Name, c.Name)
		}
	}
}

// checkUnreadable reports unreadable LogicalClusters, perhaps of children, that no Workspace names.
func (e *extraction) checkUnreadable() {
	if !e.WithChildren || e.shard.Unread(e.chosen[e.Name]).Code != nil { // the latter refuses
		return
	}
	named := map[string]bool{}
	for _, c := range e.order {
		for _, w := range c.Workspaces {
			named[w.Cluster] = true // and reported
		}
	}
	for _, c := range e.shard.Clusters {
		if p := e.shard.Unread(c); p.Code != nil && !c.System && e.chosen[c.Name] == nil && !named[c.Name] {
			e.note(p.Key, codeOf(p), "whose child %q is cannot be told; it is not in the archive: %s", c.Name, p.Reason)
		}
	}
}
