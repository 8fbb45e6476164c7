package logicalcluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect/clusters"
)

// judge reports what speaks against an archive, and what it will not have.
func (e *extraction) judge() {
	e.report.WarnOfFile(e.src)
	e.judgeNames()
	e.judgeShardName()
	for _, name := range e.order {
		e.judgeCluster(e.chosen[name])
		e.judgeChildren(e.chosen[name])
	}
	e.judgeUnreadable()
	for _, u := range e.file.Unknown {
		if s, ok := e.taken.layouts.Of([]byte(u.Key)); ok && s.Prefix == e.shard.Prefix {
			e.report.Warn(u.Key, codeUnknownKey, "it is of no logical cluster, and stays: "+u.Reason)
		}
	}
}

// judgeShardName reports a name for the shard that is not its own.
func (e *extraction) judgeShardName() {
	if e.AsShard != "" && e.shard.Name != "" && e.AsShard != e.shard.Name {
		e.report.Warn(e.keyOf(clusterShard), codeShardName, fmt.Sprintf("this file calls itself shard %q, and --as-shard %q: the manifest says the "+
			"latter, and copies from that in a cache of the same file are no part of the rest", e.shard.Name, e.AsShard))
	}
}

// keyOf is the key that a problem of a whole logical cluster is about: its LogicalCluster's.
func (e *extraction) keyOf(name string) string {
	return string(clusters.LogicalClusterKey(e.shard.Prefix, name))
}

func (e *extraction) judgeCluster(c *clusters.Cluster) {
	goOn := func(key, code, format string, args ...any) {
		e.report.GoOn(key, code, fmt.Sprintf(format, args...), e.allowed(code))
	}
	if c.System {
		goOn(e.keyOf(c.Name), codeSystemCluster, "%q is a part of kcp itself", c.Name)
	}
	if c.Terminating != "" {
		goOn(e.keyOf(c.Name), codeTerminating, "%q is being deleted since %s", c.Name, c.Terminating)
	}
	if c.Migrating != "" {
		goOn(e.keyOf(c.Name), codeMigrating, "%q is being moved by LogicalClusterMigration %q", c.Name, c.Migrating)
	}
	leads := e.leads(c)
	for _, p := range c.Problems {
		switch {
		case p.Code == clusters.CodeKeyMismatch:
			goOn(p.Key, codeKeyMismatch, "%s", p.Reason)
		case e.tells(p.Key):
			e.report.Refuse(p.Key, p.Code, "it tells what the logical cluster needs: "+p.Reason)
		case leads[p.Key] && closed(p):
			e.report.Refuse(p.Key, p.Code, "which logical cluster it leads to, and --with-children takes along, cannot be told: "+p.Reason)
		default:
			e.report.Warn(p.Key, p.Code, "it is taken as it is stored: "+p.Reason)
		}
	}
	e.judgeOwner(c)
}

// leads are the keys of the Workspaces of a logical cluster, where the archive is to have what they lead to.
func (e *extraction) leads(c *clusters.Cluster) map[string]bool {
	keys := map[string]bool{}
	if e.WithChildren && len(c.Problems) > 0 {
		for _, w := range c.Workspaces {
			keys[w.Key] = true
		}
	}
	return keys
}

// tells says whether the object under key is one without which nobody knows what an archive has to hold.
func (e *extraction) tells(key string) bool {
	k, _, err := e.taken.layouts.Parse([]byte(key))
	if err != nil || !k.Custom {
		return false
	}
	return k.Resource == schema.GroupResource{Group: "apis.kcp.io", Resource: "apibindings"} || key == e.keyOf(k.Cluster)
}

// judgeOwner reports a parent that is not in the file.
func (e *extraction) judgeOwner(c *clusters.Cluster) {
	owner := c.Owner
	switch {
	case c.System || owner != nil && e.lives(owner.Cluster):
	case owner == nil:
		e.report.Warn(e.keyOf(c.Name), codeOwnerUnseen, fmt.Sprintf("the LogicalCluster of %q does not tell its owner", c.Name))
	default:
		e.report.Warn(e.keyOf(c.Name), codeOwnerUnseen,
			fmt.Sprintf("Workspace %q in %q is not in this file: look there whether it says that %q lives here", owner.Name, owner.Cluster, c.Name))
	}
}

// lives tells whether a logical cluster lives on any shard of the file.
func (e *extraction) lives(name string) bool {
	for _, shard := range e.file.Shards {
		if shard.Cluster(name) != nil {
			return true
		}
	}
	return false
}

// judgeChildren reports what the Workspaces of a logical cluster lead to and the archive does not take.
func (e *extraction) judgeChildren(c *clusters.Cluster) {
	lying := workspacesIn(c)
	for _, child := range e.shard.Children(c.Name) {
		if e.chosen[child.Name] != nil {
			continue
		}
		reason := staysWithout(child)
		if lying[child.Owner.Name] {
			reason = fmt.Sprintf("%q is not in the archive, and its Workspace %q is", child.Name, child.Owner.Name)
		}
		e.report.Warn(e.keyOf(child.Name), codeChildrenStay, reason+"; --with-children takes it along")
	}
	for _, w := range c.Workspaces {
		child := e.shard.Cluster(w.Cluster)
		switch {
		case w.Cluster == "" || e.chosen[w.Cluster] != nil || child != nil && child.Owner != nil && child.Owner.Cluster == c.Name:
		case child == nil:
			e.report.Warn(w.Key, codeChildElsewhere, fmt.Sprintf("%q, behind Workspace %q in %q, %s", w.Cluster, w.Name, c.Name, elsewhere(w)))
		case closed(e.problem(child)) && !e.WithChildren:
			e.report.Warn(e.keyOf(child.Name), codeChildrenStay,
				fmt.Sprintf("%q is not in the archive: only Workspace %q in %q says that it belongs there, its LogicalCluster does not tell", child.Name, w.Name, c.Name))
		case closed(e.problem(child)):
			e.report.Refuse(e.keyOf(child.Name), e.problem(child).Code,
				fmt.Sprintf("it tells whether %q belongs to Workspace %q in %q: %s", child.Name, w.Name, c.Name, e.problem(child).Reason))
		default:
			e.report.Warn(w.Key, codeChildElsewhere,
				fmt.Sprintf("%q lives here, but says that it does not belong to Workspace %q in %q, which names it", w.Cluster, w.Name, c.Name))
		}
	}
}

func elsewhere(w clusters.Workspace) string {
	if w.ShardName == "" {
		return "does not live on this shard"
	}
	return fmt.Sprintf("does not live on this shard; the Workspace says that it lives on %q", w.ShardName)
}

// judgeUnreadable reports the LogicalClusters that do not tell whose children they are, where children are taken along and no Workspace
// tells it either.
func (e *extraction) judgeUnreadable() {
	if !e.WithChildren || closed(e.problem(e.chosen[e.Name])) { // the latter refuses
		return
	}
	named := map[string]bool{}
	for _, name := range e.order {
		for _, w := range e.chosen[name].Workspaces {
			named[w.Cluster] = true // and reported
		}
	}
	for _, c := range e.shard.Clusters {
		if p := e.problem(c); closed(p) && !c.System && e.chosen[c.Name] == nil && !named[c.Name] {
			e.report.Warn(p.Key, p.Code, fmt.Sprintf("whose child %q is cannot be told; it is not in the archive: %s", c.Name, p.Reason))
		}
	}
}

// problem is that of a LogicalCluster, the zero one where it has none.
func (e *extraction) problem(c *clusters.Cluster) clusters.Problem {
	return problemOf(c.Problems, e.keyOf(c.Name))
}
