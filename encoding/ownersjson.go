package encoding

import (
	"bytes"
	"strconv"
)

func (e *ownerEdit) jsonValue(obj jsonObject) (jsonObject, bool, error) {
	return obj.edit("metadata", e.metadata)
}

func (e *ownerEdit) metadata(text []byte) ([]byte, bool, error) {
	metadata, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	metadata, changed, err := metadata.edit("ownerReferences", func(text []byte) ([]byte, bool, error) {
		return editList(text, e.jsonReference)
	})
	if err != nil || !changed {
		return text, false, err
	}
	if len(e.uids) > 0 {
		metadata, _, err = metadata.edit("managedFields", func(text []byte) ([]byte, bool, error) {
			return editList(text, e.managedFields)
		})
	}
	return metadata.text(), true, err
}

func (e *ownerEdit) managedFields(_ int, text []byte) ([]byte, bool, error) {
	entry, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	entry, changed, err := entry.edit("fieldsV1", func(text []byte) ([]byte, bool, error) {
		edited, changed := renameOwners(text, e.uids)
		return edited, changed, nil
	})
	return entry.text(), changed, err
}

func (e *ownerEdit) jsonReference(_ int, text []byte) ([]byte, bool, error) {
	obj, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	before, err := ownerOfJSON(obj)
	if err != nil {
		return nil, false, err
	}
	after, changed := e.apply(before)
	if !changed {
		return text, false, nil
	}
	for _, field := range []struct{ name, before, after string }{
		{"apiVersion", before.APIVersion, after.APIVersion},
		{"kind", before.Kind, after.Kind},
		{"name", before.Name, after.Name},
		{"uid", before.UID, after.UID},
	} {
		if field.before != field.after {
			obj = obj.set(field.name, quote(field.after))
		}
	}
	for _, field := range []struct {
		name          string
		before, after *bool
	}{
		{"controller", before.Controller, after.Controller},
		{"blockOwnerDeletion", before.BlockOwnerDeletion, after.BlockOwnerDeletion},
	} {
		switch {
		case equalBool(field.before, field.after):
		case field.after == nil:
			obj = obj.without(field.name)
		default:
			obj = obj.set(field.name, strconv.AppendBool(nil, *field.after))
		}
	}
	return obj.text(), true, nil
}

func ownerOfJSON(obj jsonObject) (o OwnerReference, err error) {
	for _, field := range []struct {
		name string
		into *string
	}{
		{"apiVersion", &o.APIVersion}, {"kind", &o.Kind}, {"name", &o.Name}, {"uid", &o.UID},
	} {
		if *field.into, err = obj.str(field.name); err != nil {
			return o, err
		}
	}
	if o.Controller, err = obj.boolean("controller"); err != nil {
		return o, err
	}
	o.BlockOwnerDeletion, err = obj.boolean("blockOwnerDeletion")
	return o, err
}

// editCBORMetadata runs edit on a CBOR object of which it shows the JSON form of the metadata alone: CBOR has no order to keep,
// since its keys are sorted, and metadata holds no number that JSON would change. The rest of the object is not converted.
func editCBORMetadata(data []byte, edit func(jsonObject) (jsonObject, bool, error)) ([]byte, error) {
	obj, err := decodeCBOR(data)
	if err != nil {
		return nil, err
	}
	metadata, err := EncodeObject(map[string]any{"metadata": obj["metadata"]}, FormatJSON)
	if err != nil {
		return nil, err
	}
	edited, err := editJSON(metadata, edit)
	if err != nil || bytes.Equal(edited, metadata) {
		return data, err
	}
	wrapper, _, err := DecodeObject(edited)
	if err != nil {
		return nil, err
	}
	obj["metadata"] = wrapper["metadata"]
	return EncodeObject(obj, FormatCBOR)
}
