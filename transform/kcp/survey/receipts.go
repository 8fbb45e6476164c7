package survey

import (
	"fmt"

	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

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
