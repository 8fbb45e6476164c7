package clusters

import (
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
