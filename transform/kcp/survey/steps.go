package survey

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/transform"
)

// StepToStop is the first step of each list. A front-proxy that runs while shards are restored uses
// its old routes for another minute: 53 and 84 seconds on a kcp of three shards.
func StepToStop(r *transform.Report, whom, why string) {
	r.AddStep("stop all front-proxies first, then %s, before anything is restored: %s", whom, why)
}

// StepToStart follows the restore; all steps before it come before the restore.
func StepToStart(r *transform.Report) {
	r.BeforeRestore = len(r.Steps)
	r.AddStep("start etcd, then the cache server and the shards; start the front-proxies last, when all shards are ready: " +
		"one that runs on sends requests to the old shard for a minute or more, and what they write there becomes orphans")
}

// LostWrites is why a server is stopped before its etcd is restored.
const LostWrites = "what a server writes after its snapshot is lost"

// CopiesMove is the command that gives copies in a cache to another shard; either shard is "" where
// it is not known.
func CopiesMove(names []string, files, from, to string) string {
	name, each := "NAME", ", for each NAME of "+strings.Join(names, ", ")+", each on the output of the one before"
	if len(names) == 1 {
		name, each = transform.ShellWord(names[0]), ""
	}
	return fmt.Sprintf("etcdshift cluster purge %s %s --from-shard %s --to-shard %s%s",
		name, files, transform.ShellWord(cmp.Or(from, "SHARD")), transform.ShellWord(cmp.Or(to, "NEW-SHARD")), each)
}

// StepToMoveCopies is for a cache in an etcd of its own.
func StepToMoveCopies(r *transform.Report, names []string, from, to string) {
	r.AddStep("give its copies in the cache server to the new shard, where that has an etcd of its own: %s", CopiesMove(names, "CACHE CACHE-OUT", from, to))
}

// StepToVerify comes before any output is restored. apart is for a cache that may have an etcd of
// its own.
func StepToVerify(r *transform.Report, archive, destination string, apart bool) {
	when, caches := "", ""
	if apart {
		when, caches = "; --cache is for a cache server that has an etcd of its own", " --cache CACHE-OUT --cache-before CACHE"
	}
	r.AddStep("check the whole move before any shard runs%s: etcdshift cluster verify %s ORIGIN-OUT %s%s", when, transform.ShellWord(archive), destination,
		caches)
}

// Counted is a number and its noun.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// FirstOf lists the first of many names.
func FirstOf(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
