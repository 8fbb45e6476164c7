package encoding

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// EditOwnerReferences calls edit with each entry of metadata.ownerReferences, in order, and stores
// its result if edit returns true and a different reference. After a change of a UID, the
// managedFields paths of the object follow, so that field ownership stays. All else stays.
//
// changed counts the changed references; 0 means that out is data itself. Owner references inside
// embedded templates are skipped. Formats and errors are those of Get.
func EditOwnerReferences(data []byte, edit func(OwnerReference) (OwnerReference, bool)) (out []byte, changed int, err error) {
	before, err := readOwners(data)
	if err != nil {
		return nil, 0, err
	}
	var after []OwnerReference
	var uids map[string]string // old to new
	for i, owner := range before {
		edited, is := edit(owner)
		if !is || edited.equal(owner) {
			continue
		}
		if changed++; after == nil {
			after, uids = slices.Clone(before), map[string]string{}
		}
		after[i] = edited
		if edited.UID != owner.UID {
			uids[owner.UID] = edited.UID
		}
	}
	if changed == 0 {
		return data, 0, nil
	}
	content, err := Get(data, "metadata", "ownerReferences")
	if err != nil {
		return nil, 0, err
	}
	list, _ := content.([]any)
	for i, element := range list {
		after[i].store(element.(map[string]any), before[i]) // it was read before
	}
	if out, err = Set(data, list, "metadata", "ownerReferences"); err == nil && len(uids) > 0 {
		out, err = renameInManagedFields(out, uids)
	}
	return out, changed, err
}

// readOwners reads the owner references, fast: most objects keep theirs.
func readOwners(data []byte) (owners []OwnerReference, err error) {
	f := Detect(data)
	if f == FormatProtobuf {
		var m Meta
		m, err = metaOfProtobuf(data, metaOwnerReferences)
		owners = m.OwnerReferences
	} else {
		var list any
		if list, err = Get(data, "metadata", "ownerReferences"); err != nil {
			return nil, err
		}
		r := reader{obj: map[string]any{"ownerReferences": list}}
		r.objects("ownerReferences", func(o *reader) { owners = append(owners, o.owner()) })
		err = at("metadata", r.err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s value: %w", f, err)
	}
	return owners, nil
}

func (r *reader) owner() OwnerReference {
	return OwnerReference{
		APIVersion: r.str("apiVersion"), Kind: r.str("kind"), Name: r.str("name"), UID: r.str("uid"),
		Controller: r.boolean("controller"), BlockOwnerDeletion: r.boolean("blockOwnerDeletion"),
	}
}

// content is the reference as JSON content, nil for a missing field.
func (o OwnerReference) content() map[string]any {
	optional := func(value *bool) any {
		if value == nil {
			return nil
		}
		return *value
	}
	return map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": o.UID,
		"controller": optional(o.Controller), "blockOwnerDeletion": optional(o.BlockOwnerDeletion),
	}
}

// store puts the differences from before into a decoded reference.
func (o OwnerReference) store(into map[string]any, before OwnerReference) {
	was := before.content()
	for name, value := range o.content() {
		switch {
		case value == was[name]:
		case value == nil:
			delete(into, name)
		default:
			into[name] = value
		}
	}
}

// renameInManagedFields renames owner UIDs in the paths of managedFields: the keys k:{"uid":"..."}
// below f:metadata.f:ownerReferences. Unreadable FieldsV1 stay: a server ignores them too.
func renameInManagedFields(data []byte, uids map[string]string) ([]byte, error) {
	managed, err := Get(data, "metadata", "managedFields")
	if err != nil {
		return nil, err
	}
	entries, _ := managed.([]any)
	for _, entry := range entries {
		paths, err := lookup(entry, []string{"fieldsV1", "f:metadata"})
		metadata, ok := paths.(map[string]any)
		owners, is := metadata["f:ownerReferences"].(map[string]any)
		if err != nil || !ok || !is {
			continue
		}
		renamed := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(owners)) {
			to := renameOwner(key, uids)
			if _, twice := renamed[to]; !twice { // otherwise two owners became one
				renamed[to] = owners[key]
			}
		}
		metadata["f:ownerReferences"] = renamed
	}
	return Set(data, managed, "metadata", "managedFields")
}

// renameOwner renames the UID in a path element such as k:{"uid":"7d0c..."}.
func renameOwner(element string, uids map[string]string) string {
	key, isKey := strings.CutPrefix(element, "k:")
	if !isKey {
		return element
	}
	text, path := []byte(key), []string{"uid"}
	if checkJSON(text) != nil {
		return element
	}
	content, err := getJSON(text, path)
	uid, isText := content.(string)
	renamed, found := uids[uid]
	if err != nil || !found || !isText {
		return element
	}
	if text, err = setJSON(text, uid, renamed, path); err != nil {
		return element
	}
	return "k:" + string(text)
}

func (o OwnerReference) equal(other OwnerReference) bool {
	is := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	return o.APIVersion == other.APIVersion && o.Kind == other.Kind && o.Name == other.Name && o.UID == other.UID &&
		is(o.Controller, other.Controller) && is(o.BlockOwnerDeletion, other.BlockOwnerDeletion)
}
