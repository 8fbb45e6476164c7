package doctor

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
)

// checkKCP reports the findings of "kcp list" about the shards and caches of kcp in the file. A
// logical cluster that lives in another file cannot be told from one that lives nowhere.
func (d *doctor) checkKCP() {
	if d.kcp == nil {
		return
	}
	file := d.kcp()
	named := []clusters.Named{{Path: d.reader.Snapshot().Path(), File: file}}
	found := clusters.Survey(named, named)
	d.checkShards(file, found)
	for _, c := range found.Clusters {
		for _, f := range c.Findings() {
			f.Reason = c.Called() + " " + f.Reason
			d.Add(f)
		}
	}
	for _, s := range file.Shards {
		for _, c := range s.Clusters {
			d.checkProblems(c.Problems)
		}
		for _, o := range s.Orphans {
			d.checkProblems(o.Problems)
		}
	}
	for _, cache := range file.Caches {
		d.checkProblems(cache.Own.Problems)
		for _, c := range cache.Copies {
			d.checkProblems(c.Problems)
		}
	}
}

// checkShards reports findings about whole storages, and keys of logical clusters that do not live
// there. In an etcd of single types every key looks like an orphan.
func (d *doctor) checkShards(file *clusters.File, found *clusters.Installation) {
	partial := map[string]bool{}
	for _, s := range file.Shards {
		if s.Partial {
			partial[s.Prefix] = true
			d.raise(nil, codeShardPartial, "below %s the LogicalCluster of system:shard is missing, which each shard has", s.Prefix)
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
			d.raiseMany(count{o.Amount.Keys, []byte(o.Keys[0])}, codeClusterOrphans, "key", "%s of %s, %s: %s", o.Name, why, clusters.Contents(o.Resources))
		}
	}
	for _, c := range found.Stale {
		d.Add(codeStaleCopies.Because("a cache has copies of %s from shard %s, on which it does not live: %s",
			c.Cluster, c.Copy.Shard, clusters.Contents(c.Resources)).At(c.Keys[0]).About(c.Amount.Keys))
	}
}

// checkProblems reports records of kcp that differ from their keys, unless checkEntry did.
func (d *doctor) checkProblems(problems []finding.Finding) {
	for _, p := range problems {
		e, err := d.reader.Get(d.ctx, []byte(p.Key))
		if d.failed(err) || e == nil || e.Undecryptable != nil {
			continue
		}
		key, err := e.ParseKey()
		if err != nil {
			continue // a stray key
		}
		meta, wrong := decode(e)
		switch {
		case p.Code == clusters.CodeUndecodable && wrong == nil:
			d.raise(e.Key, finding.Undecodable, "%s", p.Reason)
		case p.Code != clusters.CodeKeyMismatch:
		case meta.Namespace == key.Namespace && meta.Name == key.Name:
			d.raise(e.Key, codeClusterMismatch, "%s", p.Reason)
		default:
			d.raise(e.Key, codeKeyMismatch, "%s", p.Reason)
		}
	}
}
