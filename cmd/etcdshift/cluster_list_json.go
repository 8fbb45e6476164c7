package main

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
)

// clusterList is the document of cluster list -o json. Lists are never null.
type clusterList struct {
	answerHead
	Inputs   []listInput    `json:"inputs"`
	Flavour  keys.Flavour   `json:"flavour"` // of all files
	Prefixes []keys.Storage `json:"prefixes"`
	Clusters []listCluster  `json:"clusters"`      // by name, then in the order of the files
	Orphans  []listOrphan   `json:"orphans"`       // keys of logical clusters that do not live where the keys are
	Absent   []string       `json:"absentShards"`  // shards that are registered and whose files were not given
	Doubled  []string       `json:"doubledShards"` // shards that several files say they are
	Stale    []listCopy     `json:"stale"`         // copies of logical clusters that do not live where they were copied from
	Unjudged []listCopy     `json:"unjudged"`      // copies of logical clusters whose shards are not among the files
	Unknown  []string       `json:"unknown"`       // keys of no logical cluster, of all files
	Reasons  []listUnknown  `json:"unknownReasons"`
	Others   []listOther    `json:"others"`   // storages in the files that are not those of kcp
	Problems []listProblem  `json:"problems"` // records that could not be read, or contradict their keys
}

// listInput is one of the files.
type listInput struct {
	inputInfo
	Shard    string         `json:"shard"`   // the name of its shard; "" of a cache, and where nothing says it
	Partial  bool           `json:"partial"` // it is no whole shard: orphans may be none
	Flavour  keys.Flavour   `json:"flavour"`
	Prefixes []keys.Storage `json:"prefixes"`
}

type listCluster struct {
	Name           string              `json:"name"`
	Path           string              `json:"path"`
	clusters.Place                     // where it lives
	SaidShard      string              `json:"saidShard"` // where it believes to live
	UID            string              `json:"uid"`
	Phase          string              `json:"phase"`
	Keys           int                 `json:"keys"`        // live records
	Bytes          int64               `json:"bytes"`       // of whole keys and stored values
	Owner          *clusters.Owner     `json:"owner"`       // the Workspace it belongs to; null where there is none
	System         bool                `json:"system"`      // a part of kcp that each shard has
	Inactive       bool                `json:"inactive"`    // fenced off (core.kcp.io/inactive)
	Migrating      string              `json:"migrating"`   // by which migration
	Terminating    string              `json:"terminating"` // since when
	OwnerGone      bool                `json:"ownerGone"`   // its owner should be in the files, and is not
	Elsewhere      []clusters.Place    `json:"elsewhere"`   // where it lives too
	Children       []clusters.Child    `json:"children"`
	Identities     []clusters.Identity `json:"identities"`  // of APIExports that it binds or has keys under
	Definitions    []clusters.Needed   `json:"definitions"` // in system:bound-crds that its APIBindings need
	Exports        []clusters.Export   `json:"exports"`     // that lie in it
	Resources      []clusters.Resource `json:"resources"`
	Undecryptable  int                 `json:"sealed"` // encrypted records that were not decrypted
}

type listOrphan struct {
	Name string `json:"name"`
	clusters.Place
	LivesOn       []string            `json:"livesOn"`   // shards of these files
	SaidShard     string              `json:"saidShard"` // by its Workspace
	Bytes         int64               `json:"bytes"`
	Undecryptable int                 `json:"sealed"` // encrypted records that were not decrypted
	Resources     []clusters.Resource `json:"resources"`
	Keys          []string            `json:"keys"`
}

// listCopy is the copy of a logical cluster in a cache.
type listCopy struct {
	Cluster       string              `json:"cluster"`
	Shard         string              `json:"shard"` // that it was copied from
	File          string              `json:"file"`  // of the cache
	Prefix        string              `json:"prefix"`
	LivesOn       []string            `json:"livesOn"` // shards of these files
	Bytes         int64               `json:"bytes"`
	Undecryptable int                 `json:"sealed"` // encrypted records that were not decrypted
	Resources     []clusters.Resource `json:"resources"`
	Keys          []string            `json:"keys"`
}

