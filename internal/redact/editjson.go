package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// errRepeated is returned for names that are not unique: content has no place for both.
var errRepeated = errors.New("a name is repeated, or was replaced")

// EditJSON returns a text of JSON, a map or list or several, with edited content. What edit leaves
// keeps its bytes, order and space. Numbers in the content are float64.
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

// encodeAll is for content that no longer has the names of its text.
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

// jsonEditor writes a text of JSON with other content.
type jsonEditor struct {
	text   string
	from   *json.Decoder
	out    strings.Builder
	copied int // bytes of text
}

// next reads a token, and returns where it begins.
func (e *jsonEditor) next() (token json.Token, begin int, err error) {
	begin = int(e.from.InputOffset())
	begin += len(e.text[begin:]) - len(strings.TrimLeft(e.text[begin:], " \t\r\n,:"))
	token, err = e.from.Token()
	return token, begin, err
}

// value writes the next value of the text as content.
func (e *jsonEditor) value(content any) error {
	token, begin, err := e.next()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	fields, isMap := content.(map[string]any)
	items, isList := content.([]any)
	switch {
	case !nested && reflect.DeepEqual(token, content):
		return nil
	case nested && delim == '{' && isMap:
		return e.fields(fields)
	case nested && delim == '[' && isList:
		return e.items(items)
	case nested:
		if err := e.skip(); err != nil {
			return err
		}
	}
	encoded, err := encodeAll([]any{content})
	if err != nil {
		return err
	}
	e.out.WriteString(e.text[e.copied:begin] + encoded)
	e.copied = int(e.from.InputOffset())
	return nil
}

func (e *jsonEditor) fields(content map[string]any) error {
	seen := map[string]bool{}
	for e.from.More() {
		token, _, err := e.next()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		child, is := content[name]
		if !is || seen[name] {
			return errRepeated
		}
		seen[name] = true
		if err := e.value(child); err != nil {
			return err
		}
	}
	_, _, err := e.next()
	return err
}

func (e *jsonEditor) items(content []any) error {
	for i := 0; e.from.More(); i++ {
		if i >= len(content) {
			return errRepeated
		}
		if err := e.value(content[i]); err != nil {
			return err
		}
	}
	_, _, err := e.next()
	return err
}

// skip reads the rest of a map or list.
func (e *jsonEditor) skip() error {
	for levels := 1; levels > 0; {
		token, _, err := e.next()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			levels++
		case json.Delim('}'), json.Delim(']'):
			levels--
		}
	}
	return nil
}
