package doctor

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
)

// Codes about logical clusters of kcp, found like "kcp list" in this one file.
var (
	codeShardPartial    = finding.Lookup("shard-partial")
	codeShardTwice      = finding.Lookup("shard-twice")
	codeClusterOrphans  = finding.Lookup("cluster-orphans")
	codeStaleCopies     = finding.Lookup("stale-copies")
	codeClusterMismatch = finding.Lookup("cluster-mismatch")
)

// checkKCP reports the findings of "kcp list" about the shards and caches of kcp in the file.
// Logical clusters of another file look like logical clusters of no shard.
func checkKCP(d *doctor) error {
	if d.kcp == nil {
		return nil
	}
	file := d.kcp()
	named := []kcp.Named{{Path: d.reader.Snapshot().Path(), File: file}}
	found := kcp.Survey(named, named)
	checkShards(d, file, found)
	for _, c := range found.Clusters {
		for _, f := range c.Findings() {
			f.Reason = c.Called() + " " + f.Reason
			d.Add(f)
		}
	}
	for _, p := range problemsOf(file) {
		if err := checkProblem(d, p); err != nil {
			return err
		}
	}
	return nil
}

// problemsOf returns the problems of all parts of a file.
func problemsOf(file *kcp.File) (all []finding.Finding) {
	for _, s := range file.Shards {
		for _, c := range s.Clusters {
			all = append(all, c.Problems...)
		}
		for _, o := range s.Orphans {
			all = append(all, o.Problems...)
		}
	}
	for _, cache := range file.Caches {
		all = append(all, cache.Own.Problems...)
		for _, c := range cache.Copies {
			all = append(all, c.Problems...)
		}
	}
	return all
}

// checkShards reports findings about whole storages, and keys of logical clusters that live
// elsewhere. In an etcd of single types every key looks like an orphan.
func checkShards(d *doctor, file *kcp.File, found *kcp.Installation) {
	partial := map[string]bool{}
	for _, s := range file.Shards {
		if s.Partial {
			partial[s.Prefix] = true
			d.raise(nil, codeShardPartial, "below %s the LogicalCluster of system:shard is missing, which "+
				"each shard has", s.Prefix)
		}
	}
	for _, name := range found.Doubled {
		d.raise(nil, codeShardTwice, "several storages say that they are shard %s", name)
	}
	for _, o := range found.Orphans {
		if !partial[o.Prefix] {
			why := "which does not live on this shard"
			if o.PathOf != "" {
				why = "the path of " + o.PathOf + " and not its name"
			}
			d.raiseMany(count{o.Amount.Keys, []byte(o.Keys[0])}, codeClusterOrphans, "key", "%s of %s, %s: %s", o.Name,
				why, kcp.Contents(o.Resources))
		}
	}
	for _, c := range found.Stale {
		d.Add(codeStaleCopies.Because("a cache has copies of %s from shard %s, on which it does not live: %s",
			c.Cluster, c.Copy.Shard, kcp.Contents(c.Resources)).At(c.Keys[0]).About(c.Amount.Keys))
	}
}

// checkProblem reports a record of kcp that differs from its key, unless checkRecord did.
func checkProblem(d *doctor, p finding.Finding) error {
	e, err := d.reader.Get(d.ctx, []byte(p.Key))
	if err != nil || e == nil || e.Undecryptable != nil {
		return err
	}
	key, err := e.ParseKey()
	if err != nil {
		return nil // a stray key
	}
	meta, wrong := decode(e)
	switch {
	case p.Code == kcp.CodeUndecodable && wrong == nil:
		d.raise(e.Key, finding.Undecodable, "%s", p.Reason)
	case p.Code != kcp.CodeKeyMismatch:
	case meta.Namespace == key.Namespace && meta.Name == key.Name:
		d.raise(e.Key, codeClusterMismatch, "%s", p.Reason)
	default:
		d.raise(e.Key, codeKeyMismatch, "%s", p.Reason)
	}
	return nil
}
