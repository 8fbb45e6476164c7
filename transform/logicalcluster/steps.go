package logicalcluster

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/transform"
)

// stepToStop is the first step of each list. A front-proxy that runs while shards are restored routes by what it knew for another
// minute: on a kcp of three shards for 53 and 84 seconds.
func stepToStop(r *transform.Report, whom, why string) {
	r.AddStep("stop all front-proxies first, then %s, before anything is restored: %s", whom, why)
}

// stepToStart follows the restore. All steps before it come before the restore.
func stepToStart(r *transform.Report) {
	r.BeforeRestore = len(r.Steps)
	r.AddStep("start etcd, then the cache server and the shards; start the front-proxies last, when all shards are ready: " +
		"one that runs on sends requests to the old shard for a minute or more, and what they write there becomes orphans")
}

// lostWrites is why a server is stopped before its etcd is restored.
const lostWrites = "what a server writes after its snapshot is lost"

// copiesMove is the command that gives copies in a cache from one shard to another, either "" where nobody knows it.
func copiesMove(names []string, files, from, to string) string {
	name, each := "NAME", ", for each NAME of "+strings.Join(names, ", ")+", each on the output of the one before"
	if len(names) == 1 {
		name, each = word(names[0]), ""
	}
	return fmt.Sprintf("etcdshift cluster purge %s %s --from-shard %s --to-shard %s%s",
		name, files, word(cmp.Or(from, "SHARD")), word(cmp.Or(to, "NEW-SHARD")), each)
}

// stepToMoveCopies is for a cache in an etcd of its own.
func stepToMoveCopies(r *transform.Report, names []string, from, to string) {
	r.AddStep("give its copies in the cache server to the new shard, where that has an etcd of its own: %s", copiesMove(names, "CACHE CACHE-OUT", from, to))
}

// stepToVerify comes before any of the outputs is restored. apart is for a cache that may have an etcd of its own.
func stepToVerify(r *transform.Report, archive, destination string, apart bool) {
	when, caches := "", ""
	if apart {
		when, caches = "; --cache is for a cache server that has an etcd of its own", " --cache CACHE-OUT --cache-before CACHE"
	}
	r.AddStep("judge the whole move before any shard runs%s: etcdshift cluster verify %s ORIGIN-OUT %s%s", when, word(archive), destination, caches)
}
