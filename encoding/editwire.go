package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// editProtobuf changes the metadata message of a stored value. Without a change it returns data
// itself.
func editProtobuf(data []byte, change func(msg []byte) ([]byte, error)) ([]byte, error) {
	e, err := parseEnvelope(data)
	if err != nil {
		return nil, err
	}
	body, err := editMessages(e.body.payload, []member{objectMetaMember}, []string{"metadata"}, change)
	if err != nil || bytes.Equal(body, e.body.payload) {
		return data, err
	}
	return e.withBody(data, body), nil
}

// editMessages changes the messages at path in a message, each of a list.
func editMessages(msg []byte, members []member, path []string, change func(msg []byte) ([]byte, error)) ([]byte, error) {
	if len(path) == 0 {
		return change(msg)
	}
	m := members[slices.IndexFunc(members, func(m member) bool { return m.name == path[0] })]
	var out []byte
	copied, found := 0, 0
	err := each(msg, func(f wireField) error {
		if f.num != m.num {
			return nil
		}
		before, err := f.bytes()
		if err == nil && found > 0 && !m.list {
			err = f.repeated()
		}
		after := before
		if err == nil {
			after, err = editMessages(before, m.members, path[1:], change)
		}
		if err != nil && m.list {
			err = at(fmt.Sprintf("[%d]", found), err)
		}
		found++
		if err != nil || bytes.Equal(before, after) {
			return at(m.name, err)
		}
		out = slices.Grow(out, len(msg)-copied-len(before)+len(after)+binary.MaxVarintLen64)
		out = appendBytesField(append(out, msg[copied:f.start]...), m.num, after)
		copied = f.end
		return nil
	})
	if err != nil || copied == 0 {
		return msg, err
	}
	return append(out, msg[copied:]...), nil
}
