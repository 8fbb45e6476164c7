package schema

import (
	"bytes"
	"slices"
)

// walker passes over a value with the schema of a version. Its methods pass one value each; they
// return false for a value that has to be decoded to be sure of anything.
type walker struct {
	canonical
	crd                     *CRD
	stored, namespace, name string

	settled bool // no default is missing
	typed   bool // a field manager accepts the object
	valid   bool // servers accept writes of the object, but for CEL rules; implies typed

	versions      versionSet // that managedFields name
	managedFields int        // the position of the list
	keys          [][]byte   // of the lists that the position is in
	unquoted      []byte     // see unquote
}

// passes passes over a whole value.
func (w *walker) passes(value []byte, v *Version) bool {
	of, mode := v.checked(), fullPruning
	if of == nil {
		return false
	}
	if v.preserves() {
		mode = noPruning
	}
	w.canonical, w.versions, w.managedFields, w.keys = canonical{text: value}, versionSet{}, 0, w.keys[:0]
	w.settled, w.typed = true, of.rules != nil
	w.valid = w.typed && isPlainName(w.name, 253, true) && (w.namespace == "" || isPlainName(w.namespace, 63, false))
	return w.object(of, mode, true) && string(w.text[w.at:]) == "\n"
}

// note keeps what was found out about a value.
func (w *walker) note(typed, valid bool) {
	w.typed = w.typed && typed
	w.valid = w.valid && typed && valid
}

// The names and levels up to which objects are told to be accepted: no path costs many checks.
const (
	maxPlainName  = 128
	maxPlainDepth = 32
)

// object passes an object of shape of; root marks the resource itself. It follows shape.fitsMap and
// defaulter.fill.
func (w *walker) object(of *shape, mode pruneMode, root bool) bool {
	mode = of.mode(mode)
	r := of.checks()
	defaults, identity, required, fields, keys := of.defaults, 0, 0, 0, 0
	ok := w.members(func(name []byte) bool {
		fields++
		w.note(true, len(name) <= maxPlainName && w.depth <= maxPlainDepth)
		for len(defaults) > 0 && defaults[0] <= string(name) {
			w.settled = w.settled && defaults[0] == string(name)
			defaults = defaults[1:]
		}
		if slices.Contains(r.required, string(name)) {
			required++
		}
		child, declared := of.properties[string(name)]
		if !declared {
			child, declared = of.additional, of.open
		}
		start := w.at
		switch {
		case bytes.IndexByte(name, '\\') >= 0:
			return false
		case (root || of.embedded) && isMetaField(string(name)):
			identity++
			return !child.hasDefaults() && !child.hasEmbedded() && w.metaMember(name, root)
		case declared && mode != noPruning:
			if !w.value(child, fullPruning) {
				return false
			}
		case !declared && mode == fullPruning || !w.value(child, noPruning):
			return false
		}
		if slices.Contains(r.keys, string(name)) {
			keys++
			w.key(start)
		}
		return true
	})
	w.settled = w.settled && len(defaults) == 0
	w.note(r.kind == "object" && keys == len(r.keys) || r.kind == anyValue, required == len(r.required) && within(fields, r.minSize, r.maxSize) && !r.unsure)
	return ok && (!root || identity == 3)
}

// value passes any value, as shape.fits does.
func (w *walker) value(of *shape, mode pruneMode) bool {
	if of == nil && mode != fullPruning {
		return w.any()
	}
	switch w.peek() {
	case '{':
		return w.object(of.orNone(), mode, false)
	case '[':
		return w.list(of.orNone(), mode)
	case 'n':
		w.note(of.checks().acceptsNull())
		return (of == nil || of.nullable) && w.word("null")
	}
	return w.scalar(of.checks())
}

// scalar passes a text, a number or a truth value.
func (w *walker) scalar(r *rules) bool {
	start, first := w.at, w.peek()
	if !w.any() {
		return false
	}
	switch text := w.text[start:w.at]; first {
	case '"':
		w.note(r.acceptsText(text))
	case 't', 'f':
		w.note(r.kind == "boolean" || r.kind == anyValue, !r.unsure)
	default:
		w.note(r.acceptsNumber(text))
	}
	return true
}

// list passes a list.
func (w *walker) list(of *shape, mode pruneMode) bool {
	r, items, mode := of.checks(), of.items, of.mode(mode)
	base, n, width := len(w.keys), 0, 1
	if items != nil && r.list == "map" {
		width = len(items.checks().keys)
	}
	ok := w.canonical.list(func() bool {
		start := w.at
		n++
		w.note(r.list != "map" || w.peek() == '{', true)
		if !w.value(items, mode) {
			return false
		}
		if r.list == "set" {
			w.key(start)
		}
		return true
	})
	if r.list != "" {
		w.note(areUnique(w.keys[base:], n, width), true)
	}
	w.keys = w.keys[:base]
	w.note(r.kind == "array" || r.kind == anyValue, within(n, r.minSize, r.maxSize) && !r.unsure)
	return ok
}

// key keeps the value from a position on as a key of a list's item.
func (w *walker) key(start int) {
	text := w.text[start:w.at]
	w.note(text[0] != '{' && text[0] != '[' && text[0] != 'n', true)
	if w.keys == nil {
		w.keys = make([][]byte, 0, 16)
	}
	w.keys = append(w.keys, text)
}

// areUnique tells that no two of n items have the same keys; width of them belong to each item.
func areUnique(keys [][]byte, n, width int) bool {
	const most = 64
	if len(keys) != n*width || n > most {
		return false
	}
	for i := width; i < len(keys); i += width {
		for j := 0; j < i; j += width {
			if slices.EqualFunc(keys[i:i+width], keys[j:j+width], bytes.Equal) {
				return false
			}
		}
	}
	return true
}

// orNone is a shape without fields for none.
func (s *shape) orNone() *shape {
	if s == nil {
		return noShape
	}
	return s
}

var noShape = &shape{}

// hasEmbedded says whether the shape, or one below it, is of an embedded resource.
func (s *shape) hasEmbedded() bool {
	if s == nil {
		return false
	}
	if s.embedded || s.items.hasEmbedded() || s.additional.hasEmbedded() {
		return true
	}
	for _, below := range s.properties {
		if below.hasEmbedded() {
			return true
		}
	}
	return false
}
