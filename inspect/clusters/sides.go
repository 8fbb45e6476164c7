package clusters

import (
	"slices"
	"strings"
)

type survey struct {
	shards   []shardAt
	caches   []cacheAt
	lives    map[string][]Place    // by logical cluster; not those that each shard has
	named    map[string]int        // how many shards are of a name
	said     map[string]string     // by logical cluster, the shard that its Workspace says
	owners   map[Owner]bool        // Workspaces that are there, without their UIDs
	paths    map[string]string     // by logical cluster
	right    map[string]bool       // logical clusters that name the shard on which they live
	children map[string][]*Cluster // by the cluster that the owner lies in
	exports  map[string][]Exports  // by identity
	seen     map[Export]bool
	bound    map[string]bool // identities that an APIBinding names
}

type shardAt struct {
	Place
	*Shard
}

type cacheAt struct {
	Place
	*Cache
}

func newSurvey(shards, caches []Named) *survey {
	s := &survey{
		lives: map[string][]Place{}, named: map[string]int{}, said: map[string]string{}, owners: map[Owner]bool{},
		paths: map[string]string{}, right: map[string]bool{}, children: map[string][]*Cluster{},
		exports: map[string][]Exports{}, seen: map[Export]bool{}, bound: map[string]bool{},
	}
	for _, f := range shards {
		for _, sh := range f.Shards {
			at := shardAt{Place{f.Path, sh.Prefix, sh.Name}, sh}
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

func (s *survey) meet(at Place, c *Cluster) {
	if !everywhere(c.Name) {
		s.lives[c.Name] = append(s.lives[c.Name], at)
	}
	if c.ShardName != "" && c.ShardName == at.Shard {
		s.right[c.Name] = true
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
	for _, bound := range c.Bound() {
		s.bound[bound.Identity] = true
	}
}

// absent returns the shards that are registered on the root shard, or in a cache, and were not
// given.
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
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// export adds an APIExport. A shard and a cache may both have it.
func (s *survey) export(e Export) {
	if e.Identity != "" && !s.seen[e] {
		s.seen[e] = true
		s.exports[e.Identity] = append(s.exports[e.Identity], Exports{e.Cluster, e.Name, true})
	}
}

// everywhere tells whether each shard has a logical cluster of that name.
func everywhere(name string) bool { return strings.HasPrefix(name, "system:") }

// check tells whether the logical cluster of a copy lives on the shard of the copy, where the files
// tell.
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
