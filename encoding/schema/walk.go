package schema

import (
	"bytes"
	"slices"
)

// walker scans a value with the schema of a version. Each method consumes one value and returns
// false if only decoding gives a sure answer.
type walker struct {
	canonical
	crd                     *CRD
	stored, namespace, name string

	settled bool // no default is missing
	typed   bool // a field manager accepts the object
	valid   bool // servers accept writes of the object, apart from CEL rules; implies typed

	versions    versionSet // versions in managedFields
	entries     []byte     // the text of managedFields
	path, spent int        // the length of the path to the position, and the checks so far
	steps       int        // of patterns
	keys        [][]byte   // keys of the items of the enclosing lists
	unquoted    []byte     // see unquote
}

// stepsPerByte is the maximum number of pattern steps for each byte of a value. Real patterns need
// less.
const stepsPerByte = 128

// passes consumes a whole value, and sets settled, typed and valid.
func (w *walker) passes(value []byte, v *Version) bool {
	of, mode := v.checked(), fullPruning
	if of == nil {
		return false
	}
	if v.preserves() {
		mode = noPruning
	}
	w.canonical, w.versions, w.entries, w.keys = canonicalOf(value), versionSet{}, nil, w.keys[:0]
	w.path, w.spent, w.steps, w.settled, w.typed = 0, 0, 0, true, of.rules != nil
	w.valid = w.typed && isPlainName(w.name, 253, true) && (w.namespace == "" || isPlainName(w.namespace, 63, false))
	ok := w.object(of, mode, true) && string(w.Text[w.At:]) == "\n"
	w.note(true, len(value) <= maxAccepted && w.spent < maxChecks/2)
	return ok
}

// note clears w.typed and w.valid if one value is not typed or not valid.
func (w *walker) note(typed, valid bool) {
	w.typed = w.typed && typed
	w.valid = w.valid && typed && valid
}

// pruneMode selects what the pruning algorithm does with undeclared fields.
type pruneMode int

const (
	noPruning   pruneMode = iota // keeps them with all fields below
	skipPruning                  // keeps them, but prunes below declared fields: x-kubernetes-preserve-unknown-fields
	fullPruning                  // drops them
)

// mode returns the prune mode for values of this node.
func (s *shape) mode(around pruneMode) pruneMode {
	if around == fullPruning && s.preserve {
		return skipPruning
	}
	return around
}

// object consumes an object with the shape in of; root marks the resource itself. object follows
// pruning.Prune, objectmeta.Coerce, PruneNonNullableNullsWithoutDefaults and defaulter.fill.
func (w *walker) object(of *shape, mode pruneMode, root bool) bool {
	mode = of.mode(mode)
	r := of.checks()
	defaults, identity, required, fields, keys := of.defaults, 0, 0, 0, 0
	ok := w.Members(func(name []byte) bool {
		for len(defaults) > 0 && defaults[0] <= string(name) {
			w.settled = w.settled && defaults[0] == string(name)
			defaults = defaults[1:]
		}
		if fields++; root && isMetaField(string(name)) {
			identity++
		}
		if slices.Contains(r.required, string(name)) {
			required++
		}
		start := w.At
		w.path += len(name) + 1
		ok := w.field(name, of, mode, root)
		w.path -= len(name) + 1
		if ok && slices.Contains(r.keys, string(name)) {
			keys++
			w.key(start)
		}
		return ok
	})
	w.settled = w.settled && len(defaults) == 0
	w.note(r.kind == "object" && keys == len(r.keys) || r.kind == anyValue,
		required == len(r.required) && within(fields, r.minSize, r.maxSize) && !r.unsure)
	w.spend(r, fields, len(of.properties), 0)
	return ok && (!root || identity == 3)
}

// field consumes a field of an object with the shape in of.
func (w *walker) field(name []byte, of *shape, mode pruneMode, root bool) bool {
	child, declared := of.properties[string(name)]
	if !declared {
		child, declared = of.additional, of.open
	}
	switch {
	case bytes.IndexByte(name, '\\') >= 0:
		return false
	case (root || of.embedded) && isMetaField(string(name)):
		return !child.hasDefaults() && !child.hasEmbedded() && w.metaMember(name, root)
	case declared && mode != noPruning:
		return w.value(child, fullPruning)
	}
	return (declared || mode != fullPruning) && w.value(child, noPruning)
}

// spend counts the checks of validating a value, like checks.spend.
func (w *walker) spend(r *rules, fields, properties, text int) {
	w.spent += (1 + r.combined) * (1 + w.path/16 + r.enumSize/32 + fields/8 + fields*properties/4 + text/1024)
}

// value consumes any value.
func (w *walker) value(of *shape, mode pruneMode) bool {
	if of == nil && mode != fullPruning {
		return w.Value()
	}
	switch w.Next() {
	case '{':
		return w.object(of.orNone(), mode, false)
	case '[':
		return w.list(of.orNone(), mode)
	case 'n':
		w.note(of.checks().acceptsNull())
		w.spend(of.checks(), 0, 0, 0)
		return (of == nil || of.nullable) && w.Word("null")
	}
	return w.scalar(of.checks())
}

// scalar consumes a string, a number or a boolean.
func (w *walker) scalar(r *rules) bool {
	start, first := w.At, w.Next()
	if !w.Value() {
		return false
	}
	w.spend(r, 0, 0, w.At-start)
	switch text := w.Text[start:w.At]; first {
	case '"':
		if w.steps += r.patternSize * len(text); w.steps > stepsPerByte*len(w.Text) {
			w.note(true, false)
			return true
		}
		w.note(r.acceptsText(text))
	case 't', 'f':
		w.note(r.kind == "boolean" || r.kind == anyValue, !r.unsure)
	default:
		w.note(r.acceptsNumber(text))
	}
	return true
}

// list consumes a list.
func (w *walker) list(of *shape, mode pruneMode) bool {
	r, items, mode := of.checks(), of.items, of.mode(mode)
	base, n, width := len(w.keys), 0, 1
	w.path += len("[10]")
	if items != nil && r.list == "map" {
		width = len(items.checks().keys)
	}
	ok := w.Elements(func() bool {
		start := w.At
		n++
		w.note(r.list != "map" || w.Next() == '{', true)
		ok := w.value(items, mode)
		if ok && r.list == "set" {
			w.key(start)
		}
		return ok
	})
	w.path -= len("[10]")
	w.spend(r, 0, 0, 0)
	if r.list != "" {
		w.note(areUnique(w.keys[base:], n, width), true)
	}
	w.keys = w.keys[:base]
	w.note(r.kind == "array" || r.kind == anyValue, within(n, r.minSize, r.maxSize) && !r.unsure)
	return ok
}

// key keeps the value between start and the position as a key of a list item.
func (w *walker) key(start int) {
	text := w.Text[start:w.At]
	w.note(text[0] != '{' && text[0] != '[' && text[0] != 'n', true)
	if w.keys == nil {
		w.keys = make([][]byte, 0, 16)
	}
	w.keys = append(w.keys, text)
}

// areUnique reports whether no two of n items have the same keys. Each item has width keys.
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

// orNone returns s, or an empty shape for nil.
func (s *shape) orNone() *shape {
	if s == nil {
		return noShape
	}
	return s
}

var noShape = &shape{}
