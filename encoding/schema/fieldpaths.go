package schema

import (
	"bytes"
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/etcdshift/etcdshift/encoding"
)

// decodeFields reads fieldsV1 like an API server, nil as no fields. The result is false for
// unreadable fields.
func decodeFields(fieldsV1 any) (*fieldpath.Set, bool) {
	if fieldsV1 == nil {
		return fieldpath.NewSet(), true
	}
	if _, isObject := fieldsV1.(map[string]any); !isObject {
		return nil, false
	}
	text, err := json.Marshal(fieldsV1)
	set := &fieldpath.Set{}
	if err != nil || set.FromJSON(bytes.NewReader(text)) != nil {
		return nil, false
	}
	return set, true
}

// encodeFields returns the set in a server's form of fieldsV1, as decoded JSON.
func encodeFields(set *fieldpath.Set) (map[string]any, error) {
	text, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	fieldsV1, _, err := encoding.DecodeObject(text)
	return fieldsV1, err
}

// knownFields returns set without the paths that pruning at this version would remove.
func (v *Version) knownFields(set *fieldpath.Set) (*fieldpath.Set, error) {
	if _, err := v.structural(); err != nil || v.preserves() {
		return set, err
	}
	root := v.shape()
	known := fieldpath.NewSet()
	set.Iterate(func(path fieldpath.Path) {
		if name := path[0].FieldName; name != nil && isMetaField(*name) || root.knows(path) {
			known.Insert(path)
		}
	})
	return known, nil
}

// knows reports whether pruning would keep the field at a path.
func (s *shape) knows(path fieldpath.Path) bool {
	free := false // below x-kubernetes-preserve-unknown-fields
	for _, element := range path {
		if s == nil {
			return free
		}
		free = free || s.preserve
		if element.FieldName == nil { // an element of a list
			if s = s.items; s == nil && !free {
				return false
			}
			continue
		}
		if s.embedded && isMetaField(*element.FieldName) {
			return true
		}
		below, declared := s.field(*element.FieldName)
		if !declared {
			return free
		}
		s, free = below, false
	}
	return true
}

func isMetaField(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}
