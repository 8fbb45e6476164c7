package graft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Imported is the section of a report about the records of an archive.
type Imported struct {
	Import *Counts `json:"import,omitempty"`
}

// Counts counts the records of an archive, and the changes that they cause in the allocators.
type Counts struct {
	Types     []TypeCount `json:"types"`     // by name
	Leased    int         `json:"leased"`    // records with a lease, granted anew
	Addresses []string    `json:"addresses"` // keys of allocator records and IPAddresses that the run changed
}

// TypeCount counts the records of a type.
type TypeCount struct {
	Type     string `json:"type"`     // "deployments.apps"; "" for keys of no type
	Created  int    `json:"created"`  // new keys
	Replaced int    `json:"replaced"` // in place of another value of B
	Kept     int    `json:"kept"`     // not imported: another value of B stays
	Same     int    `json:"same"`     // B has the same value
}

// of returns the count of a key's type.
func (s *Imported) of(key keys.Key) *TypeCount {
	name := key.Resource.String()
	i, found := slices.BinarySearchFunc(s.Import.Types, name,
		func(t TypeCount, name string) int { return strings.Compare(t.Type, name) })
	if !found {
		s.Import.Types = slices.Insert(s.Import.Types, i, TypeCount{Type: name})
	}
	return &s.Import.Types[i]
}

// Tables lists the types.
func (s *Imported) Tables(transform.Outcome) []transform.Table {
	c := s.Import
	if c == nil {
		return nil
	}
	t, sum := transform.Table{Title: "records of the archive",
		Header: []any{"TYPE", "CREATED", "REPLACED", "KEPT", "SAME"}}, TypeCount{}
	for _, one := range c.Types {
		name := one.Type
		if name == "" {
			name = "other keys"
		}
		t.Rows = append(t.Rows, []any{name, one.Created, one.Replaced, one.Kept, one.Same})
		sum.Created, sum.Replaced = sum.Created+one.Created, sum.Replaced+one.Replaced
		sum.Kept, sum.Same = sum.Kept+one.Kept, sum.Same+one.Same
	}
	t.Totals = [][]any{{"total", sum.Created, sum.Replaced, sum.Kept, sum.Same}}
	t.Notes = []string{fmt.Sprintf("records with a lease: %d; changed for the Services: %s", c.Leased,
		phrase.Count(len(c.Addresses), "allocator record"))}
	return []transform.Table{t}
}
