package encoding

import "fmt"

// ReplaceAnnotation gives an annotation that an object has another value and keeps everything else byte for byte; a CBOR value is
// encoded anew. Where the object does not have the annotation, or has that value already, the result is data itself. managedFields
// name the annotation, not its value, and stay. ErrEncrypted and ErrUnknownFormat are returned.
func ReplaceAnnotation(data []byte, name, value string) (out []byte, err error) {
	f := Detect(data)
	edit := func(obj jsonObject) (jsonObject, bool, error) {
		return obj.editFound("metadata", func(metadata jsonObject) (jsonObject, bool, error) {
			return metadata.editFound("annotations", func(annotations jsonObject) (jsonObject, bool, error) {
				return annotations.replaceText(name, value)
			})
		})
	}
	switch f {
	case FormatProtobuf:
		out, err = editProtobuf(data, func(raw []byte) ([]byte, bool, error) {
			return editOne(raw, objectMeta, "metadata", func(metadata []byte) ([]byte, bool, error) {
				out, _, changed, err := replaceMapEntry(metadata, metaAnnotations, "annotations", name, value)
				return out, changed, err
			})
		})
	case FormatJSON:
		out, err = editJSON(data, edit)
	case FormatCBOR:
		out, err = editCBORMetadata(data, edit)
	default:
		return nil, unsupported(data, f)
	}
	if err != nil {
		return nil, fmt.Errorf("%s value: %w", f, err)
	}
	return out, nil
}

// editFound is edit of an object; where it is missing or null, change is not called.
func (o jsonObject) editFound(name string, change func(jsonObject) (jsonObject, bool, error)) (jsonObject, bool, error) {
	return o.edit(name, func(text []byte) ([]byte, bool, error) {
		inner, err := parseJSONObject(text)
		if err != nil || len(inner) == 0 {
			return text, false, err
		}
		inner, changed, err := change(inner)
		if err != nil || !changed {
			return text, false, err
		}
		return inner.text(), true, nil
	})
}

// replaceText sets the string field name, where it is there.
func (o jsonObject) replaceText(name, value string) (jsonObject, bool, error) {
	before, err := o.str(name)
	if err != nil || o.last(name) < 0 || before == value {
		return o, false, err
	}
	return o.set(name, quote(value)), true, nil
}
