package logicalcluster

import (
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
)

// index is what a file says about its logical clusters, by what a purge asks for: it may ask for thousands of them.
type index struct {
	leading map[string][]led       // Workspaces, by the logical cluster that they name
	lying   map[location][]led     // the same, by where they lie
	copies  map[string][]cacheCopy // by the logical cluster, of all caches
	caches  map[string]bool        // their prefixes
}

// led is a Workspace and where it lies.
type led struct {
	*clusters.Workspace
	shard  *clusters.Shard
	parent *clusters.Cluster
}

type location struct{ parent, name string }

type cacheCopy struct {
	prefix string // of the cache
	*clusters.Copy
}

func newIndex(f *clusters.File) *index {
	x := &index{leading: map[string][]led{}, lying: map[location][]led{}, copies: map[string][]cacheCopy{}, caches: map[string]bool{}}
	for _, shard := range f.Shards {
		for _, parent := range shard.Clusters {
			for i := range parent.Workspaces {
				w := led{&parent.Workspaces[i], shard, parent}
				at := location{parent.Name, w.Name}
				x.lying[at] = append(x.lying[at], w)
				if w.Cluster != "" {
					x.leading[w.Cluster] = append(x.leading[w.Cluster], w)
				}
			}
		}
	}
	for _, cache := range f.Caches {
		x.caches[cache.Prefix] = true
		for _, copied := range cache.Copies {
			x.copies[copied.Cluster] = append(x.copies[copied.Cluster], cacheCopy{cache.Prefix, copied})
		}
	}
	return x
}

// recorded is where a file has records, of whatever revision, deletions among them.
type recorded map[place]bool

// recorded reads all records of a file.
func (s *selection) recorded(ctx context.Context, r *inspect.Reader) (recorded, error) {
	all := recorded{}
	for rec, err := range r.Snapshot().Records(ctx) {
		if err != nil {
			return nil, err
		}
		k, _, err := s.layouts.Parse(rec.Key)
		if err != nil {
			continue
		}
		if at := (place{k.Prefix, k.Shard, k.Cluster}); !all[at] {
			all[at.clone()] = true
		}
	}
	return all, nil
}

// problemOf is what is wrong with the record under a key, the zero Problem for nothing.
func problemOf(problems []clusters.Problem, key string) clusters.Problem {
	i := slices.IndexFunc(problems, func(p clusters.Problem) bool { return p.Key == key })
	if i < 0 {
		return clusters.Problem{}
	}
	return problems[i]
}

// closed tells whether the problem of a record is that nobody could read it.
func closed(p clusters.Problem) bool {
	return p.Code == clusters.CodeEncrypted || p.Code == clusters.CodeUndecodable
}
