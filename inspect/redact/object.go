package redact

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/keys"
)

// tokenAnnotation holds the token of a pull secret in the clear (OpenShift until 4.15).
const tokenAnnotation = "openshift.io/token-secret.value"

// Object replaces, in place, what must not be shown of the object in JSON content that is stored under key, and says whether there was
// any. Where credentials are stored, an object of any kind is taken for one of them.
func Object(key []byte, obj map[string]any) (changed bool) {
	if keys.HoldsCredentials(key) {
		changed = credentials(obj)
	}
	return walker{}.walk(obj, "") || changed
}

// credentials empties an object that lies among credentials: of what it says itself only its type and metadata are left, and of a
// damaged one not its annotations.
func credentials(obj map[string]any) (changed bool) {
	changed = empty(obj, "data", decodedLen)
	changed = empty(obj, "stringData", textLen) || changed
	for name, value := range obj {
		switch name {
		case "apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData":
			continue
		}
		if value != nil && value != "<redacted>" {
			obj[name], changed = "<redacted>", true
		}
	}
	for _, name := range []string{"apiVersion", "kind", "type"} { // whatever stands there
		if text, isText := obj[name].(string); obj[name] != nil && (!isText || len(text) > longestName || holdsSecret(text)) {
			obj[name], changed = "<redacted>", true
		}
	}
	meta, _ := obj["metadata"].(map[string]any)
	if !is(obj, "Secret") {
		changed = empty(meta, "annotations", textLen) || changed
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if text, isText := meta[name].(string); isText && !isRedacted(text) {
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				meta[name], changed = redacted(len(text)), true
			}
		}
	}
	return changed
}

// longestName is how long a type's name may be, in bytes: a DNS name and a little more.
const longestName = 320

// walker redacts JSON content. depth counts the texts around it: a text in an object is content too, where it can be parsed.
type walker struct{ depth int }

// secret tells whether text is one where its name has the sort given. In a text in an object "$NAME" is a variable.
func (w walker) secret(s sort, text string) bool {
	return s != plainName && s.isSecret(text) && (w.depth == 0 || !variable.MatchString(text))
}

// walk redacts the fields of a map and the items of a list that stands in a field.
func (w walker) walk(value any, field string) (changed bool) {
	switch v := value.(type) {
	case map[string]any:
		changed = w.known(v)
		around := sortOf(field)
		for name, child := range v {
			switch {
			case isPublic(name):
				continue
			case name == "spec" && isDefinition(v): // all else in it is a schema
				spec, _ := child.(map[string]any)
				changed = w.walk(spec["conversion"], "conversion") || changed
				continue
			}
			if shown := w.shown(v, name, around); shown != "" {
				v[name], changed = shown, true
			} else {
				changed = w.walk(child, name) || changed
			}
		}
	case []any:
		around := sortOf(field)
		if strings.EqualFold(field, "secrets") { // their names
			around = plainName
		}
		command := secretOfCommand(v)
		for i, child := range v {
			text, isText := child.(string)
			switch {
			case !isText:
				changed = w.walk(child, field) || changed
			case !isRedacted(text) && (i == command || w.secret(around, text) || secretFlag(text) || i > 0 && secretFlagBefore(v[i-1], text) || w.holds(text)):
				v[i], changed = redacted(len(text)), true
			}
		}
	}
	return changed
}

// shown is what stands for the field of a map that must not be shown, "" for one that may. around is what the name of the map says.
func (w walker) shown(in map[string]any, name string, around sort) string {
	own := sortOf(name)
	if own != plainName && namesEntry(in, name) {
		own = plainName
	}
	switch v := in[name].(type) {
	case string:
		switch {
		case isRedacted(v):
			return ""
		case name == corev1.LastAppliedConfigAnnotation, name == tokenAnnotation, w.secret(own, v),
			around > headerName && !isPointer(name) && w.secret(around, v), w.holds(v):
			return redacted(len(v))
		}
	case int64, float64:
		if own == secretName {
			return "<redacted>"
		}
	case map[string]any:
		for key := range v { // names are shown where their values are not; in managedFields some are values
			if hasShape(key) || own != plainName && strings.HasPrefix(name, "f:") && strings.HasPrefix(key, "v:") {
				return "<redacted>"
			}
		}
	}
	return ""
}

// namesEntry tells whether a field such as secretKey names an entry of the Secret that the fields beside it point to.
func namesEntry(in map[string]any, field string) bool {
	return endsIn(words(field), "-secret-key") && slices.ContainsFunc(pointerFields, func(name string) bool { return in[name] != nil })
}

// redacted stands for a text of so many bytes.
func redacted(bytes int) string { return fmt.Sprintf("<redacted %d bytes>", bytes) }

// isRedacted tells what redacted returned, and what stands for a value that is no text.
func isRedacted(text string) bool {
	if text == "<redacted>" {
		return true
	}
	n, begins := strings.CutPrefix(text, "<redacted ")
	n, ends := strings.CutSuffix(n, " bytes>")
	return begins && ends && n != "" && strings.Trim(n, "0123456789") == ""
}

// empty redacts every value of the map in a field, and the field itself where it is none.
func empty(obj map[string]any, field string, length func(string) int) (changed bool) {
	value, has := obj[field]
	if !has || value == nil {
		return false
	}
	entries, ok := value.(map[string]any)
	if !ok {
		changed = value != "<redacted>"
		obj[field] = "<redacted>"
		return changed
	}
	for name, entry := range entries {
		text, isText := entry.(string)
		switch {
		case !isText:
			changed = changed || entry != nil
			entries[name] = "<redacted>"
		case !isRedacted(text):
			entries[name], changed = redacted(length(text)), true
		}
	}
	return changed
}

func textLen(s string) int { return len(s) }

// decodedLen is the length of what base64 stands for.
func decodedLen(s string) int {
	if data, err := base64.StdEncoding.DecodeString(s); err == nil {
		return len(data)
	}
	return len(s)
}
