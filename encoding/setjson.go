package encoding

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// editJSON checks a stored value and changes the text of the field at path. Without a change it
// returns data itself.
func editJSON(data []byte, path []string, change func(text []byte) ([]byte, error)) ([]byte, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	start, text := len(data)-len(trimSpace(data)), bytes.TrimSpace(data)
	edited, err := editText(text, path, change)
	if err != nil || bytes.Equal(edited, text) {
		return data, err
	}
	return slices.Concat(data[:start], edited, data[start+len(text):]), nil
}

// editText changes the field at path in checked text without surrounding space. A missing field is
// null; a change to null removes the field.
func editText(text []byte, path []string, change func(text []byte) ([]byte, error)) ([]byte, error) {
	if len(path) == 0 {
		return change(text)
	}
	obj, err := parseJSONObject(text)
	if err != nil {
		return nil, err
	}
	before := obj.get(path[0])
	after, err := editText(before, path[1:], change)
	switch {
	case err != nil:
		return nil, at(path[0], err)
	case bytes.Equal(before, after):
		return text, nil
	case string(after) == "null":
		return obj.without(path[0]).text(), nil
	}
	return obj.set(path[0], after).text(), nil
}

// mergeJSON returns the text of after; parts equal to before keep their text.
func mergeJSON(text []byte, before, after any) ([]byte, error) {
	if equal(before, after) {
		return text, nil
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return mergeObject(text, before, after)
		}
	case []any:
		if before, ok := before.([]any); ok {
			return mergeList(text, before, after)
		}
	}
	return json.Marshal(after)
}

func mergeObject(text []byte, before, after map[string]any) ([]byte, error) {
	obj, err := parseJSONObject(text)
	if err != nil {
		return nil, err
	}
	last := make(map[string]int, len(obj)) // by name: of equal names the last counts
	for i, f := range obj {
		last[f.name] = i
	}
	for i, f := range obj {
		if value, stays := after[f.name]; stays && last[f.name] == i {
			if obj[i].value, err = mergeJSON(f.value, before[f.name], value); err != nil {
				return nil, at(f.name, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, is := last[name]; is {
			continue
		}
		text, err := json.Marshal(after[name])
		if err != nil {
			return nil, at(name, err)
		}
		obj = obj.set(name, text)
	}
	obj = slices.DeleteFunc(obj, func(f jsonField) bool {
		_, stays := after[f.name]
		return !stays
	})
	return obj.text(), nil
}

func mergeList(text []byte, before, after []any) ([]byte, error) {
	list, err := parseJSONList(text)
	if err != nil {
		return nil, err
	}
	for i, element := range after {
		if i >= len(before) {
			list, before = append(list, jsonField{value: []byte("null")}), append(before, nil)
		}
		if list[i].value, err = mergeJSON(list[i].value, before[i], element); err != nil {
			return nil, err
		}
	}
	return list[:len(after)].listText(), nil
}
