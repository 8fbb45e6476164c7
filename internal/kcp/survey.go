package kcp

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Named is a file and its path.
type Named struct {
	Path string
	*File
}

// Place is a storage of an installation.
type Place struct {
	Path   string `json:"file"`
	Prefix string `json:"prefix"` // of the storage in the file
	Shard  string `json:"shard"`  // the shard's name; "" if unknown, and always for a cache
}

// Installation is the result of comparing several files of one kcp installation, and covers only
// these files.
type Installation struct {
	Clusters []Resident // living on a shard of the files, by name and then in the order of the shards
	Orphans  []Stray    // by name, then in the order of the shards
	// copies from a shard where the logical cluster does not live, in the order of the caches
	Stale     []Stale
	Unchecked []Stale  // copies without a statement in the files: their shard was not given
	Absent    []string // names of shards that are registered and were not given
	Doubled   []string // names that several shards of the files have, as in files of different times
}

// Resident is a logical cluster on a shard where it lives.
type Resident struct {
	Place
	*Cluster
	Elsewhere   []Place // other shards where it lives: two files of different times, or an unfinished move
	OwnerGone   bool    // the logical cluster of its owner is in the files, but without such a Workspace
	Children    []Child
	Identities  []Identity
	Definitions []Needed
}

// Child is a logical cluster whose owner is in another logical cluster, or an unscheduled Workspace
// there.
type Child struct {
	Name      string   `json:"name"`      // of the logical cluster; "" if its Workspace is not scheduled
	Workspace string   `json:"workspace"` // "" if only the child names its owner
	Path      string   `json:"path"`      // kcp.io/path; "" if not in the files
	LivesOn   []string `json:"livesOn"`   // shards of these files
	Said      string   `json:"saidShard"` // according to its Workspace; "" for none
	Astray    bool     `json:"astray"`    // that shard is in the files, and the child does not live there
	// Stuck means that kcp does not correct the Workspace either, since its LogicalCluster is right
	// (kcp pkg/reconciler/core/logicalcluster/logicalcluster_reconcile_shard.go).
	Stuck bool `json:"stuck"`
}

// Identity is an identity of keys or bindings of a logical cluster.
type Identity struct {
	Hash      string    `json:"hash"`
	Resources []string  `json:"resources"` // bound or stored, "widgets.example.dev"
	Exports   []Exports `json:"exports"`   // the APIExports with the identity
	Bound     bool      `json:"bound"`     // by one of its APIBindings; otherwise no client can reach its keys
	Known     bool      `json:"known"`     // to some APIExport or APIBinding of these files
}

// Exports is an APIExport of an identity.
type Exports struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	Found   bool   `json:"found"` // the APIExport itself is in these files; else only an APIBinding names it
}

// Needed is a definition that a logical cluster needs in system:bound-crds.
type Needed struct {
	UID      string `json:"uid"`
	Resource string `json:"resource"`
	Schema   string `json:"schema"`  // name of the APIResourceSchema
	Virtual  bool   `json:"virtual"` // a virtual workspace serves the type: no objects are stored on a shard
	Present  bool   `json:"present"` // in system:bound-crds
}

// Stray has the records of a logical cluster on a shard where the logical cluster does not live.
type Stray struct {
	Place
	*Orphan
	PathOf  string   // the only logical cluster of these files whose path is the name; "" for none
	LivesOn []string // shards of these files
	Said    string   // the shard according to its Workspace; "" without a Workspace in the files
}

// Stale is a stale copy in a cache.
type Stale struct {
	Place            // of the cache
	LivesOn []string // shards of these files
	*Copy
}

