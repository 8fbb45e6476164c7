package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// errRepeated is returned for repeated or replaced names: a Go map holds each name once.
var errRepeated = errors.New("a name is repeated, or was replaced")

// EditJSON applies edit to the maps and lists in a JSON text. Unedited parts keep their bytes,
// order and white space. Numbers in the content are float64.
func EditJSON(text string, edit func(content any) any) (string, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return "", errNotParsed
	}
	documents, err := parseJSON(json.NewDecoder(strings.NewReader(text)))
	if err != nil {
		return "", err
	}
	for i := range documents {
		documents[i] = edit(documents[i])
	}
	e := jsonEditor{text: text, from: json.NewDecoder(strings.NewReader(text))}
	for _, document := range documents {
		if err := e.value(document); err != nil {
			return encodeAll(documents)
		}
	}
	return e.out.String() + text[e.copied:], nil
}

// encodeAll encodes content whose names differ from the text.
func encodeAll(documents []any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for _, document := range documents {
		if err := e.Encode(document); err != nil {
			return "", err
		}
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

type jsonEditor struct {
	text   string
	from   *json.Decoder
	out    strings.Builder
	copied int // bytes of text
}

func (e *jsonEditor) value(content any) error {
	begin := int(e.from.InputOffset())
	begin += len(e.text[begin:]) - len(strings.TrimLeft(e.text[begin:], " \t\r\n,:"))
	_, isMap := content.(map[string]any)
	_, isList := content.([]any)
	if c := e.text[begin]; c == '{' && isMap || c == '[' && isList {
		return e.children(content)
	}
	var is any
	if err := e.from.Decode(&is); err != nil || reflect.DeepEqual(is, content) {
		return err
	}
	encoded, err := encodeAll([]any{content})
	e.out.WriteString(e.text[e.copied:begin] + encoded)
	e.copied = int(e.from.InputOffset())
	return err
}

func (e *jsonEditor) children(content any) error {
	fields, isMap := content.(map[string]any)
	items, _ := content.([]any)
	seen := map[string]bool{}
	if _, err := e.from.Token(); err != nil {
		return err
	}
	for i := 0; e.from.More(); i++ {
		var child any
		found := i < len(items)
		if isMap {
			token, err := e.from.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			child, found = fields[name]
			found = found && !seen[name]
			seen[name] = true
		} else if found {
			child = items[i]
		}
		if !found {
			return errRepeated
		}
		if err := e.value(child); err != nil {
			return err
		}
	}
	_, err := e.from.Token()
	return err
}
