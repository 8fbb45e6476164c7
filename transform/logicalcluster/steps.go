package logicalcluster

import "github.com/etcdshift/etcdshift/transform"

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
