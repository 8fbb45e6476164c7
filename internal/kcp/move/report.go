package move

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/transform"
)

// stepToStop is the first step of each list. A front-proxy that runs while shards are restored uses
// its old routes for another minute: 53 and 84 seconds on a kcp of three shards.
func stepToStop(r *transform.Report, whom, why string) {
	r.AddStep("stop all front-proxies first, then %s, before anything is restored: %s", whom, why)
}

// stepToStart follows the restore; all steps before it come before the restore.
func stepToStart(r *transform.Report) {
	r.BeforeRestore = len(r.Steps)
	r.AddStep("start etcd, then the cache server and the shards; start the front-proxies last, when all shards are ready: " +
		"one that runs on sends requests to the old shard for a minute or more, and what they write there becomes orphans")
}

// LostWrites is why a server is stopped before its etcd is restored.
const LostWrites = "what a server writes after its snapshot is lost"

// copiesMove is the command that gives copies in a cache to another shard; either shard is "" where
// it is not known.
func copiesMove(names []string, files, from, to string) string {
	name, each := "NAME", ", for each NAME of "+strings.Join(names, ", ")+", each on the output of the one before"
	if len(names) == 1 {
		name, each = transform.ShellWord(names[0]), ""
	}
	return fmt.Sprintf("etcdshift kcp purge %s %s --from-shard %s --to-shard %s%s",
		name, files, transform.ShellWord(cmp.Or(from, "SHARD")), transform.ShellWord(cmp.Or(to, "NEW-SHARD")), each)
}

// stepToMoveCopies is for a cache in an etcd of its own.
func stepToMoveCopies(r *transform.Report, names []string, from, to string) {
	r.AddStep("give its copies in the cache server to the new shard, where that has an etcd of its own: %s", copiesMove(names, "CACHE CACHE-OUT", from, to))
}

// stepToVerify comes before any output is restored. apart is for a cache that may have an etcd of
// its own.
func stepToVerify(r *transform.Report, archive, destination string, apart bool) {
	when, caches := "", ""
	if apart {
		when, caches = "; --cache is for a cache server that has an etcd of its own", " --cache CACHE-OUT --cache-before CACHE"
	}
	r.AddStep("check the whole move before any shard runs%s: etcdshift kcp verify %s ORIGIN-OUT %s%s", when, transform.ShellWord(archive), destination,
		caches)
}

// reporter raises findings about logical clusters of a shard.
type reporter struct {
	list   func(key string, f *finding.Finding) (goOn bool)
	prefix string // of the shard
}

func (r reporter) raise(key string, code *finding.Code, format string, args ...any) (allowed bool) {
	return r.list(key, code.Because(format, args...))
}

// refuse reports a finding that nobody can allow.
func (r reporter) refuse(key string, code *finding.Code, format string, args ...any) {
	r.list(key, code.Because(format, args...).Decided(finding.Refused))
}

// note reports a finding that needs no decision.
func (r reporter) note(key string, code *finding.Code, format string, args ...any) {
	r.list(key, code.Because(format, args...).Decided(finding.Noted))
}

// keyOf is the key of a LogicalCluster, for findings about the whole logical cluster.
func (r reporter) keyOf(name string) string { return string(kcp.LogicalClusterKey(r.prefix, name)) }

// Receipts is the section of a report with the logical clusters that left the input or came into
// the output.
type Receipts struct {
	Untold   bool         `json:"-"` // tables of another section say more
	Clusters []Receipt    `json:"clusters,omitempty"`
	Rest     *archive.Sum `json:"rest,omitempty"` // all other live records, equal in input and output
}

// Receipt is the result for one logical cluster.
type Receipt struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	archive.Sum        // of its records
	Copies      int    `json:"copies"` // records of it in a cache of the same file
	// CopiesMoved of Copies were given to the shard ToShard, under keys of its own.
	CopiesMoved int    `json:"copiesMoved,omitempty"`
	ToShard     string `json:"toShard,omitempty"`
}

// Receive adds the logical clusters of an archive.
func (r *Receipts) Receive(m *archive.Manifest) {
	for _, c := range m.Clusters {
		r.Clusters = append(r.Clusters, Receipt{Name: c.Name, Path: c.Path, Sum: c.Sum})
	}
}

// Tables has a row for each logical cluster, and none for a refused plan.
func (r *Receipts) Tables(outcome transform.Outcome) []transform.Table {
	if outcome == transform.Refused || r.Untold {
		return nil
	}
	t := transform.Table{Header: []any{"LOGICAL CLUSTER", "PATH", "KEYS", "BYTES", "COPIES", "SHA256"}, Of: "logical clusters"}
	for _, c := range r.Clusters {
		t.Rows = append(t.Rows, []any{c.Name, c.Path, c.Keys, c.Bytes, c.copies(), c.SHA256})
	}
	if r.Rest != nil {
		t.Totals = [][]any{{"all others", "unchanged", r.Rest.Keys, r.Rest.Bytes, "", r.Rest.SHA256}}
	}
	return []transform.Table{t}
}

// copies counts copies in a cache, and names the shard that got them.
func (r Receipt) copies() string {
	switch r.CopiesMoved {
	case 0:
		return fmt.Sprint(r.Copies)
	case r.Copies:
		return fmt.Sprintf("%d to %s", r.Copies, r.ToShard)
	}
	return fmt.Sprintf("%d, %d to %s", r.Copies, r.CopiesMoved, r.ToShard)
}
