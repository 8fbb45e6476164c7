package encoding

import (
	"cmp"
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
	e := ownerEdit{edit: edit}
	if out, err = byFormat(data, e.json, e.cbor, e.protobuf); err != nil {
		return nil, 0, err
	}
	return out, e.changed, nil
}

// ownerEdit is one EditOwnerReferences.
type ownerEdit struct {
	edit    func(OwnerReference) (OwnerReference, bool)
	uids    map[string]string // old to new, of the changed references
	changed int
}

// apply returns a reference after the edit.
func (e *ownerEdit) apply(before OwnerReference) (after OwnerReference, changed bool) {
	after, changed = e.edit(before)
	if !changed || after.equal(before) {
		return before, false
	}
	e.changed++
	if after.UID != before.UID {
		if e.uids == nil {
			e.uids = map[string]string{}
		}
		e.uids[before.UID] = after.UID
	}
	return after, true
}

func (e *ownerEdit) json(data []byte) ([]byte, error) {
	return editJSON(data, []string{"metadata"}, func(text []byte) ([]byte, error) {
		text, err := editText(text, []string{"ownerReferences"}, eachElement(e.referenceText))
		if err != nil || len(e.uids) == 0 {
			return text, err
		}
		return kept(text)(editText(text, []string{"managedFields"}, eachElement(func(entry []byte) ([]byte, error) {
			return kept(entry)(editText(entry, []string{"fieldsV1", "f:metadata", "f:ownerReferences"}, e.paths))
		})))
	})
}

// cbor edits decoded content: CBOR has no order of fields to keep.
func (e *ownerEdit) cbor(data []byte) ([]byte, error) {
	obj, err := decodeCBOR(data)
	if err != nil {
		return nil, err
	}
	r := reader{obj: obj}
	metadata := reader{obj: r.object("metadata")}
	metadata.objects("ownerReferences", e.reference)
	if err = cmp.Or(r.err, at("metadata", metadata.err)); err != nil || e.changed == 0 {
		return data, err
	}
	managed, _ := metadata.obj["managedFields"].([]any)
	for _, entry := range managed {
		content, _ := lookup(entry, []string{"fieldsV1", "f:metadata", "f:ownerReferences"})
		paths, _ := content.(map[string]any)
		before := maps.Clone(paths)
		clear(paths)
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(before))) { // the first stays, as in JSON
			paths[e.rename(name)] = before[name]
		}
	}
	return EncodeObject(obj, FormatCBOR)
}

func (e *ownerEdit) protobuf(data []byte) ([]byte, error) {
	return editProtobuf(data, func(msg []byte) ([]byte, error) {
		msg, err := editMessages(msg, objectMetaMember.members, []string{"ownerReferences"}, e.referenceWire)
		if err != nil || len(e.uids) == 0 {
			return msg, err
		}
		return kept(msg)(editMessages(msg, objectMetaMember.members, []string{"managedFields"}, func(entry []byte) ([]byte, error) {
			return kept(entry)(editMessages(entry, managedFieldsMembers, []string{"fieldsV1", "raw"}, e.fieldsV1))
		}))
	})
}

// kept returns before in place of an error of an edit of managedFields: a server ignores what it
// cannot read there.
func kept(before []byte) func(after []byte, err error) ([]byte, error) {
	return func(after []byte, err error) ([]byte, error) {
		if err != nil {
			return before, nil
		}
		return after, nil
	}
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
	after, changed := e.apply(before)
	if !changed {
		return
	}
	was, is := before.content(), after.content()
	for name := range was {
		if is[name] == nil {
			delete(r.obj, name)
		}
	}
	for name, value := range is {
		if value != was[name] {
			r.obj[name] = value
		}
	}
}

func (e *ownerEdit) referenceText(text []byte) ([]byte, error) {
	var content any
	if err := unmarshal(text, &content); err != nil {
		return nil, err
	}
	before, ok := content.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	r := reader{obj: maps.Clone(before)}
	if e.reference(&r); r.err != nil {
		return nil, r.err
	}
	return mergeJSON(text, before, r.obj)
}

func (e *ownerEdit) referenceWire(msg []byte) ([]byte, error) {
	var before OwnerReference
	if err := each(msg, before.readWire); err != nil {
		return nil, err
	}
	if after, changed := e.apply(before); changed {
		return setMembers(msg, ownerMembers, before.content(), after.content())
	}
	return msg, nil
}

// content is the reference as JSON content.
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

// fieldsV1 renames owner UIDs in the paths of a manager: the keys k:{"uid":"..."} below
// f:metadata.f:ownerReferences.
func (e *ownerEdit) fieldsV1(text []byte) ([]byte, error) {
	return editJSON(text, []string{"f:metadata", "f:ownerReferences"}, e.paths)
}

// paths renames them in the text of f:ownerReferences.
func (e *ownerEdit) paths(text []byte) ([]byte, error) {
	paths, err := parseJSONObject(text)
	sorted, changed := slices.IsSortedFunc(paths, byName), false
	for i, path := range paths {
		if name := e.rename(path.name); name != path.name {
			paths[i].name, paths[i].key, changed = name, quote(name), true
		}
	}
	if err != nil || !changed {
		return text, err
	}
	if sorted {
		slices.SortStableFunc(paths, byName)
	}
	seen := make(map[string]bool, len(paths))
	return slices.DeleteFunc(paths, func(path jsonField) bool { // two owners may be one now
		twice := seen[path.name]
		seen[path.name] = true
		return twice
	}).text(), nil
}

// rename renames the UID in a path element such as k:{"uid":"7d0c..."}.
func (e *ownerEdit) rename(element string) string {
	key, isKey := strings.CutPrefix(element, "k:")
	if !isKey {
		return element
	}
	text, err := editJSON([]byte(key), []string{"uid"}, func(text []byte) ([]byte, error) {
		if text[0] != '"' {
			return text, nil
		}
		uid, err := unquote(text)
		if renamed, found := e.uids[uid]; found {
			return quote(renamed), err
		}
		return text, err
	})
	if err != nil {
		return element
	}
	return "k:" + string(text)
}

func (o OwnerReference) equal(other OwnerReference) bool {
	is := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	return o.APIVersion == other.APIVersion && o.Kind == other.Kind && o.Name == other.Name && o.UID == other.UID &&
		is(o.Controller, other.Controller) && is(o.BlockOwnerDeletion, other.BlockOwnerDeletion)
}
