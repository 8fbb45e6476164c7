package crop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Needs is the section of a report about needed objects that are not selected.
type Needs struct {
	Needs []archive.Needed `json:"needs,omitempty"` // by key
}

// Tables lists the needed objects.
func (n *Needs) Tables(transform.Outcome) []transform.Table {
	t := transform.Table{Title: "needed by the selected objects", Header: []any{"KEY", "STATE", "NEEDED BY"},
		Of: "objects"}
	for _, one := range n.Needs {
		by := one.By
		if one.Objects > 1 {
			by += fmt.Sprintf(" and %d more", one.Objects-1)
		}
		t.Rows = append(t.Rows, []any{one.Key, one.Is, by})
	}
	if slices.ContainsFunc(n.Needs, func(one archive.Needed) bool { return one.Is == archive.InFile }) {
		t.Notes = []string{"--needed adds the objects that are left out"}
	}
	return []transform.Table{t}
}

// Part is the appendix of a report about the records of OUT.
type Part struct {
	Part *Content `json:"part,omitempty"`
}

// Content counts the records of OUT.
type Content struct {
	Types   []archive.TypeCount `json:"types"`   // by name
	Keys    int                 `json:"keys"`    // records
	Bytes   int64               `json:"bytes"`   // of keys and stored values
	Leases  int                 `json:"leases"`  // of the records
	LeftOut int                 `json:"leftOut"` // live records of IN that are not in OUT
}

// add counts a record.
func (p *Part) add(key keys.Key, rec *snapshot.Record) {
	c, size := p.Part, int64(len(rec.Key)+len(rec.Value))
	name := key.Resource.String()
	i, found := slices.BinarySearchFunc(c.Types, name,
		func(t archive.TypeCount, name string) int { return strings.Compare(t.Type, name) })
	if !found {
		c.Types = slices.Insert(c.Types, i, archive.TypeCount{Type: name})
	}
	c.Types[i].Keys++
	c.Types[i].Bytes += size
	c.Keys++
	c.Bytes += size
}

// Tables lists the types.
func (p *Part) Tables(transform.Outcome) []transform.Table {
	c := p.Part
	if c == nil {
		return nil
	}
	t := transform.Table{Title: "selected", Header: []any{"TYPE", "KEYS", "BYTES"},
		Totals: [][]any{{"total", c.Keys, c.Bytes}}}
	for _, one := range c.Types {
		name := one.Type
		if name == "" {
			name = "other keys"
		}
		t.Rows = append(t.Rows, []any{name, one.Keys, one.Bytes})
	}
	t.Notes = []string{fmt.Sprintf("left out: %s; leases of the selected records: %d",
		phrase.Count(c.LeftOut, "live record"), c.Leases)}
	return []transform.Table{t}
}
