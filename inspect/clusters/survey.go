package clusters

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Named is a file and how it is called.
type Named struct {
	Path string
	*File
}

// Place is a storage of an installation.
type Place struct {
	Path   string // of the file
	Prefix string // of the storage in it
	Shard  string // the shard's name, "" where nothing says so; always "" of a cache
}

// Installation is what several files of one kcp tell together. It knows no more than the files that were given: what lies
// elsewhere, or nowhere, is not told apart.
type Installation struct {
	Clusters []Resident // that live on a shard that was given, by name and then in the order of the shards
	Orphans  []Stray    // by name, and then in the order of the shards
	Stale    []Stale    // copies of logical clusters that do not live where they were copied from, in the order of the caches
	Unjudged []Stale    // copies of which none of the files tells: their shard was not given
	Absent   []string   // names of shards that are registered and were not given
	Doubled  []string   // names of shards that several of the files say they are, as files of different times do
}

// Resident is a logical cluster where it lives.
type Resident struct {
	Place
	*Cluster
	Elsewhere   []Place // where it lives too: two files of different times, or a move half done
	OwnerGone   bool    // the logical cluster of its owner is in the files, and has no such Workspace
	Children    []Child
	Identities  []Identity
	Definitions []Needed
}

// Child is a logical cluster that has its owner in another, or a Workspace there that has none yet.
type Child struct {
	Name      string // of the logical cluster; "" while its Workspace is not scheduled
	Workspace string // "" where no Workspace tells of it, and the child itself alone does
	Path      string // kcp.io/path; "" where it is not among the files
	LivesOn   []Place
	Said      string // the shard that its Workspace says; "" where that says none
	Astray    bool   // it does not live on that shard, which was given
	// Stuck: it is astray, and says itself where it lives. kcp corrects a Workspace only beside a LogicalCluster that it has to
	// correct too (kcp pkg/reconciler/core/logicalcluster/logicalcluster_reconcile_shard.go).
	Stuck bool
}

// Identity is one of the identities that a logical cluster has keys under or a binding to.
type Identity struct {
	Hash      string
	Resources []string  // that are bound or stored, "widgets.example.dev"
	Exports   []Exports // who exports under it
	Bound     bool      // an APIBinding of the cluster binds it; else its keys are out of reach of everyone
	Known     bool      // an APIExport or APIBinding of the files vouches for it
}

// Exports is an APIExport, and whether it was seen.
type Exports struct {
	Cluster string
	Name    string
	Found   bool // it is in one of the files; else only an APIBinding tells of it
}

// Needed is a definition that a logical cluster needs in system:bound-crds of its shard.
type Needed struct {
	UID      string
	Resource schema.GroupResource
	Schema   string // name of the APIResourceSchema
	Virtual  bool   // its objects are served from elsewhere
	Present  bool
}

// Stray is what a shard has of a logical cluster that does not live there.
type Stray struct {
	Place
	*Orphan
	LivesOn []Place
	Said    string // the shard that its Workspace says; "" where none of the files has that
}

// Stale is a copy in a cache.
type Stale struct {
	Place   // of the cache
	LivesOn []Place
	*Copy
}

