package differ

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Step is one step down: to a field of an object, or to an item of a list.
type Step struct {
	Field string
	Item  string // how an item is named: "name=web", or its index; "" for a field
	// The index of an item in the old and in the new list, -1 for none.
	Old, New int
}

// Path leads to a value. The empty path is the whole.
type Path []Step

// String formats the path: spec.containers[name=web].image, metadata.labels["example.com/name"].
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Item != "":
			b.WriteString("[" + s.Item + "]")
		case !plainField.MatchString(s.Field):
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

// is reports whether the path begins with these fields.
func (p Path) is(fields ...string) bool {
	return len(p) >= len(fields) && slices.EqualFunc(p[:len(fields)], fields, func(s Step, field string) bool {
		return s.Item == "" && s.Field == field
	})
}

// plainField matches fields that need no quotes in a path.
var plainField = regexp.MustCompile(`^[\w$()-]+$`)
