package doctor

import (
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
)

// prepareKCP prepares the checks of "cluster list" where the file has shards or caches of kcp.
func (d *doctor) prepareKCP(ctx context.Context) (err error) {
	isKCP := func(s keys.Storage) bool { return s.Flavour.KCP() }
	if slices.ContainsFunc(d.layouts.Storages(), isKCP) {
		d.addKCP, d.kcp, err = clusters.Checking(ctx, d.reader)
	}
	return err
}

// concludeKCP reports the findings of "cluster list" in the shards and caches of the file. A
// logical cluster that lives on a shard in another file looks like one that lives nowhere.
func (d *doctor) concludeKCP(ctx context.Context) error {
	if d.kcp == nil {
		return nil
	}
	file := d.kcp()
	named := []clusters.Named{{Path: d.snapshot.Path(), File: file}}
	found := clusters.Survey(named, named)
	d.checkShards(file, found)
	d.checkClusters(found)
	return d.checkProblems(ctx, file)
}

// checkShards reports findings about whole storages, and keys of logical clusters that do not live
// there. An etcd of single types does not show which logical clusters live.
func (d *doctor) checkShards(file *clusters.File, found *clusters.Installation) {
	partial := map[string]bool{}
	for _, s := range file.Shards {
		if s.Partial {
			partial[s.Prefix] = true
			d.raise(nil, codeShardPartial.Because("below %s the LogicalCluster of system:shard is missing, which each shard has", s.Prefix))
		}
	}
	for _, name := range found.Doubled {
		d.raise(nil, codeShardTwice.Because("several storages say that they are shard %s", name))
	}
	for _, o := range found.Orphans {
		if !partial[o.Prefix] {
			d.raise([]byte(o.Keys[0]), codeClusterOrphans.Because("%s of %s, which does not live on this shard: %s",
				things(o.Amount.Keys, "key"), o.Name, clusters.Contents(o.Resources)).About(o.Amount.Keys))
		}
	}
	for _, c := range found.Stale {
		d.raise([]byte(c.Keys[0]), codeStaleCopies.Because("a cache has copies of %s from shard %s, on which it does not live: %s",
			c.Cluster, c.Copy.Shard, clusters.Contents(c.Resources)).About(c.Amount.Keys))
	}
}

// checkClusters reports findings about logical clusters that live in the file.
func (d *doctor) checkClusters(found *clusters.Installation) {
	for _, c := range found.Clusters {
		for _, f := range c.Findings() {
			f.Reason = c.Called() + " " + f.Reason
			d.raise([]byte(f.Key), f)
		}
	}
}

// checkProblems reports the records of kcp that differ from their keys.
func (d *doctor) checkProblems(ctx context.Context, file *clusters.File) error {
	var all []finding.Finding
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
	for _, p := range all {
		if err := d.checkProblem(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// checkProblem reports a record, unless checkEntry has done so.
func (d *doctor) checkProblem(ctx context.Context, p finding.Finding) error {
	e, err := d.reader.Get(ctx, []byte(p.Key))
	if e == nil || err != nil || e.Undecryptable != nil {
		return err
	}
	key, err := e.ParseKey()
	if err != nil {
		return nil // reported as a stray key
	}
	meta, wrong := decode(e)
	switch {
	case p.Code == clusters.CodeUndecodable && wrong == nil:
		d.raise(e.Key, codeUndecodable.Because("%s", p.Reason))
	case p.Code != clusters.CodeKeyMismatch:
	case meta.Namespace == key.Namespace && meta.Name == key.Name:
		d.raise(e.Key, codeClusterMismatch.Because("%s", p.Reason))
	default:
		d.raise(e.Key, codeKeyMismatch.Because("%s", p.Reason))
	}
	return nil
}
