package encoding

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

var errWrongType = errors.New("not of the field's type")

// narrow returns the member at the beginning of path, with only the nested members on path.
func narrow(members []member, path []string) (_ []member, err error) {
	if len(path) == 0 {
		return members, nil
	}
	for _, m := range members {
		if m.name == path[0] {
			if m.kind == kindMessage && !m.list {
				m.members, err = narrow(m.members, path[1:])
			}
			return []member{m}, at(m.name, err)
		}
	}
	return nil, at(path[0], fmt.Errorf("%w: protobuf, but for a few fields", ErrUnknownFormat))
}

// parseProtobuf parses a protobuf value and decodes the members on path.
func parseProtobuf(data []byte, path []string) (e envelope, members []member, content map[string]any, err error) {
	if e, err = parseEnvelope(data); err != nil {
		return e, nil, nil, err
	}
	if members, err = narrow(objectMembers(e.apiVersion, e.kind), path); err != nil {
		return e, nil, nil, err
	}
	content = map[string]any{}
	return e, members, content, readMembers(e.body.Payload, members, content, false)
}

func setProtobuf(data []byte, value any, path []string) ([]byte, error) {
	e, members, content, err := parseProtobuf(data, path)
	if err != nil {
		return nil, err
	}
	before, err := lookup(content, path)
	if err != nil || equal(before, value) {
		return data, err
	}
	after, err := setContent(content, value, path)
	if err != nil {
		return nil, err
	}
	raw, err := setMembers(e.body.Payload, members, content, after)
	if err != nil {
		return nil, err
	}
	return e.withBody(data, raw), nil
}

// readMembers adds the members of a message to content and skips other fields. A repeated member is
// merged, like in decoders, if merge is set; otherwise it is an error: an edit cannot change both.
func readMembers(msg []byte, members []member, content map[string]any, merge bool) error {
	return each(msg, func(f WireField) error {
		for i := range members {
			if m := &members[i]; m.num == f.Number {
				if err := m.read(f, content, merge); err != nil {
					return at(m.name, err)
				}
			}
		}
		return nil
	})
}

// read adds the content of one field.
func (m *member) read(f WireField, content map[string]any, merge bool) error {
	list, _ := content[m.name].([]any)
	before, there := content[m.name].(map[string]any)
	if m.list || !there {
		before = map[string]any{}
	}
	value, err := m.decode(f, before, merge)
	switch {
	case m.list && err != nil:
		return at(fmt.Sprintf("[%d]", len(list)), err)
	case err != nil:
		return err
	case m.list:
		content[m.name] = append(list, value)
	case there && m.kind != kindTextMap && !merge:
		return f.repeated()
	default:
		content[m.name] = value
	}
	return nil
}

// decode returns the content of one field, merged into before for a map or a message. FieldsV1 that
// is not JSON returns text.
func (m *member) decode(f WireField, before map[string]any, merge bool) (any, error) {
	switch m.kind {
	case kindText:
		return f.text()
	case kindInteger:
		return f.integer()
	case kindBool:
		n, err := f.integer()
		return n != 0, err
	}
	msg, err := f.bytes()
	if err != nil {
		return nil, err
	}
	switch m.kind {
	case kindTextMap:
		key, value, err := mapEntry(msg)
		before[string(key)] = string(value)
		return before, err
	case kindTime:
		return readTime(msg)
	case kindFieldsV1:
		text, err := fieldsV1Text(msg)
		var value any
		if unmarshal(text, &value) != nil {
			value = string(text)
		}
		return value, err
	default:
		return before, readMembers(msg, m.members, before, merge)
	}
}

// fieldsV1Text returns the JSON text of a FieldsV1.
func fieldsV1Text(msg []byte) (text []byte, err error) {
	err = each(msg, func(f WireField) (err error) {
		if f.Number == fieldsV1Raw.num {
			text, err = f.bytes()
		}
		return err
	})
	return text, at(fieldsV1Raw.name, err)
}

