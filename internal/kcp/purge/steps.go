package purge

import (
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/transform"
)

func (c *choice) steps() {
	r, o := c.view.Report(), c.options
	switch {
	case len(c.targets) == 0:
	case o.FromShard != "":
		survey.StepToStop(r, "the cache server", "what it copied since, kcp copies again")
	default:
		survey.StepToStop(r, "kcp of this shard", survey.LostWrites+"; other shards may run on")
	}
	if o.Scrub && o.Orphans && o.Name == "" {
		c.stepsOfPast(r)
	}
	if len(c.targets) == 0 {
		return
	}
	c.stepsOfCaches(r)
	if n, keys := c.orphans(); n > 0 && !o.Orphans {
		r.AddStep("keys of logical clusters that do not live on this shard stay (clusters: %d, keys: %d): etcdshift kcp list shows them, "+
			"etcdshift kcp purge --orphans removes them", n, keys)
	}
	survey.StepToStart(r)
	for _, t := range c.targets {
		for _, w := range c.leadingHere(t) {
			r.AddStep("Workspace %q in %q still leads to %q on this shard: delete it, or import the cluster elsewhere and let kcp, or --fix-owner, change it",
				w.Name, w.Parent.Name, t.name)
		}
	}
	if o.Orphans {
		r.AddStep("the input has the orphans still: keep it until you know that nobody misses them, as a live migration that was under way does")
	}
}

func (c *choice) orphans() (n, keys int) {
	if c.shard == nil {
		return 0, 0
	}
	for _, o := range c.shard.Orphans {
		keys += o.Amount.Keys
	}
	return len(c.shard.Orphans), keys
}

// stepsOfPast names logical clusters with older records only. The file does not tell whether they
// lived here.
func (c *choice) stepsOfPast(r *transform.Report) {
	gone := map[string]bool{}
	for at := range c.past {
		if at.Prefix == c.shard.Prefix && !c.goes(at.Cluster) && c.shard.Cluster(at.Cluster) == nil {
			gone[at.Cluster] = true
		}
	}
	if len(gone) > 0 {
		names := slices.Sorted(maps.Keys(gone))
		r.AddStep("the file has older records of logical clusters that are deleted already, which stay (clusters: %d): "+
			"etcdshift kcp purge NAME SHARD OUT --scrub takes them out, of each: %s", len(names), survey.FirstOf(names))
	}
}

func (c *choice) stepsOfCaches(r *transform.Report) {
	if c.shard == nil {
		return
	}
	live := map[survey.Place]bool{}
	for _, t := range c.targets {
		for _, copied := range c.Copies[t.name] {
			live[survey.PlaceOfCopy(copied)] = true
			if copied.Shard != c.shardName && copied.Shard != c.options.ToShard {
				r.AddStep("the cache below %q keeps what shard %q wrote of %q (keys: %d): where it does not live there, "+
					"etcdshift kcp purge %s OUT OUT2 --from-shard %s%s", copied.Prefix, copied.Shard, t.name, copied.Amount.Keys,
					transform.ShellWord(t.name), transform.ShellWord(copied.Shard), c.scrubToo())
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.past), survey.Place.Compare) {
		if c.Caches[at.Prefix] && c.goes(at.Cluster) && at.Shard != c.shardName && at.Shard != c.options.ToShard && !live[at] {
			r.AddStep("the cache below %q keeps older records of what shard %q wrote of %q: "+
				"etcdshift kcp purge %s OUT OUT2 --from-shard %s --scrub takes them out",
				at.Prefix, at.Shard, at.Cluster, transform.ShellWord(at.Cluster), transform.ShellWord(at.Shard))
		}
	}
	if len(c.file.Caches) > 0 {
		return
	}
	var names []string
	for _, t := range c.targets {
		names = append(names, t.name)
	}
	r.AddStep("no cache is in this file; give its copies in the cache server's own snapshot to the shard that it was imported on; "+
		"without --to-shard they are deleted: %s", survey.CopiesMove(names, "CACHE CACHE-OUT"+c.scrubToo(), c.shardName, c.options.ToShard))
}

// scrubToo makes another purge scrub like this one.
func (c *choice) scrubToo() string {
	if c.options.Scrub {
		return " --scrub"
	}
	return ""
}
