package compact

import (
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Section is the section of a report about a compaction.
type Section struct {
	Compaction *Summary `json:"compaction,omitempty"`
}

// Summary compares the input with the output.
type Summary struct {
	Revision int64   `json:"revision"` // the compact revision: the output serves no earlier revision
	Before   Stored  `json:"before"`
	After    *Stored `json:"after,omitempty"` // missing if nothing was written
}

// Stored describes the contents of a file besides its live keys.
type Stored struct {
	CompactRevision int64             `json:"compactRevision"` // 0 if never compacted
	Records         int               `json:"records"`         // of all revisions, including deletions
	Deletions       int               `json:"deletions"`
	Leases          int               `json:"leases"`
	Pages           uint64            `json:"pages"`
	FreePages       uint64            `json:"freePages"`
	Alarms          []snapshot.Raised `json:"alarms"`
}

func stored(st snapshot.Status) Stored {
	return Stored{
		CompactRevision: st.CompactRevision, Records: st.Records, Deletions: st.Tombstones, Leases: st.Leases,
		Pages: st.Pages, FreePages: st.FreePages, Alarms: st.Alarms,
	}
}

// Tables has a column for the input and, if written, one for the output.
func (s *Section) Tables(outcome transform.Outcome) []transform.Table {
	if s.Compaction == nil || outcome == transform.Refused {
		return nil
	}
	t := transform.Table{Header: []any{"", "BEFORE"}}
	before, after := s.Compaction.Before.column(), []any(nil)
	if s.Compaction.After == nil {
		t.Notes = []string{fmt.Sprintf("the compact revision would be %d", s.Compaction.Revision)}
	} else {
		t.Header, after = append(t.Header, "AFTER"), s.Compaction.After.column()
	}
	for i, name := range []string{"compact revision", "records", "deletions", "leases", "pages",
		"free pages", "alarms"} {
		row := []any{name, before[i]}
		if after != nil {
			row = append(row, after[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return []transform.Table{t}
}

func (s *Stored) column() []any {
	alarms := make([]string, len(s.Alarms))
	for i, a := range s.Alarms {
		alarms[i] = string(a.Kind)
	}
	if len(alarms) == 0 {
		alarms = []string{"none"}
	}
	return []any{s.CompactRevision, s.Records, s.Deletions, s.Leases, s.Pages, s.FreePages, strings.Join(alarms, ",")}
}
