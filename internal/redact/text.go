package redact

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of parsed texts. Other texts are scanned line by line.
const (
	deepest      = 8       // levels of nested texts, such as JSON in an entry of YAML
	largest      = 2 << 20 // bytes of a text
	mostLevels   = 1000    // nesting of JSON
	longestAlias = 256     // bytes of a YAML scalar that replaces its aliases: each alias is checked
)

func holdsSecret(text string) bool { return newWalker(nil).holds(text) }

// holds reports whether a text has a secret: by shape, by name in the parsed text, or in a line. If
// secrets are noted, holds continues after the first one.
func (w walker) holds(text string) bool {
	t := traitsOf(text)
	switch {
	case w.texts > 0:
		return search(w, text, t)
	case t.mayShape(), t.mayPack(leastOf(w)), t.mayName(), w.note != nil && w.unpacker.budget() <= 0:
		return w.clean.holds(w.unpacker, text, w.others, func(text string) bool { return search(w, text, t) })
	}
	w.others.lookAt(text)
	return false
}

func search(w walker, text string, t traits) bool {
	if w.find != nil {
		return w.find(text) || w.holdsPacked(text, t)
	}
	w.others.lookAt(text)
	found := t.mayShape() && w.hasShape(text, t)
	if !found || w.note != nil {
		found = w.holdsPacked(text, t) || found
	}
	if !found || w.note != nil {
		found = t.mayName() && w.holdsNamed(text, t) || found
	}
	return found
}

func (w walker) hasShape(text string, t traits) bool {
	switch {
	case w.texts > 0 && !t.isText(text), !t.hasShape(text):
		return false
	case w.note == nil:
		return true
	}
	if begin := secretInCommand(text); begin >= 0 {
		w.note(wordsOf(text[begin:])[0], true)
	}
	alone := false
	for _, word := range wordsOf(text) {
		if hasShape(word) {
			w.note(word, true)
			alone = true
		}
	}
	if !alone {
		w.note(text, true)
	}
	return true
}

func (w walker) holdsNamed(text string, t traits) (found bool) {
	if w.texts > 0 && !t.isText(text) || !mentions(w.names, text) {
		return false
	}
	if w.texts < deepest && len(text) <= largest && mayParse(text) {
		if documents, err := parse(text); err == nil {
			changed, of := scanComments(text), w.inner()
			of.with, of.others = nil, nil // the text has been looked at for secrets of others
			for _, document := range documents {
				changed = of.walk(document, "") || changed
			}
			return changed
		}
	}
	for secret := range scan(text) {
		if w.note == nil {
			return true
		}
		w.note(secret, true)
		found = true
	}
	return found
}

// holdsPacked reports whether an encoded or packed part of a text has a secret. Parts that are too
// large or too deep count as secrets.
func (w walker) holdsPacked(text string, t traits) bool {
	if w.note != nil && w.unpacker.budget() <= 0 {
		return true
	}
	inner, least, found := w.inner(), leastOf(w), false
	if inner.texts == deepest { // redactKnown counts one level more
		w.others.meet()
	}
	if !t.mayPack(least) {
		return false
	}
	texts := !w.binary && inner.texts <= deepest
	for f := range w.unpacker.decode(text, least, texts) {
		switch {
		case f.brief && w.find == nil:
			w.others.lookAtPacked(inner, f)
		case f.err == ErrPacked || len(f.plain) >= shortest && (inner.texts > deepest || inner.holds(f.plain)):
			if w.note == nil {
				return true
			}
			found = true
		}
	}
	return found
}

// leastOf returns the least length of base64 to decode, in letters.
func leastOf(w walker) int {
	if w.find != nil || w.others != nil {
		return leastKnown
	}
	return leastNamed
}

// mentions reports whether a word of several in a text names a secret or its container. Most texts
// have none.
func mentions(names names, text string) bool {
	a := tables().alphabet
	for begin, end := 0, 0; end <= len(text); end++ {
		if end < len(text) && a.kinds[text[end]]&otherByte == 0 {
			continue
		}
		switch name := text[begin:end]; {
		case len(name) == len(text): // a name without a value
			return false
		case name == "auths", name == "kty", name == "key", name == "Key", // "API key: x"
			names.class(name) != plainName:
			return true
		}
		begin = end + 1
	}
	return false
}

func isNameByte(c byte) bool { return isWordByte(c) || c == '-' || c == '.' || c == '/' }

// mayParse excludes texts that the parsers would reject slowly.
func mayParse(text string) bool {
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '{' || text[0] == '[') || strings.Contains(text, ":\n") {
		return true
	}
	name, _, has := strings.Cut(text, ": ")
	return has && (strings.Contains(text, "\n") || !strings.Contains(name, " ")) // not in a sentence
}

var errNotParsed = errors.New("nested too deep, or neither a map nor a list")

// parse returns the documents of a text in YAML or JSON, each a map or a list. Only aliases of
// scalars are replaced, so that a short text does not become a large document.
func parse(text string) (documents []any, err error) {
	if trimmed := strings.TrimSpace(text); trimmed[0] == '{' || trimmed[0] == '[' {
		if documents, err = parseJSON(json.NewDecoder(strings.NewReader(trimmed))); err == nil {
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
			return nil, errNotParsed
		}
	}
}

func parseJSON(d *json.Decoder) (documents []any, err error) {
	for d.More() {
		document, err := jsonContent(d, mostLevels)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	if _, err = d.Token(); err != io.EOF {
		return nil, errNotParsed
	}
	return documents, nil
}

// jsonContent reads one value. Unlike json.Unmarshal, jsonContent keeps both values of a repeated
// name.
func jsonContent(d *json.Decoder, levels int) (any, error) {
	token, err := d.Token()
	open, nested := token.(json.Delim)
	switch {
	case err != nil:
		return nil, err
	case levels == 0:
		return nil, errNotParsed
	case !nested:
		return token, nil
	}
	fields, list := map[string]any{}, []any{}
	for d.More() {
		var name json.Token
		if open == '{' {
			if name, err = d.Token(); err != nil {
				return nil, err
			}
		}
		value, err := jsonContent(d, levels-1)
		if err != nil {
			return nil, err
		}
		if open == '{' {
			add(fields, name.(string), value)
		} else {
			list = append(list, value)
		}
	}
	if _, err = d.Token(); open == '[' {
		return list, err
	}
	return fields, err
}

// add sets a field of a map. A repeated name gets a list of its values.
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

func content(node *yaml.Node) any {
	switch node.Kind {
	case yaml.DocumentNode:
		return content(node.Content[0])
	case yaml.MappingNode:
		out := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			add(out, node.Content[i].Value, content(node.Content[i+1]))
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
