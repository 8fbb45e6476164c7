package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// content writes the decoded JSON of an object, indented, with escaped control characters: what
// encode would make in several passes.
type content struct {
	out     []byte
	blanks  string // a line end, the prefix and the indentation of the deepest level
	prefix  int    // bytes
	indent  int    // bytes of a level
	blanked int    // bytes of blanks written
	names   []string
}

// indentedContent returns the JSON of an object. It returns false if encode must decide: for values
// of other types, and for an object that is too deep, or perhaps has too many blanks.
func indentedContent(obj map[string]any, prefix, indent string) ([]byte, bool) {
	const most = 4 << 10 // bytes that most objects need
	c := content{out: make([]byte, 0, most), blanks: "\n" + prefix + strings.Repeat(indent, deepest),
		prefix: len(prefix), indent: len(indent)}
	ok := c.add(obj, 0)
	return append(c.out, '\n'), ok
}

// line begins a line of a level.
func (c *content) line(level int) {
	n := c.prefix + level*c.indent
	c.out = append(c.out, c.blanks[:1+n]...)
	c.blanked += n
}

// add writes a value, and returns false for one that it cannot write.
func (c *content) add(value any, level int) bool {
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
		return err == nil
	case string:
		return c.addText(v)
	case map[string]any:
		return v != nil && level+1 < deepest && c.addMap(v, level+1)
	case []any:
		return v != nil && level+1 < deepest && c.addList(v, level+1)
	default:
		return false
	}
	return true
}

func (c *content) addMap(v map[string]any, level int) bool {
	first := len(c.names)
	c.names = slices.AppendSeq(c.names, maps.Keys(v))
	names := c.names[first:]
	slices.Sort(names)
	c.out = append(c.out, '{')
	for i, name := range names {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.line(level)
		if !c.addText(name) {
			return false
		}
		c.out = append(c.out, ": "...)
		if !c.add(v[name], level) || c.blanked > freeBlanks {
			return false
		}
	}
	c.names = c.names[:first]
	return c.end('}', len(v), level)
}

func (c *content) addList(v []any, level int) bool {
	c.out = append(c.out, '[')
	for i, item := range v {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if c.line(level); !c.add(item, level) || c.blanked > freeBlanks {
			return false
		}
	}
	return c.end(']', len(v), level)
}

func (c *content) end(bracket byte, values, level int) bool {
	if values > 0 {
		c.line(level - 1)
	} else {
		c.blanked += 2 * (c.prefix + level*c.indent) // as in tooDeep
	}
	c.out = append(c.out, bracket)
	return true
}

// addText writes a text. The rest of a text with characters to escape is left to encoding/json.
func (c *content) addText(text string) bool {
	at := 0
	for at < len(text) && text[at] >= ' ' && text[at] < 0x7f && text[at] != '"' && text[at] != '\\' {
		at++
	}
	c.out = append(append(c.out, '"'), text[:at]...)
	if at == len(text) {
		c.out = append(c.out, '"')
		return true
	}
	rest, err := line(text[at:])
	c.out = append(c.out, escapeControls(bytes.TrimSuffix(rest, []byte("\n")))[1:]...)
	return err == nil
}
