package preparerestore

import (
	"encoding/json"

	"github.com/etcdshift/etcdshift/transform"
)

// Prepared is the section of a report of "prepare-restore".
type Prepared struct {
	Prepared []Step   `json:"prepared,omitempty"` // the steps that were taken, in order
	Undo     []Change `json:"undo,omitempty"`     // changes that --undo puts back: each key is in saved too
	Cluster  string   `json:"cluster,omitempty"`  // UID of the namespace kube-system, for --undo
}

// Step is what one step did.
type Step struct {
	Step    string `json:"step"`
	Reason  string `json:"reason"`
	Deleted int    `json:"deleted"` // objects
	Changed int    `json:"changed"` // objects
}

// Change is a change that can be undone.
type Change struct {
	Key  string `json:"key"`
	Step string `json:"step"`
	// After has the changed fields as they were written; none of a deleted object.
	After json.RawMessage `json:"after"`
}

// Tables returns the steps with what each did.
func (p *Prepared) Tables(outcome transform.Outcome) []transform.Table {
	if outcome == transform.Refused {
		return nil
	}
	t := transform.Table{Header: []any{"STEP", "DELETED", "CHANGED", "REASON"}}
	for _, s := range p.Prepared {
		t.Rows = append(t.Rows, []any{s.Step, s.Deleted, s.Changed, s.Reason})
	}
	return []transform.Table{t}
}
