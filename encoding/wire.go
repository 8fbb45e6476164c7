package encoding

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// WireField is one field of a protobuf message on the wire.
type WireField struct {
	Number     protowire.Number
	Type       protowire.Type
	Payload    []byte // content of a length-delimited field; aliases the message
	Varint     uint64 // value of a varint field
	start, end int    // byte range in the message, tag included
}

var (
	errTruncated = errors.New("the field ends beyond its message")
	errMalformed = errors.New("malformed field")
	errRepeated  = errors.New("a field that can stand only once stands twice")
)

// each calls visit with the fields of a message up to the first error. each allocates nothing for a
// claimed length.
func each(msg []byte, visit func(WireField) error) error {
	for at := 0; at < len(msg); {
		f, code := nextField(msg, at)
		if code < 0 {
			return wireErr(f.Number, at, code)
		}
		if err := visit(f); err != nil {
			return err
		}
		at = f.end
	}
	return nil
}

// EachField calls visit with the fields of a protobuf message. EachField returns false for a
// damaged message, or if visit returns false.
func EachField(msg []byte, visit func(WireField) bool) bool {
	for at := 0; at < len(msg); {
		f, code := nextField(msg, at)
		if code < 0 || !visit(f) {
			return false
		}
		at = f.end
	}
	return true
}

// each calls visit with the fields of a nested message.
func (f WireField) each(visit func(WireField) error) error {
	content, err := f.bytes()
	if err != nil {
		return err
	}
	return each(content, visit)
}

// nextField reads the field at a position, or returns a negative code for wireErr. Most fields have
// a tag of one byte and a length of at most two bytes, and need no general decoder.
func nextField(msg []byte, at int) (f WireField, code int) {
	if rest := msg[at:]; len(rest) > 2 && rest[0] >= 1<<3 && rest[0] < 0x80 &&
		protowire.Type(rest[0]&7) == protowire.BytesType {
		size, head := int(rest[1]), 2
		if size >= 0x80 {
			size, head = size&0x7f|int(rest[2])<<7, 3
		}
		if end := head + size; (head == 2 || rest[2] < 0x80) && end <= len(rest) {
			return WireField{
				Number: protowire.Number(rest[0] >> 3), Type: protowire.BytesType, Payload: rest[head:end:end],
				start: at, end: at + end,
			}, 0
		}
	}
	num, typ, n := protowire.ConsumeTag(msg[at:])
	if n < 0 {
		return WireField{}, n
	}
	f = WireField{Number: num, Type: typ, start: at}
	body := msg[at+n:]
	var m int
	switch typ {
	case protowire.BytesType:
		f.Payload, m = protowire.ConsumeBytes(body)
	case protowire.VarintType:
		f.Varint, m = protowire.ConsumeVarint(body)
	default:
		m = protowire.ConsumeFieldValue(num, typ, body)
	}
	f.end = at + n + m
	return f, min(m, 0)
}

func wireErr(num protowire.Number, at, code int) error {
	reason := errMalformed
	if errors.Is(protowire.ParseError(code), protowire.ParseError(-1)) {
		reason = errTruncated
	}
	if num == 0 {
		return fmt.Errorf("tag at byte %d: %w", at, reason)
	}
	return fmt.Errorf("field %d at byte %d: %w", num, at, reason)
}

// bytes returns the content of a length-delimited field. Other wire types are an error, as in a
// generated decoder.
func (f WireField) bytes() ([]byte, error) {
	if f.Type != protowire.BytesType {
		return nil, fmt.Errorf("field %d at byte %d: wire type %d, want length-delimited", f.Number, f.start, f.Type)
	}
	return f.Payload, nil
}

// text returns a copy of a string field.
func (f WireField) text() (string, error) {
	b, err := f.bytes()
	return string(b), err
}

// integer returns a varint field as int64.
func (f WireField) integer() (int64, error) {
	if f.Type != protowire.VarintType {
		return 0, fmt.Errorf("field %d at byte %d: wire type %d, want varint", f.Number, f.start, f.Type)
	}
	return int64(f.Varint), nil
}

// repeated returns the error for a repeated message: decoders merge both, an edit cannot.
func (f WireField) repeated() error {
	return fmt.Errorf("field %d at byte %d: %w", f.Number, f.start, errRepeated)
}

// appendInteger and appendBytesField append one complete field, encoded as by generated code.
func appendInteger(out []byte, num protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, num, protowire.VarintType), uint64(v))
}

func appendBytesField(out []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, num, protowire.BytesType), content)
}
