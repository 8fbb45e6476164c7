package logicalcluster

import (
	"strings"

	"github.com/etcdshift/etcdshift/transform"
)

// steps says what is left to do by hand.
func (p *Purge) steps(r *transform.Report) {
	c := p.chosen
	if len(c.targets) == 0 {
		return
	}
	c.stepsOfOwners(r)
	c.stepsOfCaches(r)
	switch {
	case p.options.FromShard != "":
		r.AddStep("stop the cache server before it is restored from the output; kcp copies again what its shards still have")
	case p.options.Orphans:
		r.AddStep("the input has the orphans still: keep it until you know that nobody misses them, as a live migration that was under way does")
	default:
		p.stepsOfShard(r)
	}
}

func (p *Purge) stepsOfShard(r *transform.Report) {
	c := p.chosen
	r.AddStep("stop kcp of this shard before it is restored from the output: what it wrote after the snapshot is lost; other shards may run on")
	if n, of := len(c.shard.Orphans), 0; n > 0 {
		for _, o := range c.shard.Orphans {
			of += o.Amount.Keys
		}
		r.AddStep("keys of logical clusters that do not live on this shard stay (clusters: %d, keys: %d): etcdshift cluster list shows them, etcdshift cluster purge --orphans removes them", n, of)
	}
}

// stepsOfOwners names the Workspaces that lead nowhere now.
func (c *choice) stepsOfOwners(r *transform.Report) {
	for _, t := range c.targets {
		if t.living == nil || t.living.Owner != nil && c.goes(t.living.Owner.Cluster) {
			continue
		}
		if w, in := c.workspace(t); w != nil && c.leadsHere(w) {
			r.AddStep("Workspace %q in %q still leads to %q on this shard: delete it, or import the cluster elsewhere and let kcp, or --fix-owner, change it", w.Name, in, t.name)
		}
	}
}

// stepsOfCaches says which copies are left to purge.
func (c *choice) stepsOfCaches(r *transform.Report) {
	if c.shard == nil {
		return
	}
	var names []string
	for _, t := range c.targets {
		names = append(names, t.name)
		for _, cache := range c.file.Caches {
			for _, copied := range cache.Copies {
				if copied.Cluster == t.name && copied.Shard != c.shardName {
					r.AddStep("the cache below %q keeps what shard %q wrote of %q (keys: %d): where it does not live there, etcdshift cluster purge %s OUT OUT2 --from-shard %s",
						cache.Prefix, copied.Shard, t.name, copied.Amount.Keys, word(t.name), word(copied.Shard))
				}
			}
		}
	}
	if len(c.file.Caches) > 0 {
		return
	}
	name, each, shard := "NAME", ", for each NAME of "+strings.Join(names, ", "), "SHARD"
	if len(names) == 1 {
		name, each = word(names[0]), ""
	}
	if c.shardName != "" {
		shard = word(c.shardName)
	}
	r.AddStep("no cache is in this file; take the copies out of the cache server's own snapshot: etcdshift cluster purge %s CACHE OUT --from-shard %s%s", name, shard, each)
}
