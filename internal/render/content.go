package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Content writes the JSON of an object, indented, with escaped control characters: what encode
// would make in several passes. It is a visitor of the values in their order.
type Content struct {
	out     []byte
	blanks  string // a line end, the prefix and the indentation of the deepest level
	prefix  int    // bytes
	indent  int    // bytes of a level
	blanked int    // bytes of blanks written
	lists   []bool // of the begun maps and lists
	empty   bool   // the last of them has no value yet
	failed  bool
	names   []string
}

// NewItem returns a writer for an element of NewObjects. The text is appended to out.
func NewItem(out []byte) *Content { return newContent(out, kubectl+kubectl, kubectl) }

func newContent(out []byte, prefix, indent string) *Content {
	return &Content{out: out, blanks: "\n" + prefix + strings.Repeat(indent, deepest),
		prefix: len(prefix), indent: len(indent)}
}

// indentedContent returns the JSON of an object, like Bytes, and a line end.
func indentedContent(obj map[string]any, prefix, indent string) ([]byte, bool) {
	const most = 4 << 10 // bytes that most objects need
	c := newContent(make([]byte, 0, most), prefix, indent)
	c.Value(obj)
	return append(c.out, '\n'), !c.failed
}

// Bytes returns the text, without a line end. It returns false if encode must decide: for values of
// other types, and for an object that is too deep, or perhaps has too many blanks.
func (c *Content) Bytes() ([]byte, bool) { return c.out, !c.failed }

// line begins a line.
func (c *Content) line() {
	n := c.prefix + len(c.lists)*c.indent
	c.out = append(c.out, c.blanks[:1+n]...)
	c.blanked += n
	c.failed = c.failed || c.blanked > freeBlanks
}

// next begins a value of a list, or a name of a map.
func (c *Content) next() {
	if !c.empty {
		c.out = append(c.out, ',')
	}
	c.empty = false
	c.line()
}

// item begins a value, which is the next one if it is in a list.
func (c *Content) item() {
	if last := len(c.lists) - 1; last >= 0 && c.lists[last] {
		c.next()
	}
}

// Begin begins a map or a list.
func (c *Content) Begin(list bool, _ int) {
	if c.failed = c.failed || len(c.lists)+1 >= deepest; c.failed {
		return
	}
	c.item()
	bracket := byte('{')
	if list {
		bracket = '['
	}
	c.out = append(c.out, bracket)
	c.lists, c.empty = append(c.lists, list), true
}

// End ends the last map or list.
func (c *Content) End() {
	if c.failed {
		return
	}
	last := len(c.lists) - 1
	bracket := byte('}')
	if c.lists[last] {
		bracket = ']'
	}
	if c.empty {
		c.blanked += 2 * (c.prefix + len(c.lists)*c.indent) // as in tooDeep
	}
	if c.lists = c.lists[:last]; !c.empty {
		c.line()
	}
	c.out = append(c.out, bracket)
	c.empty = false
}

// Name writes the name of the next value.
func (c *Content) Name(name string, _ int) {
	if c.failed {
		return
	}
	c.next()
	c.addText(name)
	c.out = append(c.out, ": "...)
}

// Text writes a text.
func (c *Content) Text(text string) {
	if !c.failed {
		c.item()
		c.addText(text)
	}
}

// Value writes any value.
func (c *Content) Value(value any) {
	switch v := value.(type) {
	case string:
		c.Text(v)
		return
	case map[string]any:
		c.addMap(v)
		return
	case []any:
		c.addList(v)
		return
	}
	if c.failed {
		return
	}
	c.item()
	switch v := value.(type) {
	case nil:
		c.out = append(c.out, "null"...)
	case bool:
		c.out = strconv.AppendBool(c.out, v)
	case int64:
		c.out = strconv.AppendInt(c.out, v, 10)
	case float64:
		text, err := json.Marshal(v)
		c.out = append(c.out, text...)
		c.failed = err != nil
	default:
		c.failed = true
	}
}

func (c *Content) addMap(v map[string]any) {
	first := len(c.names)
	c.names = slices.AppendSeq(c.names, maps.Keys(v))
	names := c.names[first:]
	slices.Sort(names)
	c.failed = c.failed || v == nil // null
	c.Begin(false, len(v))
	for _, name := range names {
		if c.Name(name, 0); !c.failed {
			c.Value(v[name])
		}
	}
	c.End()
	c.names = c.names[:first]
}

func (c *Content) addList(v []any) {
	c.failed = c.failed || v == nil
	c.Begin(true, len(v))
	for _, item := range v {
		if c.failed {
			break
		}
		c.Value(item)
	}
	c.End()
}

// addText writes a text. The rest of a text with characters to escape is left to encoding/json.
func (c *Content) addText(text string) {
	at := 0
	for at < len(text) && text[at] >= ' ' && text[at] < 0x7f && text[at] != '"' && text[at] != '\\' {
		at++
	}
	c.out = append(append(c.out, '"'), text[:at]...)
	if at == len(text) {
		c.out = append(c.out, '"')
		return
	}
	rest, err := line(text[at:])
	c.failed = c.failed || err != nil
	c.out = append(c.out, escapeControls(bytes.TrimSuffix(rest, []byte("\n")))[1:]...)
}
