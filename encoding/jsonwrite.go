package encoding

import (
	"encoding/json"
	"slices"
	"strconv"
)

// appendJSON appends a decoded value with the encoding of encoding/json, without reflection.
func appendJSON(out []byte, value any) (_ []byte, err error) {
	switch value := value.(type) {
	case map[string]any:
		return appendObject(out, value)
	case []any:
		return appendList(out, value)
	case string:
		return appendString(out, value), nil
	case int64:
		return strconv.AppendInt(out, value, 10), nil
	case bool:
		return strconv.AppendBool(out, value), nil
	}
	text, err := json.Marshal(value)
	return append(out, text...), err
}

func appendObject(out []byte, object map[string]any) (_ []byte, err error) {
	if object == nil {
		return append(out, "null"...), nil
	}
	var few [16]string
	names := few[:0]
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, name), ':')
		if out, err = appendJSON(out, object[name]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendList(out []byte, list []any) (_ []byte, err error) {
	if list == nil {
		return append(out, "null"...), nil
	}
	out = append(out, '[')
	for i, element := range list {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendJSON(out, element); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if !plain(s[i]) {
			return append(out, quote(s)...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}
