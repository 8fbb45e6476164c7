package purge

import (
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// judgeOwner finds out whether a Workspace goes on leading to a logical cluster here: whatever its LogicalCluster says whose it is.
func (c *choice) judgeOwner(v *transform.View, t *target) {
	for _, w := range c.Leading[t.name] {
		if !c.along(w) && c.leadsHere(t, w) {
			v.GoOn(w.Key, codeOwnerPointsHere, fmt.Sprintf("Workspace %q in %q says that %q lives %s", w.Name, w.Parent.Name, t.name, c.where(w)))
		}
	}
	if t.living != nil && c.unread(t.living).Code == "" {
		c.judgeUnseen(v, t)
	}
}

// judgeUnseen reports an owner of which nobody can tell whether it leads here.
func (c *choice) judgeUnseen(v *transform.View, t *target) {
	owner := t.living.Owner
	switch {
	case owner == nil:
		v.Warn(c.keyOf(t), survey.CodeOwnerUnseen, fmt.Sprintf("the LogicalCluster of %q does not tell its owner", t.name))
		return
	case owner.Resource != "workspaces" || !strings.HasPrefix(owner.APIVersion, "tenancy.kcp.io/"):
		v.Warn(c.keyOf(t), survey.CodeOwnerUnseen, fmt.Sprintf("%q belongs to %q in %q, which is no Workspace: look there whether it says that %q lives here",
			t.name, owner.Name, owner.Cluster, t.name))
		return
	}
	for _, w := range c.WorkspacesAt(owner.Cluster, owner.Name) {
		switch {
		case w.Cluster == t.name, w.Cluster == "" && c.along(w):
			return
		case w.Cluster == "":
			v.Warn(w.Key, survey.CodeOwnerUnseen, fmt.Sprintf("Workspace %q in %q cannot be read, or names nothing: look whether it says that %q lives here",
				w.Name, w.Parent.Name, t.name))
			return
		}
	}
	if c.file.Lives(owner.Cluster) {
		v.Warn(c.keyOf(t), survey.CodeOwnerUnseen, fmt.Sprintf("%q says that it belongs to Workspace %q in %q, which is not there, or leads to another", t.name, owner.Name, owner.Cluster))
		return
	}
	v.Warn(c.keyOf(t), survey.CodeOwnerUnseen, fmt.Sprintf("Workspace %q in %q is not in this file: look there whether it says that %q lives here",
		owner.Name, owner.Cluster, t.name))
}

// judgeUnreadOwners reports that Workspaces cannot be read, of which each may say that orphans live here.
func (c *choice) judgeUnreadOwners(v *transform.View) {
	if !c.options.Orphans || len(c.targets) == 0 {
		return
	}
	first, n := "", 0
	for _, shard := range c.file.Shards {
		for _, parent := range shard.Clusters {
			problems := byKey(parent.Problems)
			for _, w := range parent.Workspaces {
				if !survey.Unread(problems[w.Key]) {
					continue
				}
				if n++; n == 1 {
					first = w.Key
				}
			}
		}
	}
	if n > 0 {
		v.Warn(first, survey.CodeOwnerUnseen, fmt.Sprintf("Workspaces of this file cannot be read (%d): whether one says that these logical clusters live here cannot be told", n))
	}
}

// along tells whether a Workspace goes too.
func (c *choice) along(w survey.Link) bool { return w.Shard == c.shard && c.goes(w.Parent.Name) }

// leadsHere tells whether a Workspace says of its logical cluster that it lives on this shard. Where either does not say a name,
// it does, but of orphans of one that lives on another shard of the file.
func (c *choice) leadsHere(t *target, w survey.Link) bool {
	if w.ShardName == "" || c.shardName == "" {
		return t.orphan == nil || !c.file.Lives(t.name)
	}
	return w.ShardName == c.shardName || w.ShardName == c.shard.Name
}

// where is what a Workspace says of its shard.
func (c *choice) where(w survey.Link) string {
	switch {
	case w.ShardName == "":
		return "somewhere: it has no annotation core.kcp.io/shard"
	case c.shardName == "":
		return fmt.Sprintf("on shard %q, and this file does not say what this one is called (--as-shard)", w.ShardName)
	}
	return fmt.Sprintf("on shard %q, which is this one", w.ShardName)
}

// judgeChildren reports logical clusters that stay while the Workspaces that lead to them go.
func (c *choice) judgeChildren(v *transform.View) {
	for _, t := range c.targets {
		if t.living == nil && t.orphan == nil {
			continue
		}
		lying := c.workspacesOf(t)
		told := map[string]bool{} // Workspaces of which a logical cluster says that they are its owner
		for _, child := range c.shard.Children(t.name) {
			told[child.Owner.Name] = true
			switch {
			case c.goes(child.Name):
			case lying[child.Owner.Name]:
				v.Warn(c.lcKey(child.Name), survey.CodeChildrenStay, fmt.Sprintf("%q stays, and its Workspace %q goes with %q", child.Name, child.Owner.Name, t.name))
			case t.living != nil: // else the Workspace is where the parent lives
				v.Warn(c.lcKey(child.Name), survey.CodeChildrenStay, survey.StaysWithout(child))
			}
		}
		if t.living != nil {
			c.judgeWorkspaces(v, t, told)
		}
	}
}

// workspacesOf are the names of the Workspaces among the keys that go.
func (c *choice) workspacesOf(t *target) map[string]bool {
	if t.living != nil {
		return survey.WorkspacesIn(t.living)
	}
	names := map[string]bool{}
	for _, key := range t.orphan.Keys {
		if k, _, err := c.Layouts.Parse([]byte(key)); err == nil && k.Identity != "" && k.Resource == clusters.WorkspaceType() {
			names[k.Name] = true
		}
	}
	return names
}

// judgeWorkspaces reports what Workspaces lead to that go, and that does not say itself that it belongs there.
func (c *choice) judgeWorkspaces(v *transform.View, t *target, told map[string]bool) {
	problems := byKey(t.living.Problems)
	for _, w := range t.living.Workspaces {
		child, closedBy := c.shard.Cluster(w.Cluster), problems[w.Key]
		switch {
		case w.Cluster == "" && (told[w.Name] || !survey.Unread(closedBy)) || c.goes(w.Cluster):
		case w.Cluster == "" && c.options.WithChildren:
			v.GoOn(w.Key, closedBy.Code, fmt.Sprintf("which logical cluster Workspace %q in %q leads to, and whether it lives here, cannot be told: %s",
				w.Name, t.name, closedBy.Reason))
		case w.Cluster == "":
			v.Warn(w.Key, survey.CodeChildElsewhere, fmt.Sprintf("Workspace %q in %q goes, and which logical cluster it leads to cannot be told: %s", w.Name, t.name, closedBy.Reason))
		case child == nil:
			v.Warn(w.Key, survey.CodeChildElsewhere, fmt.Sprintf("%q, behind Workspace %q in %q, %s; the Workspace goes", w.Cluster, w.Name, t.name, survey.Elsewhere(w)))
		case child.Owner == nil:
			c.judgeUnreadable(v, t, w, child)
		case child.Owner.Cluster != t.name:
			v.Warn(w.Key, survey.CodeChildElsewhere, fmt.Sprintf("%q lives here, but says that it does not belong to Workspace %q in %q, which names it, and goes",
				w.Cluster, w.Name, t.name))
		}
	}
}

// judgeUnreadable reports a logical cluster that may be a child: nothing but a Workspace says so, which anyone may have written.
func (c *choice) judgeUnreadable(v *transform.View, t *target, w clusters.Workspace, child *clusters.Cluster) {
	if p := c.unread(child); p.Code != "" && c.options.WithChildren {
		v.GoOn(p.Key, p.Code, fmt.Sprintf("whether %q belongs to Workspace %q in %q, and is to go with it, cannot be told: %s", child.Name, w.Name, t.name, p.Reason))
	}
	v.Warn(c.lcKey(child.Name), survey.CodeChildrenStay,
		fmt.Sprintf("%q stays: only Workspace %q in %q says that it belongs there, its LogicalCluster does not tell", child.Name, w.Name, t.name))
}

func (c *choice) lcKey(name string) string {
	return string(clusters.LogicalClusterKey(c.shard.Prefix, name))
}

// byKey are problems by the keys of their records.
func byKey(problems []clusters.Problem) map[string]clusters.Problem {
	out := make(map[string]clusters.Problem, len(problems))
	for _, p := range problems {
		out[p.Key] = p
	}
	return out
}
