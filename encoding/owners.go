package encoding

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// EditOwnerReferences calls edit with each entry of metadata.ownerReferences, in order, and stores
// the result of edit if edit returns true and a different reference. If a UID changes, the
// managedFields paths of the object change too, so field ownership stays. The rest of data stays.
//
// changed counts the changed references; 0 means that out is data itself. Owner references inside
// embedded templates are skipped. Formats and errors are those of Get.
func EditOwnerReferences(
	data []byte, edit func(OwnerReference) (OwnerReference, bool),
) (out []byte, changed int, err error) {
	content, err := Get(data, "metadata", "ownerReferences")
	if err != nil {
		return nil, 0, err
	}
	e := ownerEdit{edit: edit, uids: map[string]string{}}
	metadata := reader{obj: map[string]any{"ownerReferences": content}}
	metadata.objects("ownerReferences", e.reference)
	switch {
	case metadata.err != nil:
		return nil, 0, fmt.Errorf("%s value: %w", Detect(data), at("metadata", metadata.err))
	case e.changed == 0:
		return data, 0, nil
	}
	if out, err = Set(data, content, "metadata", "ownerReferences"); err != nil {
		return nil, 0, err
	}
	return e.renamePaths(out), e.changed, nil
}

// ownerEdit is the state of one EditOwnerReferences.
type ownerEdit struct {
	edit    func(OwnerReference) (OwnerReference, bool)
	uids    map[string]string // old to new UID of each changed reference
	changed int
}

func (r *reader) owner() OwnerReference {
	return OwnerReference{
		APIVersion: r.str("apiVersion"), Kind: r.str("kind"), Name: r.str("name"), UID: r.str("uid"),
		Controller: r.boolean("controller"), BlockOwnerDeletion: r.boolean("blockOwnerDeletion"),
	}
}

// reference edits a decoded reference in place.
func (e *ownerEdit) reference(r *reader) {
	before := r.owner()
	if r.err != nil {
		return
	}
	after, changed := e.edit(before)
	was, is := before.content(), after.content()
	if !changed || maps.Equal(was, is) {
		return
	}
	e.changed++
	if after.UID != before.UID {
		e.uids[before.UID] = after.UID
	}
	maps.DeleteFunc(r.obj, func(name string, _ any) bool { return was[name] != nil && is[name] == nil })
	for name, value := range is {
		if value != was[name] {
			r.obj[name] = value
		}
	}
}

// content returns the reference as JSON content.
func (o OwnerReference) content() map[string]any {
	out := map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": o.UID}
	if o.Controller != nil {
		out["controller"] = *o.Controller
	}
	if o.BlockOwnerDeletion != nil {
		out["blockOwnerDeletion"] = *o.BlockOwnerDeletion
	}
	return out
}

// renamePaths renames UIDs in the paths of all managers: the keys k:{"uid":"..."} below
// f:metadata.f:ownerReferences. If managedFields cannot be read, the result is data itself: a
// server then ignores managedFields.
func (e *ownerEdit) renamePaths(data []byte) []byte {
	content, err := Get(data, "metadata", "managedFields")
	managed, _ := content.([]any)
	if err != nil || len(e.uids) == 0 {
		return data
	}
	for _, entry := range managed {
		content, _ := lookup(entry, []string{"fieldsV1", "f:metadata", "f:ownerReferences"})
		paths, _ := content.(map[string]any)
		before := maps.Clone(paths)
		clear(paths)
		// two owners may now be one: the first stays
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(before))) {
			paths[e.rename(name)] = before[name]
		}
	}
	if out, err := Set(data, content, "metadata", "managedFields"); err == nil {
		return out
	}
	return data
}

// rename renames the UID in a path element such as k:{"uid":"7d0c..."}.
func (e *ownerEdit) rename(element string) string {
	key, isKey := strings.CutPrefix(element, "k:")
	if !isKey {
		return element
	}
	content, err := Get([]byte(key), "uid")
	uid, isText := content.(string)
	renamed, found := e.uids[uid]
	if err != nil || !isText || !found {
		return element
	}
	text, err := Set([]byte(key), renamed, "uid")
	if err != nil {
		return element
	}
	return "k:" + string(text)
}