// Survey compares files: shards of one installation, and files with its caches. A file may be in
// both lists.
func Survey(shards, caches []Named) *Installation {
	s := newSurvey(shards, caches)
	out := &Installation{Absent: s.absent()}
	for _, at := range s.shards {
		if s.named[at.Name] > 1 && !slices.Contains(out.Doubled, at.Name) {
			out.Doubled = append(out.Doubled, at.Name)
		}
		residents := make([]Resident, len(at.Clusters))
		for i, c := range at.Clusters {
			residents[i] = Resident{Place: at.Place, Cluster: c}
		}
		each(residents, func(r *Resident) { s.describe(r, at) })
		out.Clusters = append(out.Clusters, residents...)
		for _, o := range at.Orphans {
			of := s.ofPath[o.Name]
			out.Orphans = append(out.Orphans, Stray{
				Place: at.Place, Orphan: o, PathOf: of, LivesOn: called(s.lives[cmp.Or(of, o.Name)]),
				Said: s.said[cmp.Or(of, o.Name)],
			})
		}
	}
	slices.SortStableFunc(out.Clusters, func(a, b Resident) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(out.Orphans, func(a, b Stray) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range caches {
		for _, c := range f.Copies() {
			found := Stale{Place: Place{Path: f.Path, Prefix: c.Prefix}, LivesOn: called(s.lives[c.Cluster]), Copy: c}
			switch known, lives := s.check(c); {
			case !known:
				out.Unchecked = append(out.Unchecked, found)
			case !lives:
				out.Stale = append(out.Stale, found)
			}
		}
	}
	return out
}

type survey struct {
	shards     []shardAt
	registered []RegisteredShard    // on the root shard, or in a cache
	lives      map[string][]Place   // by logical cluster; without the logical clusters of every shard
	named      map[string]int       // number of shards by name
	said       map[string]string    // by logical cluster, the shard according to its Workspace
	owners     map[Owner]bool       // existing Workspaces, without their UIDs
	paths      map[string]string    // by logical cluster
	ofPath     map[string]string    // by path, the logical cluster; "" for several
	right      map[string]bool      // logical clusters that name the shard on which they live
	exports    map[string][]Exports // by identity
	seen       map[Export]bool
	bound      map[string]bool // identities in APIBindings
}

type shardAt struct {
	Place
	*Shard
}

func newSurvey(shards, caches []Named) *survey {
	s := &survey{
		lives: map[string][]Place{}, named: map[string]int{}, said: map[string]string{}, owners: map[Owner]bool{},
		paths: map[string]string{}, ofPath: map[string]string{}, right: map[string]bool{},
		exports: map[string][]Exports{}, seen: map[Export]bool{}, bound: map[string]bool{},
	}
	for _, f := range shards {
		for _, sh := range f.Shards {
			at := shardAt{Place{f.Path, sh.Prefix, sh.Name}, sh}
			s.shards, s.registered = append(s.shards, at), append(s.registered, sh.Registered...)
			if sh.Name != "" {
				s.named[sh.Name]++
			}
			for _, c := range sh.Clusters {
				s.addCluster(at.Place, c)
			}
		}
	}
	for _, f := range caches {
		for _, c := range f.Caches {
			s.registered = append(s.registered, c.Registered...)
			for _, e := range c.Exports {
				s.export(e)
			}
		}
	}
	return s
}

func (s *survey) addCluster(at Place, c *Cluster) {
	if !onEveryShard(c.Name) {
		s.lives[c.Name] = append(s.lives[c.Name], at)
	}
	if c.ShardName != "" && c.ShardName == at.Shard {
		s.right[c.Name] = true
	}
	if c.Path != "" {
		s.paths[c.Name] = c.Path
		if of, met := s.ofPath[c.Path]; met && of != c.Name {
			s.ofPath[c.Path] = ""
		} else {
			s.ofPath[c.Path] = c.Name
		}
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
	for _, bound := range c.Bound() {
		s.bound[bound.Identity] = true
	}
}

// absent returns the registered shards that were not given.
func (s *survey) absent() (names []string) {
	for _, r := range s.registered {
		if s.named[r.Name] == 0 {
			names = append(names, r.Name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// export adds an APIExport. A shard and a cache may both have it.
func (s *survey) export(e Export) {
	if e.Identity != "" && !s.seen[e] {
		s.seen[e] = true
		s.exports[e.Identity] = append(s.exports[e.Identity], Exports{e.Cluster, e.Name, true})
	}
}

// onEveryShard reports whether every shard has a logical cluster of that name.
func onEveryShard(name string) bool { return strings.HasPrefix(name, "system:") }

// check reports whether the cluster of a copy lives on the copy's shard; known is false if the
// files do not include the shard.
func (s *survey) check(c *Copy) (known, lives bool) {
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

// describe fills r by comparing a logical cluster with the files.
func (s *survey) describe(r *Resident, at shardAt) {
	c := r.Cluster
	r.Children, r.Identities, r.Definitions = s.childrenOf(c), s.identities(c), needed(at.Shard, c)
	if o := c.Owner; o != nil && o.Resource == "workspaces" && strings.HasPrefix(o.APIVersion, "tenancy.kcp.io/") {
		r.OwnerGone = len(s.lives[o.Cluster]) > 0 && !s.owners[Owner{Cluster: o.Cluster, Name: o.Name}]
	}
	for _, p := range s.lives[c.Name] {
		if p != at.Place {
			r.Elsewhere = append(r.Elsewhere, p)
		}
	}
}

// childrenOf returns the logical clusters of the Workspaces in c, and the logical clusters with an
// owner in c.
func (s *survey) childrenOf(c *Cluster) (children []Child) {
	seen := map[string]bool{}
	for _, w := range c.Workspaces {
		seen[w.Cluster] = true
		lives := s.lives[w.Cluster]
		child := Child{Name: w.Cluster, Workspace: w.Name, Path: s.paths[w.Cluster], LivesOn: called(lives),
			Said: w.ShardName}
		there := func(p Place) bool { return p.Shard == w.ShardName }
		child.Astray = w.Cluster != "" && s.named[w.ShardName] > 0 && !slices.ContainsFunc(lives, there)
		child.Stuck = child.Astray && s.right[w.Cluster]
		children = append(children, child)
	}
	for _, at := range s.shards {
		for _, child := range at.children[c.Name] {
			if !seen[child.Name] {
				seen[child.Name] = true
				children = append(children, Child{Name: child.Name, Path: child.Path,
					LivesOn: called(s.lives[child.Name])})
			}
		}
	}
	slices.SortStableFunc(children, func(a, b Child) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Workspace, b.Workspace))
	})
	return children
}

// identities returns the identities of the bindings and keys of c.
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
	for _, hash := range slices.Sorted(maps.Keys(all)) {
		i := all[hash]
		slices.Sort(i.Resources)
		slices.SortFunc(i.Exports, func(a, b Exports) int {
			return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
		})
		out = append(out, *i)
	}
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
