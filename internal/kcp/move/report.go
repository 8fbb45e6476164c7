package move

import (
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/transform"
)

// reporter raises findings about logical clusters of a shard.
type reporter struct {
	list   func(key string, f *finding.Finding) (goOn bool)
	prefix string // of the shard
}

func (r reporter) raise(key string, code *finding.Code, format string, args ...any) (allowed bool) {
	return r.list(key, code.Because(format, args...))
}

// refuse reports a finding that --allow does not take.
func (r reporter) refuse(key string, code *finding.Code, format string, args ...any) {
	r.list(key, code.Because(format, args...).Decided(finding.Refused))
}

// note reports a finding that needs no decision.
func (r reporter) note(key string, code *finding.Code, format string, args ...any) {
	r.list(key, code.Because(format, args...).Decided(finding.Noted))
}

// checkSystem, checkTerminating and checkMigrating report a logical cluster in a state that
// prevents moves and deletions.
func (r reporter) checkSystem(key, name string) {
	if kcp.IsSystem(name) {
		r.raise(key, codeSystemCluster, "%q is a part of kcp itself", name)
	}
}

func (r reporter) checkTerminating(key string, c *kcp.Cluster) {
	if c.Terminating != "" {
		r.raise(key, codeTerminating, "%q is being deleted since %s", c.Name, c.Terminating)
	}
}

func (r reporter) checkMigrating(key string, c *kcp.Cluster) {
	if c.Migrating != "" {
		r.raise(key, codeMigrating, "%q is being moved by LogicalClusterMigration %q", c.Name, c.Migrating)
	}
}

// raiseUntold and raiseUnseen report a logical cluster whose Workspace cannot be looked up.
func (r reporter) raiseUntold(key, name string) {
	r.raise(key, codeOwnerUnseen, "the LogicalCluster of %q does not tell its owner", name)
}

func (r reporter) raiseUnseen(key, name string, owner *kcp.Owner) {
	r.raise(key, codeOwnerUnseen, "Workspace %q in %q is not in this file: look there whether it says that %q lives "+
		"here", owner.Name, owner.Cluster, name)
}

// keyOf returns the key of a LogicalCluster, for findings about the whole logical cluster.
func (r reporter) keyOf(name string) string { return string(kcp.LogicalClusterKey(r.prefix, name)) }

// Receipts is the section of a report with the logical clusters that were removed from the input or
// added to the output.
type Receipts struct {
	Untold   bool         `json:"-"` // the tables of another section include the clusters
	Clusters []Receipt    `json:"clusters,omitempty"`
	Rest     *archive.Sum `json:"rest,omitempty"` // all other live records, equal in input and output
}

// Receipt is the result for one logical cluster.
type Receipt struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	archive.Sum        // of its records
	Copies      int    `json:"copies"` // copies of its records in a cache of the same file
	// CopiesMoved is the number of Copies that were moved to ToShard, under new keys.
	CopiesMoved int    `json:"copiesMoved,omitempty"`
	ToShard     string `json:"toShard,omitempty"`
}

// Receive adds the logical clusters of an archive.
func (r *Receipts) Receive(m *archive.Manifest) {
	for _, c := range m.Clusters {
		r.Clusters = append(r.Clusters, Receipt{Name: c.Name, Path: c.Path, Sum: c.Sum})
	}
}

// Tables returns a row for each logical cluster; none for a refused plan.
func (r *Receipts) Tables(outcome transform.Outcome) []transform.Table {
	if outcome == transform.Refused || r.Untold {
		return nil
	}
	t := transform.Table{Header: []any{"LOGICAL CLUSTER", "PATH", "KEYS", "BYTES", "COPIES", "SHA256"},
		Of: "logical clusters"}
	for _, c := range r.Clusters {
		t.Rows = append(t.Rows, []any{c.Name, c.Path, c.Keys, c.Bytes, c.copies(), c.SHA256})
	}
	if r.Rest != nil {
		t.Totals = [][]any{{"all others", "unchanged", r.Rest.Keys, r.Rest.Bytes, "", r.Rest.SHA256}}
	}
	return []transform.Table{t}
}

// copies returns the number of copies in a cache, and the shard of the moved copies.
func (r Receipt) copies() string {
	switch r.CopiesMoved {
	case 0:
		return fmt.Sprint(r.Copies)
	case r.Copies:
		return fmt.Sprintf("%d to %s", r.Copies, r.ToShard)
	}
	return fmt.Sprintf("%d, %d to %s", r.Copies, r.CopiesMoved, r.ToShard)
}
