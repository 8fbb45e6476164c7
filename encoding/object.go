package encoding

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	strictjson "sigs.k8s.io/json"
)

// DecodeObject decodes a JSON or CBOR value like an API server decodes a custom resource: integers
// become int64, other numbers float64, keys are case-sensitive, and the last of equal JSON keys
// wins. An object with a field named items stays an object. Nesting is limited to 10,000 levels.
// Errors are ErrEncrypted, ErrUnknownFormat (also for protobuf) and syntax errors.
func DecodeObject(data []byte) (map[string]any, Format, error) {
	obj, err := byFormat(data, func(data []byte) (obj map[string]any, err error) {
		err = unmarshal(data, &obj)
		return obj, err
	}, decodeCBOR, nil)
	return obj, Detect(data), err
}

// unmarshal decodes JSON. Errors give positions, not characters: the value may be a Secret.
func unmarshal(data []byte, into any) error {
	p := decoderOf(data)
	switch into := into.(type) {
	case *map[string]any:
		if obj, ok := p.decode(); ok {
			if fields, isMap := obj.(map[string]any); isMap {
				*into = fields
				return nil
			}
		}
	case *any:
		if value, ok := p.decode(); ok {
			*into = value
			return nil
		}
	}
	err := utiljson.Unmarshal(data, into)
	if syntax, offset := strictjson.SyntaxErrorOffset(err); syntax {
		return fmt.Errorf("not JSON at byte %d", offset)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number ") {
		return fmt.Errorf("number out of range before byte %d", wrong.Offset)
	}
	return err
}

// DecodeJSON decodes any JSON text like DecodeObject.
func DecodeJSON(text []byte) (value any, err error) {
	err = unmarshal(text, &value)
	return value, err
}

func decodeCBOR(data []byte) (map[string]any, error) {
	var obj map[string]any
	if err := direct.Unmarshal(data, &obj); err != nil {
		return nil, err
	}
	if obj == nil {
		return nil, errNotObject // null
	}
	return obj, nil
}

// EncodeObject encodes an object in the stored form of a custom resource: JSON is compact, with
// sorted keys, escaped HTML characters and a final newline; CBOR is deterministic and begins with
// the self-described tag. Other formats are ErrUnknownFormat.
func EncodeObject(obj map[string]any, f Format) ([]byte, error) {
	switch f {
	case FormatJSON:
		out, err := appendJSON(make([]byte, 0, 1024), obj)
		if err != nil {
			return nil, fmt.Errorf("encode JSON: %w", err)
		}
		return append(out, '\n'), nil
	case FormatCBOR:
		content, err := direct.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("encode CBOR: %w", err)
		}
		return append([]byte(cborPrefix), content...), nil
	default:
		return nil, fmt.Errorf("%w: an object can't be encoded as %s", ErrUnknownFormat, f)
	}
}
