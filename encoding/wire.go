package encoding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireField is one field of a protobuf message, as it stands on the wire.
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

// fields walks a message front to back. It stops after the first error. Nothing is allocated for a length that the
// message only claims.
func fields(msg []byte) iter.Seq2[wireField, error] {
	return func(yield func(wireField, error) bool) {
		for at := 0; at < len(msg); {
			f, err := nextField(msg, at)
			if err != nil {
				yield(f, err)
				return
			}
			if !yield(f, nil) {
				return
			}
			at = f.end
		}
	}
}

func nextField(msg []byte, at int) (wireField, error) {
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

// bytes is the content of a length-delimited field. A generated decoder refuses any other wire type, and so do we.
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

// bytesField, integerField encode one complete field as generated code writes it.
func bytesField(num protowire.Number, content []byte) []byte {
	return appendBytesField(nil, num, content)
}

func integerField(num protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), uint64(v))
}

// setField returns msg with field num replaced by a complete encoded field, or without it when field is nil. Where msg
// does not have it, it goes where generated code would write it: behind the last field with a smaller number.
func setField(msg []byte, num protowire.Number, field []byte) ([]byte, error) {
	first, _, smaller, err := place(msg, num)
	if err != nil {
		return nil, err
	}
	if first < 0 {
		return insertAt(msg, smaller, field), nil
	}
	out := make([]byte, 0, len(msg)+len(field))
	for f, err := range fields(msg) {
		if err != nil {
			return nil, err
		}
		if f.start == first {
			out = append(out, field...)
		}
		if f.num != num {
			out = append(out, msg[f.start:f.end]...)
		}
	}
	return out, nil
}

// appendField returns msg with one more element of the repeated field num: after the last one, or where generated code
// would write the first.
func appendField(msg []byte, num protowire.Number, field []byte) ([]byte, error) {
	_, behind, smaller, err := place(msg, num)
	if err != nil {
		return nil, err
	}
	if behind < 0 {
		return insertAt(msg, smaller, field), nil
	}
	return insertAt(msg, behind, field), nil
}

// place is where field num starts first and ends last (both -1 if it is missing), and where the last field with a
// smaller number ends (0 if there is none).
func place(msg []byte, num protowire.Number) (first, behind, smaller int, err error) {
	first, behind = -1, -1
	for f, err := range fields(msg) {
		if err != nil {
			return 0, 0, 0, err
		}
		switch {
		case f.num < num:
			smaller = f.end
		case f.num == num:
			behind = f.end
			if first < 0 {
				first = f.start
			}
		}
	}
	return first, behind, smaller, nil
}

// replace returns msg with another content in the length-delimited field f.
func replace(msg []byte, f wireField, content []byte) []byte {
	out := make([]byte, 0, len(msg)+len(content)-len(f.payload)+binary.MaxVarintLen64)
	out = append(out, msg[:f.start]...)
	out = appendBytesField(out, f.num, content)
	return append(out, msg[f.end:]...)
}

func appendBytesField(out []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, num, protowire.BytesType), content)
}

func insertAt(msg []byte, at int, field []byte) []byte {
	out := make([]byte, 0, len(msg)+len(field))
	out = append(out, msg[:at]...)
	out = append(out, field...)
	return append(out, msg[at:]...)
}

// editEach calls edit with the content of each element of the repeated message field num. Where edit reports a change
// the element is replaced; everything else is copied as it stands. Without a change msg itself is returned.
func editEach(msg []byte, num protowire.Number, name string, edit func(i int, content []byte) ([]byte, bool, error)) ([]byte, bool, error) {
	var out []byte
	copied, i := 0, 0
	for f, err := range fields(msg) {
		if err != nil {
			return nil, false, err
		}
		if f.num != num {
			continue
		}
		content, err := f.bytes()
		if err != nil {
			return nil, false, at(fmt.Sprintf("%s[%d]", name, i), err)
		}
		edited, changed, err := edit(i, content)
		if err != nil {
			return nil, false, at(fmt.Sprintf("%s[%d]", name, i), err)
		}
		if changed {
			out = append(slices.Grow(out, len(msg)-copied+len(edited)), msg[copied:f.start]...)
			out = appendBytesField(out, num, edited)
			copied = f.end
		}
		i++
	}
	if copied == 0 {
		return msg, false, nil
	}
	return append(out, msg[copied:]...), true, nil
}

// editOne is editEach for a message field that can stand only once. Where it is missing, edit is not called.
func editOne(msg []byte, num protowire.Number, name string, edit func(content []byte) ([]byte, bool, error)) ([]byte, bool, error) {
	f, found, err := findOne(msg, num)
	if err != nil {
		return nil, false, at(name, err)
	}
	if !found {
		return msg, false, nil
	}
	edited, changed, err := edit(f.payload)
	if err != nil {
		return nil, false, at(name, err)
	}
	if !changed {
		return msg, false, nil
	}
	return replace(msg, f, edited), true, nil
}

// findOne is the message field num. A second one is an error: decoders merge the two, an edit can't.
func findOne(msg []byte, num protowire.Number) (one wireField, found bool, err error) {
	for f, err := range fields(msg) {
		if err != nil {
			return wireField{}, false, err
		}
		if f.num != num {
			continue
		}
		if found {
			return wireField{}, false, fmt.Errorf("field %d at byte %d: %w", num, f.start, errRepeated)
		}
		if _, err := f.bytes(); err != nil {
			return wireField{}, false, err
		}
		one, found = f, true
	}
	return one, found, nil
}
