package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// deepest is how many texts in texts are parsed, such as JSON in an entry of YAML. The lines of one that lies deeper are scanned.
const deepest = 4

// largest is how long a text may be to be parsed. The lines of a longer one are scanned.
const largest = 2 << 20

// Text is text, or the mark of its length where it holds a secret.
func Text(text string) string {
	if isRedacted(text) || !holdsSecret(text) {
		return text
	}
	return redacted(len(text))
}

func holdsSecret(text string) bool { return walker{}.holds(text) }

// holds tells whether there is a secret in a text: by its shape, or by its name in what the text is parsed to, or else in a line.
func (w walker) holds(text string) bool {
	switch {
	case hasShape(text):
		return true
	case w.depth < deepest && w.holdsEncoded(text):
		return true
	case !mentions(text):
		return false
	}
	if w.depth < deepest && len(text) <= largest && mayParse(text) {
		if documents, err := parse(text); err == nil {
			changed := scanComments(text)
			for _, document := range documents {
				changed = (walker{depth: w.depth + 1}).walk(document, "") || changed
			}
			return changed
		}
	}
	return scan(text)
}

// holdsEncoded looks into a text that is base64 as a whole, and into a data URL.
func (w walker) holdsEncoded(text string) bool {
	decoded := ""
	if rest, isURL := strings.CutPrefix(text, "data:"); isURL {
		kind, data, _ := strings.Cut(rest, ",")
		if !strings.HasSuffix(kind, ";base64") {
			decoded, _ = url.PathUnescape(data)
			return decoded != "" && (walker{depth: w.depth + 1}).holds(decoded)
		}
		text = data
	}
	text = strings.TrimSpace(text)
	if len(text) < 16 || len(text)%4 != 0 || strings.ContainsAny(text[:16], " .:-,{}\"") {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && utf8.Valid(data) && (walker{depth: w.depth + 1}).holds(string(data))
}

// mentions tells whether a word of a text is the name of a secret, or of what holds one: nearly all texts have none.
func mentions(text string) bool {
	for begin := 0; begin < len(text); {
		if !isNameByte(text[begin]) {
			begin++
			continue
		}
		end := begin
		for end < len(text) && isNameByte(text[end]) {
			end++
		}
		name := text[begin:end]
		if slices.Contains([]string{"auths", "kty", "key", "Key"}, name) || sortOf(name) != plainName { // "API key: x"
			return true
		}
		begin = end
	}
	return false
}

func isNameByte(c byte) bool { return isWordByte(c) || c == '-' || c == '.' || c == '/' }

// mayParse tells text that is JSON or YAML from what takes long to be found to be neither.
func mayParse(text string) bool {
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '{' || text[0] == '[') || strings.Contains(text, ":\n") {
		return true
	}
	name, _, has := strings.Cut(text, ": ")
	return has && (strings.Contains(text, "\n") || !strings.Contains(name, " ")) // not in a sentence
}

// longestAlias is how long a scalar may be to stand where its aliases do: it is looked at in each place.
const longestAlias = 256

var (
	errNoStructure = errors.New("neither a map nor a list")
	errDeep        = errors.New("nested too deep")
)

// parse returns the documents of a text in YAML or JSON, each a map or a list. Aliases stand for their scalars only, so that a short
// text is no large document.
func parse(text string) (documents []any, err error) {
	if trimmed := strings.TrimSpace(text); trimmed[0] == '{' || trimmed[0] == '[' {
		d := json.NewDecoder(strings.NewReader(trimmed))
		for err == nil {
			var document any
			if document, err = jsonContent(d, mostLevels); err == nil {
				documents = append(documents, document)
			}
		}
		if err == io.EOF {
			return documents, nil
		}
		documents = nil
	}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var node yaml.Node
		switch err := d.Decode(&node); {
		case err == io.EOF:
			return documents, nil
		case err != nil:
			return nil, err
		}
		switch document := content(&node); document.(type) {
		case map[string]any, []any:
			documents = append(documents, document)
		case nil:
		default:
			return nil, errNoStructure
		}
	}
}

// mostLevels is how deep JSON may be nested.
const mostLevels = 1000

// jsonContent reads one value. Unlike json.Unmarshal it keeps both values of a name that an object has twice.
func jsonContent(d *json.Decoder, levels int) (any, error) {
	token, err := d.Token()
	switch {
	case err != nil:
		return nil, err
	case levels == 0:
		return nil, errDeep
	case token == json.Delim('{'):
		out := map[string]any{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := jsonContent(d, levels-1)
			if err != nil {
				return nil, noEOF(err)
			}
			add(out, name.(string), value)
		}
		_, err = d.Token()
		return out, noEOF(err)
	case token == json.Delim('['):
		out := []any{}
		for d.More() {
			value, err := jsonContent(d, levels-1)
			if err != nil {
				return nil, noEOF(err)
			}
			out = append(out, value)
		}
		_, err = d.Token()
		return out, noEOF(err)
	}
	return token, nil
}

// noEOF is err where a text ends in the middle of a value.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// add sets a field of a map. A name that a map has twice stands for a list of its values.
func add(fields map[string]any, name string, value any) {
	if first, twice := fields[name]; twice {
		list, isList := first.([]any)
		if !isList {
			list = []any{first}
		}
		value = append(list, value)
	}
	fields[name] = value
}

// content is a node as JSON content.
func content(node *yaml.Node) any {
	switch node.Kind {
	case yaml.DocumentNode:
		return content(node.Content[0])
	case yaml.MappingNode:
		out := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			name, value := node.Content[i].Value, content(node.Content[i+1])
			add(out, name, value)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			out = append(out, content(item))
		}
		return out
	case yaml.AliasNode:
		if node.Alias == nil || node.Alias.Kind != yaml.ScalarNode || len(node.Alias.Value) > longestAlias {
			return nil
		}
		return content(node.Alias)
	}
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return node.Value == "true"
	case "!!int", "!!float":
		if n, err := strconv.ParseFloat(node.Value, 64); err == nil {
			return n
		}
	}
	return node.Value
}
