package clusters

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *survey) resident(at shardAt, c *Cluster) Resident {
	r := Resident{Place: at.Place, Cluster: c, Children: s.childrenOf(c), Identities: s.identities(c), Definitions: needed(at.Shard, c)}
	if o := c.Owner; o != nil && o.Resource == "workspaces" && strings.HasPrefix(o.APIVersion, "tenancy.kcp.io/") {
		r.OwnerGone = len(s.lives[o.Cluster]) > 0 && !s.owners[Owner{Cluster: o.Cluster, Name: o.Name}]
	}
	for _, p := range s.lives[c.Name] {
		if p != at.Place {
			r.Elsewhere = append(r.Elsewhere, p)
		}
	}
	return r
}

// childrenOf returns the logical clusters behind Workspaces in c, and those that name an owner in
// c.
func (s *survey) childrenOf(c *Cluster) (children []Child) {
	seen := map[string]bool{}
	for _, w := range c.Workspaces {
		seen[w.Cluster] = true
		lives := s.lives[w.Cluster]
		child := Child{Name: w.Cluster, Workspace: w.Name, Path: s.paths[w.Cluster], LivesOn: called(lives), Said: w.ShardName}
		there := func(p Place) bool { return p.Shard == w.ShardName }
		child.Astray = w.Cluster != "" && s.named[w.ShardName] > 0 && !slices.ContainsFunc(lives, there)
		child.Stuck = child.Astray && s.right[w.Cluster]
		children = append(children, child)
	}
	for _, child := range s.children[c.Name] {
		if !seen[child.Name] {
			seen[child.Name] = true
			children = append(children, Child{Name: child.Name, Path: child.Path, LivesOn: called(s.lives[child.Name])})
		}
	}
	slices.SortStableFunc(children, func(a, b Child) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Workspace, b.Workspace))
	})
	return children
}

// identities returns the identities that c has bound, and those that it has keys under, also of
// bindings that are gone.
func (s *survey) identities(c *Cluster) []Identity {
	all := map[string]*Identity{}
	of := func(hash string, gr schema.GroupResource) *Identity {
		i := all[hash]
		if i == nil {
			i = &Identity{Hash: hash, Exports: append([]Exports{}, s.exports[hash]...)}
			i.Known = len(i.Exports) > 0 || s.bound[hash]
			all[hash] = i
		}
		if name := gr.String(); !slices.Contains(i.Resources, name) {
			i.Resources = append(i.Resources, name)
		}
		return i
	}
	for b, bound := range c.Bound() {
		if bound.Identity == "" {
			continue
		}
		i := of(bound.Identity, bound.Resource)
		i.Bound = true
		same := func(e Exports) bool { return e.Cluster == b.Export.Cluster && e.Name == b.Export.Name }
		if b.Export.Cluster != "" && !slices.ContainsFunc(i.Exports, same) {
			i.Exports = append(i.Exports, Exports{b.Export.Cluster, b.Export.Name, false})
		}
	}
	for _, r := range c.Resources {
		if r.Identity != "" {
			of(r.Identity, schema.GroupResource(r.Resource))
		}
	}
	out := make([]Identity, 0, len(all))
	for _, i := range all {
		slices.Sort(i.Resources)
		slices.SortFunc(i.Exports, func(a, b Exports) int {
			return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
		})
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Identity) int { return strings.Compare(a.Hash, b.Hash) })
	return out
}

func needed(s *Shard, c *Cluster) (all []Needed) {
	var types []Bound
	seen := map[string]bool{}
	for _, bound := range c.Bound() {
		if bound.UID != "" && !seen[bound.UID] {
			seen[bound.UID] = true
			types = append(types, bound)
		}
	}
	slices.SortFunc(types, func(a, b Bound) int {
		return cmp.Or(compareResources(a.Resource, b.Resource), strings.Compare(a.UID, b.UID))
	})
	for _, t := range types {
		all = append(all, Needed{t.UID, t.Resource.String(), t.Schema, t.Virtual, s.Definition(t.UID) != nil})
	}
	return all
}