type listUnknown struct {
	File string `json:"file"`
	clusters.Unknown
}

// listOther is a storage that is not kcp's.
type listOther struct {
	File string `json:"file"`
	keys.Storage
	clusters.Amount
}

type listProblem struct {
	File    string `json:"file"`
	Cluster string `json:"cluster"`
	Key     string `json:"key"`
	Code    string `json:"code"` // etcdshift explain CODE
	Reason  string `json:"reason"`
}

func clusterListOf(read []surveyed, found *clusters.Installation) clusterList {
	out := clusterList{answerHead: answerTo("LogicalClusterList"), Absent: listed(found.Absent), Doubled: listed(found.Doubled)}
	out.Flavour, out.Prefixes = flavourOf(read)
	for _, f := range read {
		in := listInput{inputInfo: f.input, Prefixes: listed(f.Storages), Flavour: keys.NewLayouts(f.Storages...).Flavour()}
		if len(f.Shards) == 1 {
			in.Shard = f.Shards[0].Name
		}
		in.Partial = slices.ContainsFunc(f.Shards, func(s *clusters.Shard) bool { return s.Partial })
		out.Inputs = append(out.Inputs, in)
		for _, u := range f.Unknown {
			out.Unknown = append(out.Unknown, u.Key)
			out.Reasons = append(out.Reasons, listUnknown{f.Path, u})
		}
		for _, o := range f.Others {
			out.Others = append(out.Others, listOther{f.Path, o.Storage, o.Amount})
		}
	}
	out.Clusters = mapped(found.Clusters, listClusterOf)
	out.Orphans = mapped(found.Orphans, func(o clusters.Stray) listOrphan {
		return listOrphan{o.Name, o.Place, o.LivesOn, o.Said, o.Bytes, o.Undecryptable, listed(o.Resources), listed(o.Keys)}
	})
	out.Stale, out.Unjudged = mapped(found.Stale, listCopyOf), mapped(found.Unchecked, listCopyOf)
	out.Unknown, out.Reasons = listed(out.Unknown), listed(out.Reasons)
	out.Others, out.Problems = listed(out.Others), problemsOf(read)
	return out
}

func listClusterOf(c clusters.Resident) listCluster {
	return listCluster{
		Name: c.Name, Path: c.Cluster.Path, Place: c.Place, SaidShard: c.ShardName, UID: c.UID, Phase: c.Phase,
		Keys: c.Keys, Bytes: c.Bytes, Owner: c.Owner, System: c.System, Inactive: c.Inactive, Migrating: c.Migrating,
		Terminating: c.Terminating, OwnerGone: c.OwnerGone, Elsewhere: listed(c.Elsewhere), Children: listed(c.Children),
		Identities: listed(c.Identities), Definitions: listed(c.Definitions), Exports: listed(c.Exports),
		Resources: listed(c.Resources), Undecryptable: c.Undecryptable,
	}
}

func listCopyOf(s clusters.Stale) listCopy {
	return listCopy{s.Cluster, s.Copy.Shard, s.Path, s.Prefix, s.LivesOn, s.Bytes, s.Undecryptable, listed(s.Resources), listed(s.Keys)}
}

// problemsOf returns the problems of all files, in the order of files, storages and logical
// clusters.
func problemsOf(read []surveyed) []listProblem {
	out := []listProblem{}
	for _, f := range read {
		add := func(cluster string, problems []finding.Finding) {
			for _, p := range problems {
				out = append(out, listProblem{f.Path, cluster, p.Key, p.Code.Name, p.Reason})
			}
		}
		for _, s := range f.Shards {
			for _, c := range s.Clusters {
				add(c.Name, c.Problems)
			}
			for _, o := range s.Orphans {
				add(o.Name, o.Problems)
			}
		}
		for _, cache := range f.Caches {
			add("", cache.Own.Problems)
			for _, c := range cache.Copies {
				add(c.Cluster, c.Problems)
			}
		}
	}
	return out
}
