package compare

import (
	"maps"
	"slices"
)

// apply returns the new value from the old one and the changes, without changing the old one.
// Nothing may be redacted.
func apply(old any, changes []Change) any {
	if len(changes) == 0 {
		return old
	}
	if c := changes[0]; len(c.Path) == 0 && c.Op == Changed {
		return c.New
	}
	return applyBelow(old, changes, 0)
}

// applyBelow applies changes with paths longer than depth, or of a reordered list at depth.
func applyBelow(old any, changes []Change, depth int) any {
	if list, isList := old.([]any); isList {
		return applyToList(list, changes, depth)
	}
	out := maps.Clone(old.(map[string]any))
	for _, group := range groups(changes, depth) {
		name := group[0].Path[depth].Field
		value, removed := applyGroup(out[name], group, depth)
		if out[name] = value; removed {
			delete(out, name)
		}
	}
	return out
}

func applyToList(list []any, changes []Change, depth int) any {
	var order []int
	gone := map[int]bool{}
	at := map[int]any{} // by new index
	for _, group := range groups(changes, depth) {
		if len(group[0].Path) == depth {
			order = group[0].Order
			continue
		}
		step := group[0].Path[depth]
		var item any
		if step.Old >= 0 {
			gone[step.Old] = true
			item = list[step.Old]
		}
		if value, removed := applyGroup(item, group, depth); !removed {
			at[step.New] = value
		}
	}
	if order == nil {
		for i := range list {
			order = append(order, i)
		}
	}
	order = slices.DeleteFunc(slices.Clone(order), func(i int) bool { return gone[i] })
	out := []any{}
	for j := 0; len(at) > 0 || len(order) > 0; j++ {
		if value, placed := at[j]; placed {
			out = append(out, value)
			delete(at, j)
			continue
		}
		out, order = append(out, list[order[0]]), order[1:]
	}
	return out
}

// applyGroup applies the changes of one field or item, at its path or below.
func applyGroup(old any, group []Change, depth int) (value any, removed bool) {
	if c := group[0]; len(c.Path) == depth+1 && c.Op != Reordered {
		return c.New, c.Op == Removed
	}
	return applyBelow(old, group, depth+1), false
}

// groups groups changes of the same field or item.
func groups(changes []Change, depth int) (out [][]Change) {
	for i, c := range changes {
		if i > 0 && len(c.Path) > depth && len(changes[i-1].Path) > depth && c.Path[depth] == changes[i-1].Path[depth] {
			out[len(out)-1] = append(out[len(out)-1], c)
			continue
		}
		out = append(out, []Change{c})
	}
	return out
}
