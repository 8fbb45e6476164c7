package encoding

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireField is one field of a protobuf message on the wire.
type wireField struct {
	num        protowire.Number
	typ        protowire.Type
	start, end int    // byte range in the message, tag included
	payload    []byte // content of a length-delimited field; aliases the message
	varint     uint64 // value of a varint field
}

var (
	errTruncated = errors.New("the field ends beyond its message")
	errMalformed = errors.New("malformed field")
	errRepeated  = errors.New("a field that can stand only once stands twice")
)

// each calls visit with the fields of a message up to the first error, without allocating claimed
// lengths.
func each(msg []byte, visit func(wireField) error) error {
	for at := 0; at < len(msg); {
		f, err := nextField(msg, at)
		if err == nil {
			err = visit(f)
		}
		if err != nil {
			return err
		}
		at = f.end
	}
	return nil
}

// each visits the fields of a nested message.
func (f wireField) each(visit func(wireField) error) error {
	content, err := f.bytes()
	if err != nil {
		return err
	}
	return each(content, visit)
}

// nextField reads the field at a position. Most have a tag of one byte and content of at most two
// bytes of length: they need no general decoder.
func nextField(msg []byte, at int) (wireField, error) {
	if rest := msg[at:]; len(rest) > 2 && rest[0] >= 1<<3 && rest[0] < 0x80 && protowire.Type(rest[0]&7) == protowire.BytesType {
		size, head := int(rest[1]), 2
		if size >= 0x80 {
			size, head = size&0x7f|int(rest[2])<<7, 3
		}
		if end := head + size; (head == 2 || rest[2] < 0x80) && end <= len(rest) {
			return wireField{num: protowire.Number(rest[0] >> 3), typ: protowire.BytesType, start: at, end: at + end, payload: rest[head:end:end]}, nil
		}
	}
	num, typ, n := protowire.ConsumeTag(msg[at:])
	if n < 0 {
		return wireField{}, wireErr(0, at, n)
	}
	f := wireField{num: num, typ: typ, start: at}
	body := msg[at+n:]
	var m int
	switch typ {
	case protowire.BytesType:
		f.payload, m = protowire.ConsumeBytes(body)
	case protowire.VarintType:
		f.varint, m = protowire.ConsumeVarint(body)
	default:
		m = protowire.ConsumeFieldValue(num, typ, body)
	}
	if m < 0 {
		return wireField{}, wireErr(num, at, m)
	}
	f.end = at + n + m
	return f, nil
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

// bytes returns the content of a length-delimited field, as a generated decoder requires.
func (f wireField) bytes() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, fmt.Errorf("field %d at byte %d: wire type %d, want length-delimited", f.num, f.start, f.typ)
	}
	return f.payload, nil
}

// text is a string field, copied.
func (f wireField) text() (string, error) {
	b, err := f.bytes()
	return string(b), err
}

// integer is a varint field as int64.
func (f wireField) integer() (int64, error) {
	if f.typ != protowire.VarintType {
		return 0, fmt.Errorf("field %d at byte %d: wire type %d, want varint", f.num, f.start, f.typ)
	}
	return int64(f.varint), nil
}

// repeated is the error for a repeated message: decoders merge the two, an edit cannot.
func (f wireField) repeated() error {
	return fmt.Errorf("field %d at byte %d: %w", f.num, f.start, errRepeated)
}

// appendInteger and appendBytesField add one complete field as generated code writes it.
func appendInteger(out []byte, num protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, num, protowire.VarintType), uint64(v))
}

func appendBytesField(out []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, num, protowire.BytesType), content)
}
