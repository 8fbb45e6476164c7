package compare

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mention is a field with a text in its name or value.
type Mention struct {
	Path Path `json:"path"`
	// Line is the first line of the value with the text, or the field's name. "..." replaces the
	// parts more than 100 bytes before and after the text.
	Line  string `json:"line"`
	Times int    `json:"times"` // number of matches in the value, or otherwise in the name
}

// Mentions yields the fields of JSON content with a match in their name or value, in order of names
// and positions. Numbers and booleans match in their JSON form. mark matches redacted values;
// matches inside them do not count.
func Mentions(content any, text, mark *regexp.Regexp) iter.Seq[Mention] {
	return func(yield func(Mention) bool) {
		f := &found{text: text, mark: mark, yield: yield}
		f.value(nil, content)
	}
}

// found walks through content; its methods return false to stop.
type found struct {
	text, mark *regexp.Regexp
	yield      func(Mention) bool
}

func (f *found) value(path Path, v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !f.field(append(path, pathStep{Field: name, Old: -1, New: -1}), name, v[name]) {
				return false
			}
		}
		return true
	case []any:
		keys := namedBy(v)
		for i, item := range v {
			name, _ := nameOf(item, keys)
			if keys == nil {
				name = fmt.Sprint(i)
			}
			if !f.value(append(path, pathStep{Item: name, Old: i, New: i}), item) {
				return false
			}
		}
		return true
	}
	m, has := f.mention(textOf(v))
	return !has || f.report(path, m)
}

// textOf returns a value in its JSON form; texts without quotes.
func textOf(v any) string {
	if number, is := v.(float64); is {
		if text, err := json.Marshal(number); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v)
}

// field searches a field. Its name is reported unless the value is a text with a match.
func (f *found) field(path Path, name string, v any) bool {
	if m, has := f.mention(name); has {
		switch text := v.(type) {
		case map[string]any, []any, nil:
			if !f.report(path, m) {
				return false
			}
		default:
			if !f.text.MatchString(textOf(text)) {
				return f.report(path, m)
			}
		}
	}
	return f.value(path, v)
}

func (f *found) report(path Path, m Mention) bool {
	m.Path = slices.Clone(path)
	return f.yield(m)
}

// mention returns the mention for a text, without its path.
func (f *found) mention(value string) (m Mention, has bool) {
	if !f.text.MatchString(value) {
		return m, false
	}
	marks := f.mark.FindAllStringIndex(value, -1)
	for _, at := range f.text.FindAllStringIndex(value, -1) {
		for len(marks) > 0 && marks[0][1] <= at[0] { // both are in order
			marks = marks[1:]
		}
		if len(marks) > 0 && marks[0][0] < at[1] {
			continue
		}
		if m.Times++; m.Times == 1 {
			m.Line = lineAround(value, at[0], at[1])
		}
	}
	return m, m.Times > 0
}

// lineAround returns the line of value[from:to], shortened around it.
func lineAround(value string, from, to int) string {
	const around = 100
	start := strings.LastIndexByte(value[:from], '\n') + 1
	end := len(value)
	if n := strings.IndexByte(value[to:], '\n'); n >= 0 {
		end = to + n
	}
	before, after := "", ""
	if from-start > around {
		for start, before = from-around, "..."; !utf8.RuneStart(value[start]); start++ {
		}
	}
	if to = min(to, from+around); end-to > around {
		for end, after = to+around, "..."; !utf8.RuneStart(value[end]); end-- {
		}
	}
	return before + value[start:end] + after
}

// namedBy returns the naming fields of a list's items; nil for their index.
func namedBy(list []any) []string {
	for _, keys := range itemKeys() {
		if _, ok := named(list, keys); ok && len(list) > 0 {
			return keys
		}
	}
	return nil
}
