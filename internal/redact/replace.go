package redact

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Part classifies a value that must be hidden.
type Part int

const (
	Literal Part = iota // a secret text or number
	Data                // a base64 entry of a Secret
	Name                // a key of a map
	Whole               // a value of a wrong type, hidden as a whole
	mixed               // a text with a secret inside
	applied             // the last-applied annotation: the object in JSON
)

// Replace returns JSON content in place of a secret. Texts and names are replaced by texts.
type Replace func(part Part, value any) any

// With is Object with replacements instead of lengths. A text with a secret keeps its structure and
// its other words if the structure is known; otherwise the whole text is replaced.
func With(key []byte, obj map[string]any, with Replace) (changed bool) {
	changed = newWalker(with).redactObject(key, obj, NewShared())
	unwrap(obj)
	return changed
}

// replaced wraps a value that With has replaced, so that it is not replaced twice.
type replaced struct{ value any }

// longestTaken bounds the secrets to search for credentials, in bytes. Helm releases are longer and
// would take long.
const longestTaken = 16 << 10

func (w walker) hidden(part Part, value any) any {
	text, is := value.(string)
	if w.note != nil && part != mixed { // holds has noted the secrets inside
		w.others = nil
		w.noteParts(part, value)
	}
	switch {
	case w.with != nil && part == applied:
		return replaced{inside(w, text, w)}
	case w.with != nil && part == mixed:
		return replaced{inside(w, text, w.inner())}
	case w.with != nil:
		return replaced{w.with(part, value)}
	case !is || part == Whole:
		return "<redacted>"
	case part == Data:
		return redacted(decodedLen(text))
	}
	return redacted(len(text))
}

// noteParts notes a secret, its parts, and credentials inside.
func (w walker) noteParts(part Part, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range inOrder(v) {
			w.noteParts(Literal, name)
			w.noteParts(Literal, child)
		}
	case []any:
		for _, child := range v {
			w.noteParts(Literal, child)
		}
	case string:
		plain := v
		if data, is := fromBase64(v); is && isText(data) {
			plain = data
		}
		if part == Data {
			v = plain
		}
		if part != applied { // the annotation as a whole is no secret
			w.note(v, !w.plain || hasShape(plain))
		}
		if len(plain) <= w.most {
			if part != applied {
				parts(plain, deepest, func(part string) { w.note(part, false) })
			}
			if w.most > Brief { // parts covers most of that too
				w.inner().holds(plain)
			}
		}
	}
}

// hiddenKeys returns a map without the keys that contain a secret, nil if no key does. Names are
// shown; in managedFields some keys are values.
func (w walker) hiddenKeys(v map[string]any, walk walk, has func(key string, edited bool) bool) any {
	var secrets []string
	for key := range inOrder(v) {
		if has(key, false) {
			secrets = append(secrets, key)
		}
	}
	if secrets == nil {
		return nil
	}
	for _, key := range slices.Sorted(slices.Values(secrets)) {
		if w.with == nil {
			break
		}
		child := v[key]
		delete(v, key)
		name := w.redactMember(key, walk)
		if name == key || has(name, true) {
			name, _ = w.with(Name, key).(string)
		}
		v[name] = child
	}
	if walk(w, v); w.with == nil {
		return "<redacted>"
	}
	return replaced{v}
}

// walk replaces the secrets in JSON content.
type walk func(w walker, content any) (changed bool)

// isMember reports whether a key of managedFields is a value: v:"a", k:{"name":"a"}.
func isMember(key string) bool {
	return strings.HasPrefix(key, "v:") || strings.HasPrefix(key, "k:")
}

func (w walker) holdsMember(key string, walk walk) bool {
	if !isMember(key) { // most often
		return false
	}
	var list []any
	w.with = nil
	return json.Unmarshal([]byte("["+key[2:]+"]"), &list) == nil && walk(w, list)
}

func (w walker) redactMember(key string, walk walk) string {
	if !isMember(key) {
		return key
	}
	list, err := EditJSON("["+key[2:]+"]", func(content any) any {
		walk(w, content)
		unwrap(content)
		return content
	})
	if err != nil {
		return key
	}
	return key[:2] + list[1:len(list)-1]
}

// inOrder yields the fields of a map by their names: in another order, other texts would be within
// the bounds of an object.
func inOrder(v map[string]any) iter.Seq2[string, any] {
	return func(yield func(name string, child any) bool) {
		const few = 16
		names := slices.AppendSeq(make([]string, 0, few), maps.Keys(v))
		slices.Sort(names)
		for _, name := range names {
			if !yield(name, v[name]) {
				return
			}
		}
	}
}

// Children replaces each value in a map or list by the result of to; items have no name.
func Children(value any, to func(name string, child any) any) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range inOrder(v) {
			v[name] = to(name, child)
		}
	case []any:
		for i, child := range v {
			v[i] = to("", child)
		}
	}
}

// unwrap replaces wrapped values by their content.
func unwrap(value any) {
	Children(value, func(_ string, child any) any {
		if r, is := child.(replaced); is {
			child = r.value
		}
		unwrap(child)
		return child
	})
}

// decodedLen returns the length of decoded base64, or of s if it is not base64.
func decodedLen(s string) int {
	if data, is := fromBase64(s); is {
		return len(data)
	}
	return len(s)
}

// fromBase64 decodes a text in base64.
func fromBase64(text string) (plain string, is bool) {
	if len(text)%4 > 0 && strings.IndexByte(text, '\n') < 0 && strings.IndexByte(text, '\r') < 0 { // most often
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return string(data), err == nil
}