// setMembers returns msg with the members of after in place of those of before; other fields stay.
func setMembers(msg []byte, members []member, before, after any) (_ []byte, err error) {
	was, _ := before.(map[string]any)
	is, ok := after.(map[string]any)
	if !ok {
		return nil, errWrongType
	}
	var unknown []string
	for name := range is {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, at(slices.Min(unknown), errWrongType)
	}
	for i := range members {
		m := &members[i]
		if equal(was[m.name], is[m.name]) {
			continue
		}
		if msg, err = m.set(msg, was[m.name], is[m.name]); err != nil {
			return nil, at(m.name, err)
		}
	}
	return msg, nil
}

// set returns msg with another value of one member. Additions follow the last field of the member,
// map entries precede the first greater key, and a first field has the position of generated code.
func (m *member) set(msg []byte, before, after any) (out []byte, err error) {
	was, wasEntries, _ := m.elements(before)
	is, entries, ok := m.elements(after)
	if !ok {
		return nil, errWrongType
	}
	var added []string
	for key := range entries {
		if wasEntries[key] == nil {
			added = append(added, key)
		}
	}
	slices.Sort(added)
	put := func(old []byte, key string, before, after any) {
		if err == nil {
			out, err = m.append(out, old, key, before, after)
		}
	}
	copied, end, found := 0, 0, 0
	wireErr := each(msg, func(f WireField) error {
		if f.Number < m.num && found == 0 {
			end = f.end
		}
		if f.Number != m.num {
			return nil
		}
		out = append(out, msg[copied:f.start]...)
		var before, after any
		switch key := m.key(f); {
		case m.kind == kindTextMap:
			for ; len(added) > 0 && added[0] < key; added = added[1:] {
				put(nil, added[0], nil, entries[added[0]])
			}
			before, after = wasEntries[key], entries[key]
		case found < len(is):
			before, after = was[found], is[found]
		}
		copied, end, found = f.end, f.end, found+1
		switch {
		case after == nil: // removed
		case equal(before, after):
			out = append(out, msg[f.start:f.end]...)
		default:
			put(f.Payload, "", before, after)
		}
		return nil
	})
	if wireErr != nil {
		return nil, wireErr
	}
	out = append(out, msg[copied:end]...)
	for _, key := range added {
		put(nil, key, nil, entries[key])
	}
	for _, element := range is[min(found, len(is)):] {
		put(nil, "", nil, element)
	}
	return append(out, msg[end:]...), err
}

// key returns the key of a map entry that was read before.
func (m *member) key(f WireField) string {
	if m.kind != kindTextMap {
		return ""
	}
	key, _, _ := mapEntry(f.Payload)
	return string(key)
}

// elements returns the contents of the fields of the member, one by one.
func (m *member) elements(value any) (list []any, entries map[string]any, ok bool) {
	switch {
	case value == nil:
		return nil, nil, true
	case m.kind == kindTextMap:
		entries, ok = value.(map[string]any)
		return nil, entries, ok
	case m.list:
		list, ok = value.([]any)
		return list, nil, ok && !slices.Contains(list, nil)
	}
	return []any{value}, nil, true
}

// append adds a field in place of old, whose content is before. A nil old adds a new field.
func (m *member) append(out, old []byte, key string, before, value any) ([]byte, error) {
	text, isText := value.(string)
	number, isNumber := value.(int64)
	is, isBool := value.(bool)
	msg, err := []byte(text), error(nil)
	switch {
	case m.kind == kindText && isText:
	case m.kind == kindInteger && isNumber:
		return appendInteger(out, m.num, number), nil
	case m.kind == kindBool && isBool:
		return appendInteger(out, m.num, int64(protowire.EncodeBool(is))), nil
	case m.kind == kindTextMap && isText && old == nil:
		msg = appendBytesField(appendBytesField(nil, mapKey, []byte(key)), mapValue, msg)
	case m.kind == kindTextMap && isText:
		msg, err = mapValueMember.set(old, before, value)
	case m.kind == kindMessage:
		msg, err = setMembers(old, m.members, before, value)
	case m.kind == kindFieldsV1:
		msg, err = setFieldsV1(old, before, value)
	default:
		err = errWrongType
	}
	return appendBytesField(out, m.num, msg), err
}

func setFieldsV1(msg []byte, before, after any) ([]byte, error) {
	text, err := fieldsV1Text(msg)
	if err != nil {
		return nil, err
	}
	merged, err := mergeJSON(text, before, after)
	if err != nil {
		return nil, err
	}
	return fieldsV1Raw.set(msg, string(text), string(merged))
}
