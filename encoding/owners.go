package encoding

import "fmt"

// EditOwnerReferences gives each entry of metadata.ownerReferences to edit, in order, and stores what it returns where
// it returns true and something else. Unknown fields and the order of all fields stay. Where an edit changes a uid, the
// managedFields paths of the same object that name the old uid follow, so that field ownership stays what it was.
//
// changed counts the references that are different now; 0 means that out is data itself. Owner references inside
// embedded templates are left alone. A value in any format but encrypted is taken; ErrEncrypted and ErrUnknownFormat
// are returned for others.
func EditOwnerReferences(data []byte, edit func(OwnerReference) (OwnerReference, bool)) (out []byte, changed int, err error) {
	e := ownerEdit{edit: edit, uids: make(map[string]string)}
	f := Detect(data)
	switch f {
	case FormatProtobuf:
		out, err = editProtobuf(data, e.object)
	case FormatJSON:
		out, err = editJSON(data, e.jsonValue)
	case FormatCBOR:
		out, err = editCBORMetadata(data, e.jsonValue)
	default:
		return nil, 0, unsupported(data, f)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s value: %w", f, err)
	}
	return out, e.changed, nil
}

// ownerEdit is one run over one object.
type ownerEdit struct {
	edit    func(OwnerReference) (OwnerReference, bool)
	uids    map[string]string // old to new, of the references changed so far
	changed int
}

// apply asks for the new form of a reference and notes what changed.
func (e *ownerEdit) apply(before OwnerReference) (after OwnerReference, changed bool) {
	after, changed = e.edit(before)
	if !changed || after.equal(before) {
		return before, false
	}
	e.changed++
	if after.UID != before.UID {
		e.uids[before.UID] = after.UID
	}
	return after, true
}

func (o OwnerReference) equal(other OwnerReference) bool {
	return o.APIVersion == other.APIVersion && o.Kind == other.Kind && o.Name == other.Name && o.UID == other.UID &&
		equalBool(o.Controller, other.Controller) && equalBool(o.BlockOwnerDeletion, other.BlockOwnerDeletion)
}

func equalBool(a, b *bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
