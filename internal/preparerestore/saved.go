package preparerestore

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/inspect"
)

// whole is the content of an object as it is stored.
func whole(o *inspect.Object) map[string]any {
	content := runtime.DeepCopyJSON(o.Content)
	if meta, is := content["metadata"].(map[string]any); is {
		delete(meta, "resourceVersion")
	}
	return content
}

// changed returns the fields in which two objects differ, with the values of each. A field that is
// missing in one is null there. Elements of lists are matched by their names where all have one;
// else a list is one value. metadata.generation counts changes and is none itself.
func changed(before, after map[string]any) (was, is map[string]any) {
	was, is = map[string]any{}, map[string]any{}
	for field := range union(before, after) {
		b, a := before[field], after[field]
		if reflect.DeepEqual(b, a) || field == "resourceVersion" || field == "generation" {
			continue
		}
		bm, isMap := b.(map[string]any)
		am, both := a.(map[string]any)
		switch {
		case both && (isMap || b == nil):
			if w, i := changed(bm, am); len(i) > 0 {
				was[field], is[field] = w, i
			}
		case alike(b, a):
			if w, i := changedElements(b, a); len(i) > 0 {
				was[field], is[field] = w, i
			}
		default:
			was[field], is[field] = b, a
		}
	}
	return was, is
}

// changedElements is changed for lists that are alike.
func changedElements(before, after any) (was, is []any) {
	by := named(after)
	names, _ := namesOf(before)
	for _, name := range names {
		if w, i := changed(named(before)[name], by[name]); len(i) > 0 {
			w["name"], i["name"] = name, name
			was, is = append(was, w), append(is, i)
		}
	}
	return was, is
}

// alike tells whether two lists have elements of the same names, in the same order.
func alike(a, b any) bool {
	first, are := namesOf(a)
	second, too := namesOf(b)
	return are && too && slices.Equal(first, second)
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// namesOf returns the names of all elements of a list; false where one has none, or two the same.
func namesOf(value any) (names []string, ok bool) {
	list, _ := value.([]any)
	for _, one := range list {
		element, _ := one.(map[string]any)
		name, _ := element["name"].(string)
		if name == "" || slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, len(names) > 0
}

// named returns the elements of a list by name.
func named(value any) map[string]map[string]any {
	by := map[string]map[string]any{}
	list, _ := value.([]any)
	for _, one := range list {
		element, _ := one.(map[string]any)
		name, _ := element["name"].(string)
		by[name] = element
	}
	return by
}

// identified adds to fields of an object what tells whose they are.
func identified(fields, of map[string]any) map[string]any {
	out := maps.Clone(fields)
	out["apiVersion"], out["kind"] = of["apiVersion"], of["kind"]
	meta, _ := out["metadata"].(map[string]any)
	meta = union(meta, nil)
	from, _ := of["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace", "uid"} {
		if from[field] != nil {
			meta[field] = from[field]
		}
	}
	out["metadata"] = meta
	return out
}

// putBack sets the fields of was in an object, where they still have the values of is. It returns
// the path of a field that has another one, "" for none. current is changed.
func putBack(current, was, is map[string]any) (other string) {
	for _, field := range slices.Sorted(maps.Keys(is)) {
		if path := putBackField(current, field, was[field], is[field]); path != "" {
			return path
		}
	}
	return ""
}

func putBackField(current map[string]any, field string, was, is any) (other string) {
	inner, isMap := is.(map[string]any)
	before, both := was.(map[string]any)
	switch {
	case isMap && both:
		content, there := current[field].(map[string]any)
		if !there {
			return field
		}
		if other = putBack(content, before, inner); other != "" {
			return field + "." + other
		}
		if len(content) == 0 { // which the run made for its fields
			delete(current, field)
		}
	case alike(was, is):
		return putBackElements(current[field], field, was, is)
	case !reflect.DeepEqual(current[field], is):
		return field
	case was == nil:
		delete(current, field)
	default:
		current[field] = was
	}
	return ""
}

// putBackElements is putBack for the elements of a list.
func putBackElements(current any, field string, was, is any) (other string) {
	now, before := named(current), named(was)
	names, _ := namesOf(is)
	for _, name := range names {
		at := field + "[" + name + "]"
		if now[name] == nil {
			return at
		}
		after := maps.Clone(named(is)[name])
		delete(after, "name")
		if other = putBack(now[name], before[name], after); other != "" {
			return at + "." + other
		}
	}
	return ""
}
