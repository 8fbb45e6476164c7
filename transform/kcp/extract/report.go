package extract

import (
	"cmp"
	"fmt"

	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// Manifest is the section of a report with the manifest of the archive, also of a dry run.
type Manifest struct {
	*archive.Manifest `json:"manifest,omitempty"`
}

// Tables shows the content of the archive and the things that it relies on.
func (m *Manifest) Tables(transform.Outcome) (tables []transform.Table) {
	for _, c := range m.Clusters {
		t := transform.Table{
			Title:  fmt.Sprintf("logical cluster %s (%s)", c.Name, c.Path),
			Header: []any{"RESOURCE", "KEYS", "BYTES", "SHA256"},
			Totals: [][]any{{"all of it", c.Keys, c.Bytes, c.SHA256}},
		}
		for _, r := range c.Resources {
			name := r.Resource
			if r.Identity != "" {
				name += " of " + r.Identity[:8]
			}
			t.Rows = append(t.Rows, []any{name, r.Keys, r.Bytes, r.SHA256})
		}
		tables = append(tables, t)
	}
	sum := func(what string, s archive.Sum) []any {
		return []any{what, fmt.Sprintf("%s, %d bytes", survey.Counted(s.Keys, "key"), s.Bytes), s.SHA256}
	}
	return append(tables,
		transform.Table{Rows: [][]any{sum("whole archive", m.Total), sum("rest of the shard", m.Origin.Rest)}},
		transform.Table{Rows: m.reliance()})
}

// reliance lists the things that the destination of the archive must have.
func (m *Manifest) reliance() (rows [][]any) {
	row := func(cells ...any) { rows = append(rows, cells) }
	for _, d := range m.Definitions {
		row("definition", d.Resource, d.UID, "in the archive")
	}
	for _, d := range m.Missing {
		row("definition", d.Resource, d.UID, "missing")
	}
	for _, i := range m.Identities {
		what := "relied on"
		if i.Own {
			what = "its own"
		}
		for _, e := range i.Exports {
			row("identity", e.Name+" of "+cmp.Or(e.Path, e.Cluster), i.Hash, what)
		}
		if len(i.Exports) == 0 {
			row("identity", "no binding tells whose", i.Hash, what)
		}
	}
	for _, l := range m.Leases {
		row("lease", fmt.Sprintf("%d s", l.TTL), l.ID, "of "+survey.Counted(l.Keys, "key"))
	}
	for _, e := range m.Encryption {
		row("encrypted by", e.Name, survey.Counted(e.Keys, "value"))
	}
	return rows
}
