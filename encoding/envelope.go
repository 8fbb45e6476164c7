package encoding

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Value is a stored value with its envelope parsed and its body untouched.
type Value struct {
	Format Format
	GVK    schema.GroupVersionKind // empty if the value has none
	Raw    []byte                  // protobuf: the bytes of the object's message; JSON and CBOR: the value itself. Aliases the input.
}

var errNoObject = errors.New("holds no object")

// Field numbers of runtime.Unknown and runtime.TypeMeta (k8s.io/apimachinery
// pkg/runtime/generated.proto).
const (
	unknownTypeMeta    protowire.Number = 1
	unknownRaw         protowire.Number = 2
	typeMetaAPIVersion protowire.Number = 1
	typeMetaKind       protowire.Number = 2
)

// Parse reads the envelope of a stored value. It returns ErrEncrypted, ErrUnknownFormat, or an
// error with the position of the damage. It checks JSON, and the envelope of protobuf.
func Parse(data []byte) (Value, error) {
	v, apiVersion, kind, err := parse(data)
	if err != nil {
		return Value{}, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Value{}, fmt.Errorf("%s value: apiVersion is not GROUP/VERSION", v.Format)
	}
	v.GVK = gv.WithKind(kind)
	return v, nil
}

func parse(data []byte) (v Value, apiVersion, kind string, err error) {
	v = Value{Format: Detect(data), Raw: data}
	switch v.Format {
	case FormatProtobuf:
		var e envelope
		e, err = parseEnvelope(data)
		v.Raw, apiVersion, kind = e.body.payload, e.apiVersion, e.kind
	case FormatJSON:
		var obj jsonObject
		if obj, err = parseJSONValue(data); err == nil {
			apiVersion, kind, err = obj.typeMeta()
		}
	case FormatCBOR:
		var obj map[string]any
		if obj, err = decodeCBOR(data); err == nil {
			r := reader{obj: obj}
			apiVersion, kind, err = r.str("apiVersion"), r.str("kind"), r.err
		}
	default:
		return Value{}, "", "", unsupported(data, v.Format)
	}
	if err != nil {
		return Value{}, "", "", fmt.Errorf("%s value: %w", v.Format, err)
	}
	return v, apiVersion, kind, nil
}

// envelope is a parsed protobuf value.
type envelope struct {
	apiVersion, kind string
	body             wireField // the object; positions count from behind the prefix
}

// parseEnvelope parses a protobuf value. Like the generated decoder it merges repeated TypeMetas,
// and the last body wins.
func parseEnvelope(data []byte) (envelope, error) {
	var e envelope
	for f, err := range fields(data[len(protobufPrefix):]) {
		if err != nil {
			return envelope{}, at("envelope", err)
		}
		switch f.num {
		case unknownTypeMeta:
			err = readTypeMeta(f, &e.apiVersion, &e.kind)
		case unknownRaw:
			_, err = f.bytes()
			e.body = f
		}
		if err != nil {
			return envelope{}, at("envelope", err)
		}
	}
	if e.body.num == 0 {
		return envelope{}, at("envelope", errNoObject)
	}
	return e, nil
}

func readTypeMeta(field wireField, apiVersion, kind *string) error {
	content, err := field.bytes()
	if err != nil {
		return at("typeMeta", err)
	}
	for f, err := range fields(content) {
		if err != nil {
			return at("typeMeta", err)
		}
		switch f.num {
		case typeMetaAPIVersion:
			*apiVersion, err = f.text()
		case typeMetaKind:
			*kind, err = f.text()
		}
		if err != nil {
			return at("typeMeta", err)
		}
	}
	return nil
}
