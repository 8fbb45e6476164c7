package encoding

import (
	"encoding/json"
	"maps"
	"slices"
)

// getJSON decodes the field of checked text at path.
func getJSON(text []byte, path []string) (value any, err error) {
	if len(path) == 0 {
		return value, unmarshal(text, &value)
	}
	obj, err := parseJSONObject(text)
	if err != nil {
		return nil, err
	}
	value, err = getJSON(obj.get(path[0]), path[1:])
	return value, at(path[0], err)
}

// setJSON returns text with the field at path changed from before to after.
func setJSON(text []byte, before, after any, path []string) ([]byte, error) {
	if len(path) == 0 {
		return mergeJSON(text, before, after)
	}
	obj, err := parseJSONObject(text)
	if err != nil {
		return nil, err
	}
	if after == nil && len(path) == 1 {
		return obj.without(path[0]).text(), nil
	}
	inner, err := setJSON(obj.get(path[0]), before, after, path[1:])
	if err != nil {
		return nil, at(path[0], err)
	}
	return obj.set(path[0], inner).text(), nil
}

// mergeJSON returns the text of after; equal parts keep their text, decoded as before.
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
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, is := before[name]; is && equal(was, after[name]) {
			continue
		}
		text, err := mergeJSON(obj.get(name), before[name], after[name])
		if err != nil {
			return nil, at(name, err)
		}
		obj = obj.set(name, text)
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			obj = obj.without(name)
		}
	}
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