// Survey puts files side by side: shards of one installation, and the files with its caches. A file that is among both counts once
// as each. Nothing of them is changed.
func Survey(shards, caches []Named) *Installation {
	s := newSurvey(shards, caches)
	out := &Installation{Absent: s.absent()}
	for _, at := range s.shards {
		if s.named[at.Name] > 1 && !slices.Contains(out.Doubled, at.Name) {
			out.Doubled = append(out.Doubled, at.Name)
		}
		for _, c := range at.Clusters {
			out.Clusters = append(out.Clusters, s.resident(at, c))
		}
		for _, o := range at.Orphans {
			out.Orphans = append(out.Orphans, Stray{Place: at.Place, Orphan: o, LivesOn: s.lives[o.Name], Said: s.said[o.Name]})
		}
	}
	slices.SortStableFunc(out.Clusters, func(a, b Resident) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(out.Orphans, func(a, b Stray) int { return strings.Compare(a.Name, b.Name) })
	for _, at := range s.caches {
		for _, c := range at.Copies {
			found := Stale{Place: at.Place, LivesOn: s.lives[c.Cluster], Copy: c}
			switch known, lives := s.judge(c); {
			case !known:
				out.Unjudged = append(out.Unjudged, found)
			case !lives:
				out.Stale = append(out.Stale, found)
			}
		}
	}
	return out
}

// survey is what all files tell, by what is looked up.
type survey struct {
	shards   []shardAt
	caches   []cacheAt
	lives    map[string][]Place    // by logical cluster; not those that each shard has
	named    map[string]int        // how many shards are of a name
	said     map[string]string     // by logical cluster, the shard that its Workspace says
	owners   map[Owner]bool        // Workspaces that are there, without their UIDs
	paths    map[string]string     // by logical cluster
	settled  map[string]bool       // logical clusters that say the shard that they live on
	children map[string][]*Cluster // by the cluster that the owner lies in
	exports  map[string][]Exports  // by identity
	seen     map[Export]bool
	bound    map[string]bool // identities that an APIBinding names
}

type shardAt struct {
	Place
	*Shard
	definitions map[string]bool // UIDs of those that are there
}

type cacheAt struct {
	Place
	*Cache
}

func newSurvey(shards, caches []Named) *survey {
	s := &survey{
		lives: map[string][]Place{}, named: map[string]int{}, said: map[string]string{}, owners: map[Owner]bool{},
		paths: map[string]string{}, settled: map[string]bool{}, children: map[string][]*Cluster{},
		exports: map[string][]Exports{}, seen: map[Export]bool{}, bound: map[string]bool{},
	}
	for _, f := range shards {
		for _, sh := range f.Shards {
			at := shardAt{Place{f.Path, sh.Prefix, sh.Name}, sh, map[string]bool{}}
			for _, d := range sh.Definitions {
				at.definitions[d.Name] = true
			}
			s.shards = append(s.shards, at)
			if sh.Name != "" {
				s.named[sh.Name]++
			}
			for _, c := range sh.Clusters {
				s.meet(at.Place, c)
			}
		}
	}
	for _, f := range caches {
		for _, c := range f.Caches {
			s.caches = append(s.caches, cacheAt{Place{Path: f.Path, Prefix: c.Prefix}, c})
			for _, e := range c.Exports {
				s.export(e)
			}
		}
	}
	return s
}

// meet takes what a logical cluster tells about others.
func (s *survey) meet(at Place, c *Cluster) {
	if !everywhere(c.Name) {
		s.lives[c.Name] = append(s.lives[c.Name], at)
	}
	if c.ShardName != "" && c.ShardName == at.Shard {
		s.settled[c.Name] = true
	}
	if c.Path != "" {
		s.paths[c.Name] = c.Path
	}
	if c.Owner != nil {
		s.children[c.Owner.Cluster] = append(s.children[c.Owner.Cluster], c)
	}
	for _, w := range c.Workspaces {
		s.owners[Owner{Cluster: c.Name, Name: w.Name}] = true
		if w.Cluster != "" && w.ShardName != "" {
			s.said[w.Cluster] = w.ShardName
		}
	}
	for _, e := range c.Exports {
		s.export(e)
	}
	for _, b := range c.Bindings {
		for _, bound := range b.Bound {
			s.bound[bound.Identity] = true
		}
	}
}

// absent are the shards that a root shard, or a cache's copies of it, tell of, and that were not given.
func (s *survey) absent() (names []string) {
	var all []RegisteredShard
	for _, at := range s.shards {
		all = append(all, at.Registered...)
	}
	for _, at := range s.caches {
		all = append(all, at.Registered...)
	}
	for _, r := range all {
		if s.named[r.Name] == 0 {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// export notes an APIExport that is there. A shard and a cache may both have it.
func (s *survey) export(e Export) {
	if e.Identity != "" && !s.seen[e] {
		s.seen[e] = true
		s.exports[e.Identity] = append(s.exports[e.Identity], Exports{e.Cluster, e.Name, true})
	}
}

// everywhere tells whether each shard has a logical cluster of that name of its own.
func everywhere(name string) bool { return strings.HasPrefix(name, "system:") }

func (s *survey) resident(at shardAt, c *Cluster) Resident {
	r := Resident{Place: at.Place, Cluster: c, Children: s.childrenOf(c), Identities: s.identities(c), Definitions: needed(at, c)}
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

// childrenOf are those that Workspaces in c tell of, and those that say themselves that their owner lies in c.
func (s *survey) childrenOf(c *Cluster) (children []Child) {
	seen := map[string]bool{}
	for _, w := range c.Workspaces {
		seen[w.Cluster] = true
		child := Child{Name: w.Cluster, Workspace: w.Name, Path: s.paths[w.Cluster], LivesOn: s.lives[w.Cluster], Said: w.ShardName}
		there := func(p Place) bool { return p.Shard == w.ShardName }
		child.Astray = w.Cluster != "" && s.named[w.ShardName] > 0 && !slices.ContainsFunc(child.LivesOn, there)
		child.Stuck = child.Astray && s.settled[w.Cluster]
		children = append(children, child)
	}
	for _, child := range s.children[c.Name] {
		if !seen[child.Name] {
			seen[child.Name] = true
			children = append(children, Child{Name: child.Name, Path: child.Path, LivesOn: s.lives[child.Name]})
		}
	}
	slices.SortStableFunc(children, func(a, b Child) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Workspace, b.Workspace))
	})
	return children
}

// identities are those that c has bound, and those that it has keys under: what is left of a binding that is gone has an
// identity too.
func (s *survey) identities(c *Cluster) []Identity {
	all := map[string]*Identity{}
	of := func(hash string, gr schema.GroupResource) *Identity {
		i := all[hash]
		if i == nil {
			i = &Identity{Hash: hash, Exports: slices.Clone(s.exports[hash])}
			i.Known = len(i.Exports) > 0 || s.bound[hash]
			all[hash] = i
		}
		if name := gr.String(); !slices.Contains(i.Resources, name) {
			i.Resources = append(i.Resources, name)
		}
		return i
	}
	for _, b := range c.Bindings {
		for _, bound := range b.Bound {
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
	}
	for _, r := range c.Resources {
		if r.Identity != "" {
			of(r.Identity, r.Resource)
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

// needed are the definitions that the bindings of c name.
func needed(at shardAt, c *Cluster) (all []Needed) {
	seen := map[string]bool{}
	for _, b := range c.Bindings {
		for _, bound := range b.Bound {
			if bound.UID == "" || seen[bound.UID] {
				continue
			}
			seen[bound.UID] = true
			all = append(all, Needed{bound.UID, bound.Resource, bound.Schema, bound.Virtual, at.definitions[bound.UID]})
		}
	}
	slices.SortFunc(all, func(a, b Needed) int {
		return cmp.Or(compareResources(a.Resource, b.Resource), strings.Compare(a.UID, b.UID))
	})
	return all
}

// judge tells whether the logical cluster of a copy lives on the shard that the copy is of, where the files tell.
func (s *survey) judge(c *Copy) (known, lives bool) {
	for _, at := range s.shards {
		if at.Name == c.Shard {
			known = true
			lives = lives || at.Cluster(c.Cluster) != nil
		}
	}
	if !known && len(s.lives[c.Cluster]) > 0 {
		return true, false
	}
	return known, lives
}
