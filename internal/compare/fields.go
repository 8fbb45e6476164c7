package compare

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// Change is a changed value.
type Change struct {
	Path Path `json:"path"`
	Op   Op   `json:"op"`
	// The values, redacted if necessary. For a reordered list, the names of the remaining items.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
	// Redacted is set if Old or New hides the compared value. Both may look equal.
	Redacted bool `json:"redacted,omitempty"`
	// Order of a reordered list: the old index of each remaining item.
	Order []int `json:"-"`
}

// view is a value to compare and its printable form. Both have the same fields and items, except
// redacted ones.
type view struct{ Raw, Shown any }

// plain returns the view of a value without secrets.
func plain(v any) view { return view{v, v} }

// maxDepth bounds the depth of paths, and the nesting of a shown value. A hostile value may be
// 10,000 levels deep.
const maxDepth = 100

// differences returns the changes from a to b. Both are JSON content: map[string]any, []any,
// string, bool, int64, float64 and nil.
func differences(a, b view) []Change {
	var d differ
	d.values(nil, a, b)
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) add(path Path, op Op, a, b view) {
	d.changes = append(d.changes, Change{Path: slices.Clone(path), Op: op, Old: a.Shown, New: b.Shown,
		Redacted: a.redacted() || b.redacted()})
}

func (d *differ) values(path Path, a, b view) {
	if len(path) < maxDepth && a.hasParts() && b.hasParts() {
		switch x := a.Raw.(type) {
		case map[string]any:
			if y, ok := b.Raw.(map[string]any); ok {
				d.objects(path, a, b, x, y)
				return
			}
		case []any:
			if y, ok := b.Raw.([]any); ok {
				d.lists(path, a, b, x, y)
				return
			}
		}
	}
	if !Equal(a.Raw, b.Raw) {
		d.add(path, Changed, a, b)
	}
}

func (d *differ) objects(path Path, a, b view, x, y map[string]any) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		_, inA := x[name]
		_, inB := y[name]
		at := append(path, pathStep{Field: name})
		switch {
		case !inB:
			d.add(at, Removed, a.field(name), view{})
		case !inA:
			d.add(at, Added, view{}, b.field(name))
		default:
			d.values(at, a.field(name), b.field(name))
		}
	}
}

func (d *differ) lists(path Path, a, b view, x, y []any) {
	m := match(x, y)
	stays := make([]bool, len(x))
	var order []int
	for _, i := range m.old {
		if i >= 0 {
			stays[i] = true
			order = append(order, i)
		}
	}
	for i, stayed := range stays {
		if !stayed {
			d.add(append(path, pathStep{Item: m.name(a.item(i), i), Old: i, New: -1}), Removed, a.item(i), view{})
		}
	}
	if !slices.IsSorted(order) {
		d.reordered(path, a, m, order)
	}
	for j, i := range m.old {
		at := append(path, pathStep{Item: m.name(b.item(j), j), Old: i, New: j})
		if i < 0 {
			d.add(at, Added, view{}, b.item(j))
		} else {
			d.values(at, a.item(i), b.item(j))
		}
	}
}

func (d *differ) reordered(path Path, a view, m matching, order []int) {
	names := func(order []int) any {
		var out []any
		for _, i := range order {
			out = append(out, m.name(a.item(i), i))
		}
		return out
	}
	d.changes = append(d.changes, Change{
		Path: slices.Clone(path), Op: Reordered, Old: names(slices.Sorted(slices.Values(order))),
		New: names(order), Order: order,
	})
}

// hasParts reports whether the parts of a value may be shown, not only its redacted form.
func (v view) hasParts() bool {
	switch raw := v.Raw.(type) {
	case map[string]any:
		shown, ok := v.Shown.(map[string]any)
		return ok && len(shown) == len(raw)
	case []any:
		shown, ok := v.Shown.([]any)
		return ok && len(shown) == len(raw)
	}
	return true
}

func (v view) redacted() bool { return !Equal(v.Raw, v.Shown) }

func (v view) field(name string) view {
	return view{v.Raw.(map[string]any)[name], v.Shown.(map[string]any)[name]}
}

func (v view) item(i int) view {
	return view{v.Raw.([]any)[i], v.Shown.([]any)[i]}
}

// Equal reports whether two values of JSON content are equal. 1 equals 1.0.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Equal)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	}
	return a == b
}

// pathStep is one step down: to a field of an object, or to an item of a list.
type pathStep struct {
	Field string
	Item  string // name of an item: "name=web", or its index; "" for a field
	// The index of an item in the old and in the new list, -1 for none.
	Old, New int
}

// Path leads to a value. The empty path is the whole value.
type Path []pathStep

// String formats the path: spec.containers[name=web].image, metadata.labels["example.com/name"].
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Item != "":
			b.WriteString("[" + s.Item + "]")
		case !plainField().MatchString(s.Field):
			b.WriteString("[" + strconv.Quote(s.Field) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Field)
		}
	}
	return b.String()
}

// MarshalJSON encodes the path as in String.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// is reports whether the path begins with these fields.
func (p Path) is(fields ...string) bool {
	return len(p) >= len(fields) && slices.EqualFunc(p[:len(fields)], fields, func(s pathStep, field string) bool {
		return s.Item == "" && s.Field == field
	})
}

// plainField matches fields without quotes in a path.
var plainField = pattern.New(`^[\w$()-]+$`)

// leaderAnnotation holds the record of a leader election without a Lease (client-go until 0.27).
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// isNoiseChange reports whether a change of an object of the kind is folded away:
//
//   - metadata.managedFields and metadata.resourceVersion,
//   - the renewTime and the status of a Lease, the renewTime of a leader's record in an annotation,
//   - the lastHeartbeatTime of a Node's conditions.
func isNoiseChange(kind schema.GroupKind, c Change) bool {
	p := c.Path
	switch {
	case p.is("metadata", "managedFields"), p.is("metadata", "resourceVersion"):
		return true
	case len(p) == 3 && p.is("metadata", "annotations", leaderAnnotation):
		return onlyRenewed(c.Old, c.New)
	case kind == schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return p.is("spec", "renewTime") || p.is("status")
	case kind == schema.GroupKind{Kind: "Node"}:
		return len(p) == 4 && p.is("status", "conditions") && p[3].Field == "lastHeartbeatTime"
	}
	return false
}

// onlyRenewed reports whether two records of a leader election differ only in renewTime.
func onlyRenewed(old, new any) bool {
	var records [2]map[string]any
	for i, value := range []any{old, new} {
		text, ok := value.(string)
		if !ok || json.Unmarshal([]byte(text), &records[i]) != nil || records[i] == nil {
			return false
		}
		delete(records[i], "renewTime")
	}
	return Equal(records[0], records[1])
}
