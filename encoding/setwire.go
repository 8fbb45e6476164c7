package encoding

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

var errWrongType = errors.New("not of the field's type")

// narrow leaves of nested members those that path leads through.
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

// openProtobuf takes a protobuf value apart and decodes what leads to the field at path.
func openProtobuf(data []byte, path []string) (e envelope, members []member, content map[string]any, err error) {
	if e, err = openEnvelope(data); err != nil {
		return e, nil, nil, err
	}
	if members, err = narrow(objectMembers(e.apiVersion, e.kind), path); err != nil {
		return e, nil, nil, err
	}
	content, err = readMembers(e.body.payload, members)
	return e, members, content, err
}

func setProtobuf(data []byte, value any, path []string) ([]byte, error) {
	e, members, content, err := openProtobuf(data, path)
	if err != nil {
		return nil, err
	}
	if _, err := setContent(content, value, path); err != nil {
		return nil, err
	}
	raw, err := setMembers(e.body.payload, members, content)
	if err != nil {
		return nil, err
	}
	start, end := len(protobufPrefix)+e.body.start, len(protobufPrefix)+e.body.end
	return slices.Concat(data[:start], bytesField(unknownRaw, raw), data[end:]), nil
}

// readMembers decodes members of a message; other fields are passed over.
func readMembers(msg []byte, members []member) (map[string]any, error) {
	out := make(map[string]any, len(members))
	for f, err := range fields(msg) {
		if err != nil {
			return nil, err
		}
		for i := range members {
			if m := &members[i]; m.num == f.num {
				if err := m.read(f, out); err != nil {
					return nil, at(m.name, err)
				}
			}
		}
	}
	return out, nil
}

// read adds what one field holds to decoded content.
func (m *member) read(f wireField, into map[string]any) error {
	value, err := m.decode(f)
	list, _ := into[m.name].([]any)
	entries, there := into[m.name].(map[string]any)
	switch {
	case m.list && err != nil:
		return at(fmt.Sprintf("[%d]", len(list)), err)
	case err != nil:
		return err
	case m.list:
		into[m.name] = append(list, value)
	case m.kind == kindTextMap && there:
		maps.Copy(entries, value.(map[string]any))
	case there: // decoders merge the two, an edit can't
		return fmt.Errorf("field %d at byte %d: %w", f.num, f.start, errRepeated)
	default:
		into[m.name] = value
	}
	return nil
}

// decode is the content of one field: of a map one entry, and the text of FieldsV1 that are no JSON.
func (m *member) decode(f wireField) (any, error) {
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
		return map[string]any{string(key): string(value)}, err
	case kindFieldsV1:
		_, value, err := readFieldsV1(msg)
		return value, err
	default:
		return readMembers(msg, m.members)
	}
}

func readFieldsV1(msg []byte) (text []byte, value any, err error) {
	content, err := readMembers(msg, fieldsV1Members)
	raw, _ := content["raw"].(string)
	if unmarshal([]byte(raw), &value) != nil {
		value = raw
	}
	return []byte(raw), value, err
}

// setMembers returns msg with its members as in content; all other fields stay as they are.
func setMembers(msg []byte, members []member, content map[string]any) ([]byte, error) {
	for name := range content {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			return nil, at(name, errWrongType)
		}
	}
	before, err := readMembers(msg, members)
	for _, m := range members {
		if err == nil && !reflect.DeepEqual(before[m.name], content[m.name]) {
			msg, err = m.set(msg, before[m.name], content[m.name])
			err = at(m.name, err)
		}
	}
	return msg, err
}

// set returns msg with another value of one member. What the value adds goes behind the last field of the member, an
// entry of a map before the first with a greater key, and the first field of all where generated code would write it.
func (m *member) set(msg []byte, before, after any) (out []byte, err error) {
	was, _ := m.elements(before)
	is, ok := m.elements(after)
	if !ok {
		return nil, errWrongType
	}
	added := slices.DeleteFunc(slices.Sorted(maps.Keys(is)), func(key string) bool { return was[key] != nil })
	put := func(old []byte, key string) {
		if err == nil {
			out, err = m.append(out, old, key, is[key])
		}
	}
	copied, end, found := 0, 0, 0
	for f, err := range fields(msg) {
		if err != nil {
			return nil, err
		}
		if f.num < m.num && found == 0 {
			end = f.end
		}
		if f.num != m.num {
			continue
		}
		key := m.key(f, found)
		out = append(out, msg[copied:f.start]...)
		copied, end, found = f.end, f.end, found+1
		for ; len(added) > 0 && added[0] < key; added = added[1:] {
			put(nil, added[0])
		}
		switch value, stays := is[key]; {
		case stays && reflect.DeepEqual(was[key], value):
			out = append(out, msg[f.start:f.end]...)
		case stays:
			put(f.payload, key)
		}
	}
	out = append(out, msg[copied:end]...)
	for _, key := range added {
		put(nil, key)
	}
	return append(out, msg[end:]...), err
}

// key is what elements calls the i-th field of the member.
func (m *member) key(f wireField, i int) string {
	if m.kind != kindTextMap {
		return index(i)
	}
	key, _, _ := mapEntry(f.payload) // it was read before
	return string(key)
}

// elements is what the fields of the member hold, by key: of a map by theirs, else by index.
func (m *member) elements(value any) (elements map[string]any, ok bool) {
	list, isList := value.([]any)
	entries, isMap := value.(map[string]any)
	switch {
	case value == nil:
		return nil, true
	case m.kind == kindTextMap:
		return entries, isMap
	case !m.list:
		return map[string]any{index(0): value}, true
	}
	elements = map[string]any{}
	for i, element := range list {
		elements[index(i)] = element
	}
	return elements, isList
}

// index is a number as text that sorts as it does.
func index(i int) string { return fmt.Sprintf("%09d", i) }

// append adds a field in the place of one with the content old; nil is none.
func (m *member) append(out, old []byte, key string, value any) ([]byte, error) {
	text, isText := value.(string)
	number, isNumber := value.(int64)
	is, isBool := value.(bool)
	obj, isMap := value.(map[string]any)
	msg, err := []byte(text), error(nil)
	switch {
	case m.kind == kindText && isText:
	case m.kind == kindInteger && isNumber:
		return append(out, integerField(m.num, number)...), nil
	case m.kind == kindBool && isBool:
		return append(out, integerField(m.num, int64(protowire.EncodeBool(is)))...), nil
	case m.kind == kindTextMap && isText:
		msg, err = setMapEntry(old, key, text)
	case m.kind == kindMessage && isMap:
		msg, err = setMembers(old, m.members, obj)
	case m.kind == kindFieldsV1:
		msg, err = setFieldsV1(old, value)
	default:
		err = errWrongType
	}
	return appendBytesField(out, m.num, msg), err
}

func setMapEntry(old []byte, key, value string) ([]byte, error) {
	entry, err := readMembers(old, mapEntryMembers)
	if err != nil {
		return nil, err
	}
	if old == nil {
		entry["key"] = key
	}
	entry["value"] = value
	return setMembers(old, mapEntryMembers, entry)
}

func setFieldsV1(old []byte, value any) ([]byte, error) {
	text, before, err := readFieldsV1(old)
	if err != nil {
		return nil, err
	}
	merged, err := mergeJSON(text, before, value)
	if err != nil {
		return nil, err
	}
	return setMembers(old, fieldsV1Members, map[string]any{"raw": string(merged)})
}
