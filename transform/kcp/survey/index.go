package survey

import (
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
)

// Index looks up Workspaces and copies by logical cluster: a purge asks for thousands.
type Index struct {
	Leading map[string][]Link           // Workspaces, by the logical cluster that they name
	lying   map[location][]Link         // the same, by where they lie
	Copies  map[string][]*clusters.Copy // by the logical cluster, of all caches
	Caches  map[string]bool             // their prefixes
}

// Link is a Workspace and its place in the tree.
type Link struct {
	*clusters.Workspace
	Shard  *clusters.Shard
	Parent *clusters.Cluster
}

type location struct{ parent, name string }

// NewIndex makes the Index of a file.
func NewIndex(f *clusters.File) *Index {
	x := &Index{Leading: map[string][]Link{}, lying: map[location][]Link{}, Copies: map[string][]*clusters.Copy{}, Caches: map[string]bool{}}
	for _, shard := range f.Shards {
		for _, parent := range shard.Clusters {
			for i := range parent.Workspaces {
				w := Link{&parent.Workspaces[i], shard, parent}
				at := location{parent.Name, w.Name}
				x.lying[at] = append(x.lying[at], w)
				if w.Cluster != "" {
					x.Leading[w.Cluster] = append(x.Leading[w.Cluster], w)
				}
			}
		}
	}
	for _, cache := range f.Caches {
		x.Caches[cache.Prefix] = true
	}
	for _, copied := range f.Copies() {
		x.Copies[copied.Cluster] = append(x.Copies[copied.Cluster], copied)
	}
	return x
}

// ErrShardUnknown is returned for a file with copies of the logical cluster, of which it does not
// say whether this shard wrote them.
var ErrShardUnknown = errors.New("the file does not say what this shard is called")

// ShardUnknown is ErrShardUnknown for a place in a cache.
func (p Place) ShardUnknown() error {
	return fmt.Errorf("%w: the cache below %q has records of %q, from shard %q among others; name this one with --as-shard",
		ErrShardUnknown, p.Prefix, p.Cluster, p.Shard)
}

// AddCopies selects the copies of a logical cluster that a shard wrote; its name is "" where it is
// not known.
func (x *Index) AddCopies(to *Selection, cluster, shard string) (copies []*clusters.Copy, err error) {
	for _, copied := range x.Copies[cluster] {
		switch {
		case shard == "":
			return nil, PlaceOfCopy(copied).ShardUnknown()
		case copied.Shard == shard:
			copies = append(copies, copied)
			to.Add(PlaceOfCopy(copied))
		}
	}
	return copies, nil
}

// WorkspacesAt returns the Workspaces of a name in a logical cluster, one a shard of the file.
func (x *Index) WorkspacesAt(parent, name string) []Link { return x.lying[location{parent, name}] }

// WarnUnknown reports the keys below storage prefixes that belong to no logical cluster: they stay.
func WarnUnknown(v *transform.View, f *clusters.File, prefixes map[string]bool) {
	for _, u := range f.Unknown {
		if s, ok := f.Layouts.Of([]byte(u.Key)); ok && prefixes[s.Prefix] && !u.Expected {
			v.Raise(u.Key, finding.UnknownKey.Because("it is of no logical cluster, and stays: %s", u.Reason))
		}
	}
}

// WorkspacesIn returns the names of the Workspaces in a logical cluster.
func WorkspacesIn(parent *clusters.Cluster) map[string]bool {
	names := map[string]bool{}
	for _, w := range parent.Workspaces {
		names[w.Name] = true
	}
	return names
}

// StaysWithout describes a child whose owner is gone.
func StaysWithout(child *clusters.Cluster) string {
	return fmt.Sprintf("%q stays, and says that it belongs to %q in %q, which is not there", child.Name, child.Owner.Name, child.Owner.Cluster)
}

// Elsewhere says where a logical cluster lives that is not on the shard of its Workspace.
func Elsewhere(w clusters.Workspace) string {
	if w.ShardName == "" {
		return "does not live on this shard"
	}
	return fmt.Sprintf("does not live on this shard; the Workspace says that it lives on %q", w.ShardName)
}
