package sanitize

import (
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/transform"
)

// Sanitized says what "migrate sanitize" replaced and what it did not.
type Sanitized struct {
	Sanitized    []Count   `json:"sanitized,omitempty"`    // by type
	LeftOut      []LeftOut `json:"leftOut,omitempty"`      // records without a place in the output
	NotSanitized []string  `json:"notSanitized,omitempty"` // what still tells of the cluster
}

// Count counts what was replaced in the objects of a type.
type Count struct {
	Type    string `json:"type"`
	Objects int    `json:"objects"` // with replaced values
	Values  int    `json:"values"`
}

// LeftOut is a record that is not in the output.
type LeftOut struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// notSanitized lists what is not replaced.
func notSanitized() []string {
	return []string{
		"names of namespaces, objects, containers, images, labels and users in RBAC",
		"IP addresses, host names, e-mail addresses, and certificates outside Secrets",
		"text that is no credential by its name or shape: events, commands, annotations and schemas of your own",
		"a password in a field that no name gives away, such as \"greeting\"",
	}
}

// Tables returns the section for a person.
func (s *Sanitized) Tables(transform.Outcome) []transform.Table {
	replaced := transform.Table{Title: "Replaced", Header: []any{"TYPE", "OBJECTS", "VALUES"}}
	for _, c := range s.Sanitized {
		replaced.Rows = append(replaced.Rows, []any{c.Type, c.Objects, c.Values})
	}
	tables := []transform.Table{replaced}
	if len(s.LeftOut) > 0 {
		out := transform.Table{Title: "Left out", Header: []any{"KEY", "WHY"}, Of: "records"}
		for _, l := range s.LeftOut {
			out.Rows = append(out.Rows, []any{l.Key, l.Why})
		}
		tables = append(tables, out)
	}
	still := transform.Table{Title: "Not replaced"}
	for _, what := range s.NotSanitized {
		still.Notes = append(still.Notes, "  "+what)
	}
	return append(tables, still)
}

// counts counts by type.
type counts map[string]*Count

func (c counts) add(name string, values int) {
	if c[name] == nil {
		c[name] = &Count{Type: name}
	}
	c[name].Objects++
	c[name].Values += values
}

// sorted lists the counts by type.
func (c counts) sorted() []Count {
	out := make([]Count, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		out = append(out, *c[name])
	}
	return out
}
