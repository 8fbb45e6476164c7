package differ

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Step is one step down: to a field of an object, or to an item of a list.
type Step struct {
	Field string
	Item  string // how an item is named: "name=web", or its index; "" for a field
	// The index of an item in the old and in the new list, -1 where it is not in that one.
	Old, New int
}

// Path leads to a value; the empty path is the whole.
type Path []Step

// String returns a path such as spec.containers[name=web].image or metadata.labels["a.b/c"].
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Item != "":
			b.WriteString("[" + s.Item + "]")
		case !isPlain(s.Field):
			b.WriteString("[" + strconv.Quote(s.Field) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Field)
		}
	}
	return b.String()
}

// MarshalJSON writes the path as String does.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// Is tells whether the path begins with these fields.
func (p Path) Is(fields ...string) bool {
	if len(p) < len(fields) {
		return false
	}
	for i, f := range fields {
		if p[i].Item != "" || p[i].Field != f {
			return false
		}
	}
	return true
}

// isPlain tells whether a field can stand in a path as it is.
func isPlain(field string) bool {
	for _, r := range field {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !letter && r != '-' && r != '_' && r != '$' && r != '(' && r != ')' {
			return false
		}
	}
	return field != ""
}
