package encoding

import (
	"maps"
	"slices"
)

// Get returns the field at path, names from the top of a stored object, as JSON content:
// map[string]any, []any, string, bool, int64 or float64, and nil for a missing field or null. An
// empty path means the whole object.
//
// In a protobuf object of any kind Get reads the stored metadata, except times; in a ConfigMap also
// the data; in a workload also the containers of its pods with images and environment. For other
// fields Get returns ErrUnknownFormat. Encrypted values return ErrEncrypted.
func Get(data []byte, path ...string) (any, error) {
	return byFormat(data, func(data []byte) (value any, err error) {
		_, err = editJSON(data, path, func(text []byte) ([]byte, error) { return text, unmarshal(text, &value) })
		return value, err
	}, func(data []byte) (any, error) {
		obj, err := decodeCBOR(data)
		if err != nil {
			return nil, err
		}
		return lookup(obj, path)
	}, func(data []byte) (any, error) {
		_, _, content, err := parseProtobuf(data, path)
		if err != nil {
			return nil, err
		}
		return lookup(content, path)
	})
}

// Set returns data with another content in the field at path; nil removes the field, and missing
// objects on the path are created. Unchanged parts of the field and the rest of data keep their
// bytes: the order of fields, space in values, escapes of strings, unknown protobuf fields. New
// JSON fields are inserted by name among sorted fields, otherwise at the end; new protobuf fields
// in the position of generated code. CBOR is encoded again, because a server sorts CBOR.
//
// Without a change the result is data itself. Fields and errors are those of Get. List elements are
// compared by position.
func Set(data []byte, value any, path ...string) ([]byte, error) {
	return byFormat(data,
		func(data []byte) ([]byte, error) { return setJSON(data, value, path) },
		func(data []byte) ([]byte, error) { return setCBOR(data, value, path) },
		func(data []byte) ([]byte, error) { return setProtobuf(data, value, path) })
}

func setJSON(data []byte, value any, path []string) ([]byte, error) {
	return editJSON(data, path, func(text []byte) ([]byte, error) {
		var before any
		if err := unmarshal(text, &before); err != nil {
			return nil, err
		}
		return mergeJSON(text, before, value)
	})
}

func setCBOR(data []byte, value any, path []string) ([]byte, error) {
	obj, err := decodeCBOR(data)
	if err != nil {
		return nil, err
	}
	before, err := lookup(obj, path)
	if err != nil || equal(before, value) {
		return data, err
	}
	changed, err := setContent(obj, value, path)
	if err != nil {
		return nil, err
	}
	whole, ok := changed.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	return EncodeObject(whole, FormatCBOR)
}

// lookup returns the field at path of decoded content.
func lookup(content any, path []string) (any, error) {
	if content == nil || len(path) == 0 {
		return content, nil
	}
	obj, ok := content.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	value, err := lookup(obj[path[0]], path[1:])
	return value, at(path[0], err)
}

// setContent returns decoded content with another value at path. Its arguments stay unchanged.
func setContent(content, value any, path []string) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	obj, ok := content.(map[string]any)
	if !ok && content != nil {
		return nil, errNotObject
	}
	if obj = maps.Clone(obj); obj == nil {
		obj = map[string]any{}
	}
	inner, err := setContent(obj[path[0]], value, path[1:])
	if inner == nil {
		delete(obj, path[0])
	} else {
		obj[path[0]] = inner
	}
	return obj, at(path[0], err)
}

// equal compares JSON content.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	default:
		return a == b
	}
}
