package schema

import (
	"bytes"
	"encoding/json"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/etcdshift/etcdshift/encoding"
)

// decodeFields reads fieldsV1 as an API server does, for which none are no
// fields; false where it can't.
func decodeFields(fieldsV1 any) (*fieldpath.Set, bool) {
	if fieldsV1 == nil {
		return fieldpath.NewSet(), true
	}
	if _, isObject := fieldsV1.(map[string]any); !isObject {
		return nil, false
	}
	text, err := json.Marshal(fieldsV1)
	if err != nil {
		return nil, false
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(text)); err != nil {
		return nil, false
	}
	return set, true
}

// encodeFields is fieldsV1 as a server writes the set, as decoded JSON.
func encodeFields(set *fieldpath.Set) (map[string]any, error) {
	text, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	fieldsV1, _, err := encoding.DecodeObject(text)
	return fieldsV1, err
}

// knownFields drops the paths that pruning at this version would leave without
// a field.
func (v *Version) knownFields(set *fieldpath.Set) (*fieldpath.Set, error) {
	structural, err := v.structural()
	if err != nil || v.preserves() {
		return set, err
	}
	root := structuralschema.Structural{}
	if structural != nil {
		root = *structural
	}
	root.XEmbeddedResource = true // the root's own metadata
	known := fieldpath.NewSet()
	set.Iterate(func(path fieldpath.Path) {
		if knowsPath(path, &root) {
			known.Insert(path)
		}
	})
	return known, nil
}

// knowsPath follows the pruning algorithm down a path.
func knowsPath(path fieldpath.Path, s *structuralschema.Structural) bool {
	free := false // below x-kubernetes-preserve-unknown-fields
	for _, element := range path {
		if s == nil {
			return free
		}
		free = free || s.XPreserveUnknownFields
		if element.FieldName == nil { // of a list
			s = s.Items
			if s == nil && !free {
				return false
			}
			continue
		}
		name := *element.FieldName
		if s.XEmbeddedResource && isMetaField(name) {
			return true
		}
		if property, ok := s.Properties[name]; ok {
			s, free = &property, false
			continue
		}
		if s.AdditionalProperties == nil {
			return free
		}
		s, free = s.AdditionalProperties.Structural, false
	}
	return true
}

func isMetaField(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}
