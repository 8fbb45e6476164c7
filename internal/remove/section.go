package remove

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Deletion is the section of a report about deleted objects and the garbage collector's actions.
type Deletion struct {
	Deletion *Removed `json:"deletion,omitempty"`
}

// Removed lists deleted objects and the garbage collector's actions after the deletion.
type Removed struct {
	Types     []DeletedType `json:"types"`     // by name
	Collected []Collected   `json:"collected"` // by key
	Orphaned  int           `json:"orphaned"`  // objects without their deleted owners: --cascade=orphan

	few    bool // keep only the first keys of a type, for terminal output
	counts map[schema.GroupResource]*DeletedType
}

// DeletedType lists the deleted objects of a type.
type DeletedType struct {
	Type   string   `json:"type"`   // "deployments.apps"; "" for keys of no type
	Chosen int      `json:"chosen"` // by the command line
	Inside int      `json:"inside"` // in deleted namespaces, of deleted definitions, or with deleted Services
	Keys   []string `json:"keys"`   // etcd keys of all deleted objects
}

// fewKeys is the number of keys printed for a type.
const fewKeys = 12

// Collected is an object that the garbage collector deletes or changes after the restore.
type Collected struct {
	Key    string   `json:"key"` // etcd key
	Does   Deed     `json:"does"`
	Owners []string `json:"owners"` // missing owners: "kind name"
}

// Deed is the garbage collector's action on an object.
type Deed string

// Actions of the garbage collector.
const (
	Deleted  Deed = "deleted"
	Marked   Deed = "marked for deletion" // finalizers prevent the deletion
	Released Deed = "released"            // missing owners are removed from its list; other owners exist
	Kept     Deed = "kept"                // an owner's kind is not served: the collector retries forever
)

func newRemoved(few bool) *Removed {
	return &Removed{few: few, Types: []DeletedType{}, Collected: []Collected{},
		counts: map[schema.GroupResource]*DeletedType{}}
}

// add adds a deleted object.
func (d *Removed) add(stored []byte, key keys.Key, chosen bool) {
	t := d.counts[key.Resource]
	if t == nil {
		t = &DeletedType{Type: key.Resource.String()}
		d.counts[key.Resource] = t
	}
	if t.Keys = append(t.Keys, string(stored)); d.few && len(t.Keys) > 64*fewKeys {
		slices.Sort(t.Keys)
		t.Keys = t.Keys[:fewKeys]
	}
	if chosen {
		t.Chosen++
	} else {
		t.Inside++
	}
}

// finish sorts the lists.
func (d *Removed) finish() {
	for _, t := range d.counts {
		slices.Sort(t.Keys)
		d.Types = append(d.Types, *t)
	}
	slices.SortFunc(d.Types, func(a, b DeletedType) int { return strings.Compare(a.Type, b.Type) })
	slices.SortFunc(d.Collected, func(a, b Collected) int { return strings.Compare(a.Key, b.Key) })
}

// Tables lists the types, the objects of each type, and the garbage collector's actions.
func (s *Deletion) Tables(outcome transform.Outcome) []transform.Table {
	d := s.Deletion
	if d == nil {
		return nil
	}
	types := transform.Table{}
	with := slices.ContainsFunc(d.Types, func(t DeletedType) bool { return t.Inside > 0 })
	for _, t := range d.Types {
		row := []any{t.name(), t.Chosen, t.Inside}
		types.Rows = append(types.Rows, row[:len(row)-1])
		if with {
			types.Rows[len(types.Rows)-1] = row
		}
	}
	if len(types.Rows) == 0 {
		types.Notes = []string{"nothing is deleted"}
		return []transform.Table{types}
	}
	types.Header = []any{"TYPE", "SELECTED", "DELETED WITH THEM"}[:len(types.Rows[0])]
	if d.Orphaned > 0 {
		types.Notes = []string{fmt.Sprintf("deleted owners are removed from %d objects", d.Orphaned)}
	}
	tables := []transform.Table{types}
	for _, t := range d.Types {
		tables = append(tables, t.table(outcome))
	}
	if len(d.Collected) == 0 {
		return tables
	}
	collected := transform.Table{Title: "After the restore, the garbage collector does this",
		Header: []any{"KEY", "IS", "OWNERS GONE"}, Of: "objects"}
	totals := map[Deed]int{}
	for _, c := range d.Collected {
		collected.Rows = append(collected.Rows, []any{c.Key, c.Does, strings.Join(c.Owners, ", ")})
		totals[c.Does]++
	}
	for _, does := range []Deed{Deleted, Marked, Released, Kept} {
		if n := totals[does]; n > 0 {
			collected.Totals = append(collected.Totals, []any{fmt.Sprintf("total: %d", n), does, ""})
		}
	}
	return append(tables, collected)
}

// name returns the type, or the name of keys of no type.
func (t *DeletedType) name() string { return cmp.Or(t.Type, "other keys") }

// table lists the first objects of a type.
func (t *DeletedType) table(outcome transform.Outcome) transform.Table {
	title := "deleted: "
	if outcome != transform.Written {
		title = "to be deleted: "
	}
	shown := t.Keys[:min(len(t.Keys), fewKeys)]
	out := transform.Table{Title: title + t.name(), Of: "objects", More: t.Chosen + t.Inside - len(shown)}
	for _, key := range shown {
		out.Rows = append(out.Rows, []any{key})
	}
	return out
}
