package encoding

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers of ManagedFieldsEntry and FieldsV1 (k8s.io/apimachinery pkg/apis/meta/v1/generated.proto).
const (
	managedFieldsV1 protowire.Number = 7
	fieldsV1Raw     protowire.Number = 1
)

// object edits the message of a protobuf object.
func (e *ownerEdit) object(raw []byte) ([]byte, bool, error) {
	return editOne(raw, objectMeta, "metadata", e.objectMeta)
}

func (e *ownerEdit) objectMeta(msg []byte) ([]byte, bool, error) {
	out, changed, err := editEach(msg, metaOwnerReferences, "ownerReferences", e.ownerReference)
	if err != nil || len(e.uids) == 0 {
		return out, changed, err
	}
	out, _, err = editEach(out, metaManagedFields, "managedFields", func(_ int, entry []byte) ([]byte, bool, error) {
		return editOne(entry, managedFieldsV1, "fieldsV1", func(fieldsV1 []byte) ([]byte, bool, error) {
			return editOne(fieldsV1, fieldsV1Raw, "raw", func(text []byte) ([]byte, bool, error) {
				edited, changed := renameOwners(text, e.uids)
				return edited, changed, nil
			})
		})
	})
	return out, changed, err
}

func (e *ownerEdit) ownerReference(_ int, msg []byte) ([]byte, bool, error) {
	before, err := ownerOfWire(msg)
	if err != nil {
		return nil, false, err
	}
	after, changed := e.apply(before)
	if !changed {
		return msg, false, nil
	}
	for _, field := range []struct {
		num           protowire.Number
		before, after string
	}{
		{ownerKind, before.Kind, after.Kind},
		{ownerName, before.Name, after.Name},
		{ownerUID, before.UID, after.UID},
		{ownerAPIVersion, before.APIVersion, after.APIVersion},
	} {
		if field.before == field.after {
			continue
		}
		if msg, err = setField(msg, field.num, bytesField(field.num, []byte(field.after))); err != nil {
			return nil, false, err
		}
	}
	for _, field := range []struct {
		num           protowire.Number
		before, after *bool
	}{
		{ownerController, before.Controller, after.Controller},
		{ownerBlockOwnerDeletion, before.BlockOwnerDeletion, after.BlockOwnerDeletion},
	} {
		if equalBool(field.before, field.after) {
			continue
		}
		if msg, err = setField(msg, field.num, boolField(field.num, field.after)); err != nil {
			return nil, false, err
		}
	}
	return msg, true, nil
}

// boolField is a complete encoded field, nil for a pointer that is nil.
func boolField(num protowire.Number, value *bool) []byte {
	switch {
	case value == nil:
		return nil
	case *value:
		return integerField(num, 1)
	default:
		return integerField(num, 0)
	}
}
