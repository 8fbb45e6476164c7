package schema

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// maxKept limits the managedFields entries that keepsManagedFields compares with each other. A
// server keeps ten of operation Update.
const (
	maxKept       = 32
	maxKeptUpdate = 10
)

// keepsManagedFields reports, without a field manager, whether a no-op update leaves this list of
// an object unchanged and a server reads all entries: listed versions, distinct managers, sorted,
// and with fields in a server's form. After false the caller must ask a field manager.
func keepsManagedFields(c *CRD, list []any) bool {
	if len(list) > maxKept {
		return false
	}
	updates := 0
	entries := make([]map[string]any, 0, maxKept)
	for _, element := range list {
		entry, _ := element.(map[string]any)
		if !keepsEntry(c, entry) {
			return false
		}
		for i, other := range entries {
			if i == len(entries)-1 && compareKept(other, entry) >= 0 || sameOwner(other, entry) {
				return false
			}
		}
		if entries = append(entries, entry); entry["operation"] == "Update" {
			updates++
		}
	}
	return updates <= maxKeptUpdate
}

// keepsEntry reports whether decoding and encoding leave an entry unchanged and its fields have the
// types of its version.
func keepsEntry(c *CRD, entry map[string]any) bool {
	for name, value := range entry {
		text, isText := value.(string)
		switch name {
		case "manager", "operation", "apiVersion", "fieldsType", "subresource", "time":
			if !isText || text == "" || !utf8.ValidString(text) || name == "time" && !isCanonicalTime(text) {
				return false
			}
		case "fieldsV1":
		default:
			return false
		}
	}
	operation, time := entryField(entry, "operation"), entryField(entry, "time")
	if operation != "Apply" && operation != "Update" || entry["fieldsType"] != "FieldsV1" || time != "" &&
		time < "1971" {
		return false
	}
	version, err := c.versionOf(entry)
	if err != nil {
		return false
	}
	fieldType, err := version.fieldType()
	if err != nil {
		return false
	}
	fields, _ := entry["fieldsV1"].(map[string]any)
	return len(fields) > 0 && fields["."] == nil && keepsFields(fields, fieldType.Schema, &fieldType.TypeRef)
}

// compareKept is compareEntries for canonical times.
func compareKept(a, b map[string]any) int {
	return cmp.Or(compareTexts(a, b, "operation"), compareTexts(a, b, "time"), compareTexts(a, b, "manager"),
		compareTexts(a, b, "apiVersion"), compareTexts(a, b, "subresource"))
}

func compareTexts(a, b map[string]any, name string) int {
	return cmp.Compare(entryField(a, name), entryField(b, name))
}

// sameOwner reports whether a server treats two entries as one: an entry of operation Apply is the
// same under any version.
func sameOwner(a, b map[string]any) bool {
	same := func(name string) bool { return compareTexts(a, b, name) == 0 }
	return same("manager") && same("operation") && same("subresource") &&
		(a["operation"] == "Apply" || same("apiVersion"))
}

// keepsFields reports whether fieldsV1, or a non-empty part of fieldsV1, survives a conversion to a
// set of paths, and has no path below an atomic list or map, which a server would own as a whole
// (typed.ReconcileFieldSetWithSchema). of is nil if the type is unknown or free.
func keepsFields(fields map[string]any, s *smdschema.Schema, of *smdschema.TypeRef) bool {
	var members *smdschema.Map
	if of != nil {
		atom, ok := s.Resolve(*of)
		switch {
		case !ok:
			return false
		case atom.Map != nil && isFree(atom.Map):
			of = nil
		case atom.Map != nil:
			if atom.Map.ElementRelationship == smdschema.Atomic {
				return false
			}
			members, of = atom.Map, &atom.Map.ElementType
		case atom.Scalar != nil:
			of = nil
		case atom.List == nil || atom.List.ElementRelationship == smdschema.Atomic:
			return false
		default:
			of = &atom.List.ElementType
		}
	}
	for element, value := range fields {
		below, ok := value.(map[string]any)
		switch {
		case !ok:
			return false
		case element == ".": // the node itself, next to other paths
			if len(below) > 0 || len(fields) == 1 {
				return false
			}
		case !isPlainElement([]byte(element)):
			return false
		case len(below) > 0 && !keepsFields(below, s, typeBelow(members, of, element)):
			return false
		}
	}
	return true
}

// typeBelow returns the type of an element of a list or map, or nil for an unknown type.
func typeBelow(members *smdschema.Map, of *smdschema.TypeRef, element string) *smdschema.TypeRef {
	if name, isField := strings.CutPrefix(element, "f:"); isField && members != nil {
		if field, found := members.FindField(name); found {
			of = &field.Type
		}
	}
	if of == nil || members != nil && *of == (smdschema.TypeRef{}) {
		return nil
	}
	return of
}

// isFree is isUntypedDeducedMap of structured-merge-diff's typed.
func isFree(m *smdschema.Map) bool {
	of := m.ElementType
	if of.NamedType != nil {
		return *of.NamedType == "__untyped_deduced_" && m.Fields == nil
	}
	return of.Inlined.Scalar != nil && *of.Inlined.Scalar == "untyped" && m.Fields == nil
}

// isPlainElement reports whether a path element has the only form that a server writes: a name in
// ASCII without JSON escapes, a key or value of such texts, small numbers and booleans, or an
// index.
func isPlainElement(element []byte) bool {
	if len(element) < len("f:x") || element[1] != ':' {
		return false
	}
	switch text := element[2:]; element[0] {
	case 'f':
		for i := range len(text) {
			if !plain(text[i]) {
				return false
			}
		}
		return true
	case 'k':
		c := canonicalOf(text)
		pair := func(name []byte) bool { return bytes.IndexByte(name, '\\') < 0 && c.plainScalar() }
		return len(text) > len("{}") && c.Members(pair) && c.ended()
	case 'v':
		c := canonicalOf(text)
		return c.plainScalar() && c.ended()
	case 'i':
		c := canonicalOf(text)
		return c.plainNumber() && c.ended()
	}
	return false
}

// plainScalar consumes a string without escapes, a small number or a boolean.
func (c *canonical) plainScalar() bool {
	switch c.Next() {
	case '"':
		_, ok := c.str()
		return ok
	case 't':
		return c.Word("true")
	case 'f':
		return c.Word("false")
	}
	return c.plainNumber()
}

// plainNumber consumes a whole number that fits a float64.
func (c *canonical) plainNumber() bool {
	n, ok := c.Integer()
	return ok && len(n) <= 15 && n[0] != '-'
}
