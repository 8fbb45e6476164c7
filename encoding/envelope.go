package encoding

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Value is a stored value with a parsed envelope and an unparsed body.
type Value struct {
	Format Format
	GVK    schema.GroupVersionKind // empty if the value has none
	// protobuf: the message of the object; JSON and CBOR: the whole value. Aliases the input.
	Raw []byte
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

// Parse reads the envelope of a stored value. Errors are ErrEncrypted, ErrUnknownFormat, or an
// error with the position of the damage. Parse checks all of JSON, but only the envelope of
// protobuf.
func Parse(data []byte) (Value, error) {
	e, err := byFormat(data, envelopeOfJSON, envelopeOfCBOR, parseEnvelope)
	if err != nil {
		return Value{}, err
	}
	return e.value(Detect(data))
}

// value returns the envelope as a Value.
func (e *envelope) value(f Format) (Value, error) {
	gv, err := schema.ParseGroupVersion(e.apiVersion)
	if err != nil {
		return Value{}, fmt.Errorf("%s value: apiVersion is not GROUP/VERSION", f)
	}
	return Value{Format: f, Raw: e.body.Payload, GVK: gv.WithKind(e.kind)}, nil
}

func envelopeOfJSON(data []byte) (envelope, error) {
	var few [8]jsonField // on the stack
	e, _, err := readJSON(data, few[:0])
	return e, err
}

// readJSON parses a JSON value and appends its fields to the empty out.
func readJSON(data []byte, out jsonObject) (e envelope, obj jsonObject, err error) {
	if obj, err = parseJSON(data, '{', out); err == nil {
		e.body.Payload = data
		e.apiVersion, e.kind, err = obj.typeMeta()
	}
	return e, obj, err
}

func envelopeOfCBOR(data []byte) (envelope, error) {
	obj, err := decodeCBOR(data)
	r := reader{obj: obj, err: err}
	e := envelope{apiVersion: r.str("apiVersion"), kind: r.str("kind"), body: WireField{Payload: data}}
	return e, r.err
}

// envelope holds the type and the body of a value.
type envelope struct {
	apiVersion, kind string
	body             WireField // the object; in protobuf, positions count from the end of the prefix
}

// parseEnvelope parses a protobuf value. Like the generated decoder, parseEnvelope merges repeated
// TypeMetas, and the last body wins.
func parseEnvelope(data []byte) (e envelope, err error) {
	err = each(data[len(protobufPrefix):], func(f WireField) (err error) {
		switch f.Number {
		case unknownTypeMeta:
			err = at("typeMeta", f.each(e.readTypeMeta))
		case unknownRaw:
			_, err = f.bytes()
			e.body = f
		}
		return err
	})
	if err == nil && e.body.Number == 0 {
		err = errNoObject
	}
	return e, at("envelope", err)
}

// withBody returns data with another body.
func (e *envelope) withBody(data, body []byte) []byte {
	start, end := len(protobufPrefix)+e.body.start, len(protobufPrefix)+e.body.end
	out := make([]byte, 0, len(data)+len(body)-len(e.body.Payload)+binary.MaxVarintLen64)
	return append(appendBytesField(append(out, data[:start]...), unknownRaw, body), data[end:]...)
}

// WithMessage returns a protobuf value with another message (see Value.Raw) in the same envelope.
func WithMessage(data, raw []byte) ([]byte, error) {
	e, err := parseEnvelope(data)
	if err != nil {
		return nil, err
	}
	return e.withBody(data, raw), nil
}

func (e *envelope) readTypeMeta(f WireField) (err error) {
	switch f.Number {
	case typeMetaAPIVersion:
		e.apiVersion, err = f.text()
	case typeMetaKind:
		e.kind, err = f.text()
	}
	return err
}
