package sanitize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// editor replaces names in the content of objects.
type editor struct {
	*dictionary
	replaced int            // texts
	left     map[string]int // names that may mean something else, by how many texts have them
	depth    int            // of texts in texts
	room     *redact.Room
	wrong    error // what could not be searched
}

// edit returns an editor with counts of its own.
func (d *dictionary) edit() *editor {
	return &editor{dictionary: d, left: map[string]int{}, room: redact.NewRoom()}
}

// deepestNames bounds texts in texts, such as JSON in base64, in which names are looked for.
const deepestNames = 5

// errNames is returned for a map that would have one name twice.
var errNames = errors.New("two names become one")

func (e *editor) object(content map[string]any) error {
	return cmp.Or(e.fields(content, ""), e.wrong)
}

func (e *editor) fields(m map[string]any, parent string) (err error) {
	label, _ := m["key"].(string) // of a requirement
	if m["scopeName"] != nil {
		label = "name"
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		child := m[name]
		if name == "resources" && m["apiGroups"] != nil {
			continue
		}
		field := name
		switch name {
		case "values":
			field = cmp.Or(label, name)
		case "default", "enum", "example": // of the field of a schema: what objects have there
			if _, is := m["type"].(string); is {
				field = parent
			}
		}
		if child, err = e.value(child, field, parent); err != nil {
			return err
		}
		alias := e.text(name)
		if alias != name {
			if _, twice := m[alias]; twice {
				return fmt.Errorf("%w: %s", errNames, parent)
			}
			delete(m, name)
		}
		m[alias] = child
	}
	return nil
}

func (e *editor) value(value any, field, parent string) (any, error) {
	switch v := value.(type) {
	case string:
		if isType(field, v) {
			return v, nil
		}
		if holdsName(field, parent) {
			return e.name(v), nil
		}
		return e.text(v), nil
	case map[string]any:
		return v, e.fields(v, field)
	case []any:
		for i, child := range v {
			var err error
			if v[i], err = e.value(child, field, parent); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// name replaces the name in a field that holds one, also one with something added: the prefix of
// names to be made, the holder of a lease, an Event.
func (e *editor) name(s string) string {
	if alias, is := e.alias(s); is {
		return e.count(s, alias)
	}
	if at := strings.LastIndexAny(s, "-_."); at > 0 {
		if alias, is := e.alias(s[:at]); is {
			return e.count(s, alias+e.inText(s[at:], e.leave))
		}
	}
	return e.text(s)
}

func (e *editor) leave(name string) { e.left[strings.ToLower(name)]++ }

func (e *editor) count(before, after string) string {
	if before != after {
		e.replaced++
	}
	return after
}

// text replaces the names in a text that may hold JSON or encoded data.
func (e *editor) text(s string) string {
	if len(s) < 2 {
		return s
	}
	if e.depth < deepestNames {
		e.depth++
		defer func() { e.depth-- }()
		if s[0] == '{' || s[0] == '[' {
			if out, is := e.json(s); is {
				return out
			}
		}
		out, is, err := e.room.Repack(s, e.text)
		if e.wrong = cmp.Or(e.wrong, err); is {
			return e.count(s, out)
		}
	}
	return e.count(s, e.inText(e.places(s), e.leave))
}

// json edits JSON. It is false for another text, and for one whose names would be twice.
func (e *editor) json(s string) (string, bool) {
	inner := &editor{dictionary: e.dictionary, left: map[string]int{}, depth: e.depth, room: e.room}
	failed := false
	out, err := redact.EditJSON(s, func(content any) any {
		content, err := inner.value(content, "", "")
		failed = failed || err != nil
		return content
	})
	e.wrong = cmp.Or(e.wrong, inner.wrong)
	if err != nil || failed {
		return "", false
	}
	for name, n := range inner.left {
		e.left[name] += n
	}
	if inner.replaced == 0 {
		return s, true
	}
	e.replaced += inner.replaced
	return out, true
}
