package encoding

import (
	"bytes"
	"slices"
)

// ControllerKind returns apiVersion and kind of the controlling or else the first owner of a stored
// object: empty without one, or where the metadata cannot be read.
func ControllerKind(data []byte) (apiVersion, kind string) {
	if lacksOwners(data) {
		return "", ""
	}
	meta, err := ReadMeta(data)
	if err != nil || len(meta.OwnerReferences) == 0 {
		return "", ""
	}
	i := slices.IndexFunc(meta.OwnerReferences, func(o OwnerReference) bool { return o.Controller != nil && *o.Controller })
	owner := meta.OwnerReferences[max(i, 0)]
	return owner.APIVersion, owner.Kind
}

// lacksOwners tells at little cost that ReadMeta finds no owner, or fails; most objects have none.
func lacksOwners(data []byte) bool {
	switch Detect(data) {
	case FormatJSON:
		return !bytes.Contains(data, []byte(`"ownerReferences"`))
	case FormatProtobuf:
		e, err := parseEnvelope(data)
		if err != nil {
			return true
		}
		found := false
		err = each(e.body.payload, func(f wireField) error {
			if f.num != objectMeta {
				return nil
			}
			return f.each(func(f wireField) error {
				found = found || f.num == metaOwnerReferences
				return nil
			})
		})
		return err != nil || !found
	}
	return false
}
