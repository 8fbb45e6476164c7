package transform

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Section is a part of a report that belongs to one transform. In JSON a Section is an object,
// whose fields become fields of the report. In text the sections replace the table of kinds.
type Section interface {
	// Tables returns the section as text tables; none if the section is empty for the outcome.
	Tables(Outcome) []Table
}

// Table is a text table. Cells are printed by fmt.Sprint.
type Table struct {
	Title  string // line above; "" for none
	Header []any  // nil for none
	Rows   [][]any
	Of     string   // plural of a row: only the first rows of many are printed; "" to print all rows
	More   int      // rows of the report that are not in Rows
	Totals [][]any  // rows below the others, always printed
	Notes  []string // lines below
}

// Tables returns the tables of the sections; without a section, a table of kinds.
func (r *Report) Tables() (tables []Table) {
	if len(r.Sections) == 0 {
		tables = append(tables, kindTable(r.Kinds))
	}
	for _, s := range append(slices.Clip(r.Sections), r.Appendix) {
		if s != nil {
			tables = append(tables, s.Tables(r.Outcome)...)
		}
	}
	return tables
}

// kindTable returns a table with a row for each kind, without the columns of a migration if no
// version changes.
func kindTable(kinds []KindCount) Table {
	moved := slices.ContainsFunc(kinds, func(k KindCount) bool { return k.From != k.To || k.Conflicts > 0 })
	t, total := Table{Header: []any{"KIND", "VERSION", "CHANGED", "UNCHANGED", "SKIPPED"}}, KindCount{Kind: "total"}
	row := func(k KindCount) []any { return []any{k.Kind, k.From, k.Migrated, k.Unchanged, k.Skipped} }
	if moved {
		t.Header = []any{"KIND", "FROM", "TO", "MIGRATED", "UNCHANGED", "SKIPPED", "CONFLICTS"}
		row = func(k KindCount) []any {
			return []any{k.Kind, k.From, k.To, k.Migrated, k.Unchanged, k.Skipped, k.Conflicts}
		}
	}
	for _, k := range kinds {
		t.Rows = append(t.Rows, row(k))
		total.Migrated += k.Migrated
		total.Unchanged += k.Unchanged
		total.Skipped += k.Skipped
		total.Conflicts += k.Conflicts
	}
	t.Totals = [][]any{row(total)}
	return t
}

// MarshalJSON returns one object with the fields of all parts.
func (r *Report) MarshalJSON() ([]byte, error) {
	parts := []any{r.Head}
	for _, s := range r.Sections {
		parts = append(parts, s)
	}
	parts = append(parts, r.Body)
	for _, last := range []Section{r.Appendix, r.Restored} {
		if last != nil {
			parts = append(parts, last)
		}
	}
	var fields [][]byte
	for _, part := range parts {
		var object bytes.Buffer
		e := json.NewEncoder(&object)
		e.SetEscapeHTML(false) // the caller's encoder escapes
		if err := e.Encode(part); err != nil {
			return nil, err
		}
		if inner := bytes.TrimSpace(object.Bytes()); len(inner) > len("{}") {
			fields = append(fields, inner[1:len(inner)-1])
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(fields, []byte(",")), []byte("}")), nil
}
