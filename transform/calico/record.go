package calico

import (
	"github.com/google/uuid"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// record is one v1 record, decoded.
type record struct {
	kind   kind
	key    keys.Key
	obj    map[string]any
	spec   map[string]any
	format encoding.Format
	meta   metadata
	uid    uuid.UUID // as stored
}

// readRecord decodes a stored v1 record. A record that cannot be migrated because of what it is gives a refusal.
func readRecord(k kind, key keys.Key, value []byte) (*record, error) {
	obj, format, err := decode(value)
	if err != nil {
		return nil, err
	}
	r := &record{kind: k, key: key, obj: obj, format: format}
	if obj["apiVersion"] != apiVersionV1 || obj["kind"] != k.V1Kind {
		return nil, finding.Undecodable.Because("is a %v %v, not a %s %s", obj["apiVersion"], obj["kind"], apiVersionV1, k.V1Kind)
	}
	if k.Namespaced != (key.Namespace != "") {
		return nil, finding.Undecodable.Because("the key does not fit the scope of %s", k.V1Kind)
	}
	if r.meta, err = readMetadata(obj); err != nil {
		return nil, err
	}
	if r.meta.outer.Name != key.Name || r.meta.outer.Namespace != key.Namespace {
		return nil, codeBadMetadata.Because("metadata names it %q in namespace %q, unlike the key", r.meta.outer.Name, r.meta.outer.Namespace)
	}
	if r.uid, err = parseUID(string(r.meta.outer.UID)); err != nil {
		return nil, codeBadUID.Because("metadata.%v", err)
	}
	if r.spec, err = specOf(obj); err != nil {
		return nil, err
	}
	return r, nil
}

// decode is encoding.DecodeObject with errors about the record as refusals. All its errors are.
func decode(value []byte) (map[string]any, encoding.Format, error) {
	obj, format, err := encoding.DecodeObject(value)
	if err != nil {
		return nil, format, transform.Unreadable(err)
	}
	return obj, format, nil
}

// specOf is the object's spec; one without gets an empty one, which the v3 CRDs demand.
func specOf(obj map[string]any) (map[string]any, error) {
	switch spec := obj["spec"].(type) {
	case map[string]any:
		return spec, nil
	case nil:
		empty := map[string]any{}
		obj["spec"] = empty
		return empty, nil
	default:
		return nil, codeInvalid.Because("spec: not an object")
	}
}

// name is the record's v3 name.
func (r *record) name() (string, []*finding.Finding, error) {
	return v3Name(r.kind, r.key.Name, r.meta, r.spec)
}
