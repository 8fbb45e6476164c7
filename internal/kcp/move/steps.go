package move

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// stepToStop adds the first step of each list: stop the servers. A front-proxy that runs while
// shards are restored uses its old routes for another minute: 53 and 84 seconds on a kcp of three
// shards.
func stepToStop(r *transform.Report, whom, why string) {
	r.AddStep("stop all front-proxies first, then %s, before anything is restored: %s", whom, why)
}

// stepToStart marks all earlier steps as steps before the restore, and adds the step that starts
// the servers.
func stepToStart(r *transform.Report) {
	r.BeforeRestore = len(r.Steps)
	r.AddStep("start etcd, then the cache server and the shards; start the front-proxies last, when all shards are " +
		"ready: " +
		"one that runs on sends requests to the old shard for a minute or more, and what they write there becomes " +
		"orphans")
}

// LostWrites is why a server is stopped before its etcd is restored.
const LostWrites = "what a server writes after its snapshot is lost"

// copiesMove returns the command that moves copies in a cache to another shard; from and to are ""
// if unknown.
func copiesMove(names []string, files, from, to string) string {
	name, each := "NAME", ", for each NAME of "+strings.Join(names, ", ")+", each on the output of the one before"
	if len(names) == 1 {
		name, each = transform.ShellWord(names[0]), ""
	}
	return fmt.Sprintf("etcdshift kcp purge %s %s --from-shard %s --to-shard %s%s",
		name, files, transform.ShellWord(cmp.Or(from, "SHARD")), transform.ShellWord(cmp.Or(to, "NEW-SHARD")), each)
}

// stepToMoveCopies is for a cache in a separate etcd.
func stepToMoveCopies(r *transform.Report, names []string, from, to string) {
	r.AddStep("give its copies in the cache server to the new shard, where that has an etcd of its own: %s",
		copiesMove(names, "CACHE CACHE-OUT", from, to))
}

// stepToVerify comes before any output is restored. apart is for a cache that may have a separate
// etcd.
func stepToVerify(r *transform.Report, archive, destination string, apart bool) {
	when, caches := "", ""
	if apart {
		when, caches = "; --cache is for a cache server that has an etcd of its own",
			" --cache CACHE-OUT --cache-before CACHE"
	}
	r.AddStep("check the whole move before any shard runs%s: etcdshift kcp verify %s ORIGIN-OUT %s%s", when,
		transform.ShellWord(archive), destination,
		caches)
}

// purgeSteps adds the remaining manual steps.
type purgeSteps struct {
	*choice
	report *transform.Report
}

func (c purgeSteps) add() {
	r, o := c.report, c.options
	switch {
	case len(c.targets) == 0:
	case o.FromShard != "":
		stepToStop(r, "the cache server", "what it copied since, kcp copies again")
	default:
		stepToStop(r, "kcp of this shard", LostWrites+"; other shards may run on")
	}
	if o.Scrub && o.Orphans && o.Name == "" {
		c.addPast()
	}
	if len(c.targets) == 0 {
		return
	}
	c.addCaches()
	if n, keys := c.orphans(); n > 0 && !o.Orphans {
		r.AddStep("keys of logical clusters that do not live on this shard stay (clusters: %d, keys: %d): etcdshift "+
			"kcp list shows them, "+
			"etcdshift kcp purge --orphans removes them", n, keys)
	}
	stepToStart(r)
	for _, t := range c.targets {
		for _, w := range c.leadingHere(t) {
			r.AddStep("Workspace %q in %q still leads to %q on this shard: delete it, or import the cluster "+
				"elsewhere and let kcp, or --fix-owner, change it", w.Name, w.Parent.Name, t.name)
		}
	}
	if o.Orphans {
		r.AddStep("the input has the orphans still: keep it until you know that nobody misses them, as a live " +
			"migration that was under way does")
	}
}

func (c purgeSteps) orphans() (n, keys int) {
	if c.shard == nil {
		return 0, 0
	}
	for _, o := range c.shard.Orphans {
		keys += o.Amount.Keys
	}
	return len(c.shard.Orphans), keys
}

// addPast names logical clusters with older records only. The file does not show whether the
// clusters lived here.
func (c purgeSteps) addPast() {
	gone := map[string]bool{}
	for at := range c.past {
		if at.Prefix == c.shard.Prefix && !c.isPurged(at.Cluster) && c.shard.Cluster(at.Cluster) == nil {
			gone[at.Cluster] = true
		}
	}
	if len(gone) > 0 {
		names := slices.Sorted(maps.Keys(gone))
		c.report.AddStep("the file has older records of logical clusters that are deleted already, which stay "+
			"(clusters: %d): "+
			"etcdshift kcp purge NAME SHARD OUT --scrub takes them out, of each: %s", len(names),
			phrase.List(names, 10))
	}
}

func (c purgeSteps) addCaches() {
	if c.shard == nil {
		return
	}
	live := map[Place]bool{}
	for _, t := range c.targets {
		for _, copied := range c.Copies[t.name] {
			live[placeOfCopy(copied)] = true
			if copied.Shard != c.shardName && copied.Shard != c.options.ToShard {
				c.report.AddStep("the cache below %q keeps what shard %q wrote of %q (keys: %d): where it does not "+
					"live there, "+
					"etcdshift kcp purge %s OUT OUT2 --from-shard %s%s", copied.Prefix, copied.Shard, t.name,
					copied.Amount.Keys,
					transform.ShellWord(t.name), transform.ShellWord(copied.Shard), c.scrubToo())
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.past), Place.Compare) {
		if c.Caches[at.Prefix] && c.isPurged(at.Cluster) && at.Shard != c.shardName && at.Shard != c.options.ToShard &&
			!live[at] {
			c.report.AddStep("the cache below %q keeps older records of what shard %q wrote of %q: "+
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
	c.report.AddStep("no cache is in this file; give its copies in the cache server's own snapshot to the shard that "+
		"it was imported on; "+
		"without --to-shard they are deleted: %s",
		copiesMove(names, "CACHE CACHE-OUT"+c.scrubToo(), c.shardName, c.options.ToShard))
}

// scrubToo returns the flag to make another purge scrub too.
func (c purgeSteps) scrubToo() string {
	if c.options.Scrub {
		return " --scrub"
	}
	return ""
}
