package redact

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/keys"
)

// tokenAnnotation holds the token of a pull secret in plain text (OpenShift until 4.15).
const tokenAnnotation = "openshift.io/token-secret.value"

// redactObject redacts secrets found by name or shape, then copies of these and of shared secrets.
func (w walker) redactObject(key []byte, obj map[string]any, shared *Shared) (changed bool) {
	own, met := known{}, false
	w.note = noter(own.add)
	if len(shared.index) > 0 {
		w.others, w.binary = &others{shared, &met}, shared.isBinary
	}
	changed = w.redactOwn(key, obj)
	w.note, w.others, w.binary = nil, nil, false
	if w.clean = shared.clean; len(own) > 0 {
		w.clean = clean{}
	}
	return (met || len(own) > 0) && w.redactKnown(obj, both{own, shared}) || changed
}

// redactOwn redacts the secrets of an object itself, found by name, shape or kind; secrets of other
// objects stay.
func (w walker) redactOwn(key []byte, obj map[string]any) (changed bool) {
	if keys.HoldsCredentials(key) {
		changed = w.redactCredentials(obj)
	}
	return w.walk(obj, "") || changed
}

// redactCredentials redacts an object stored among credentials. Type and metadata stay, without the
// annotations of a damaged object.
func (w walker) redactCredentials(obj map[string]any) (changed bool) {
	changed = w.redactSecret(obj)
	for name, value := range inOrder(obj) {
		switch name {
		case "apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData":
			continue
		}
		if value != nil && !isRedacted(value) {
			obj[name], changed = w.hidden(Literal, value), true
		}
	}
	for _, name := range []string{"apiVersion", "kind", "type"} {
		if text, isText := obj[name].(string); obj[name] != nil && !isRedacted(obj[name]) &&
			(!isText || len(text) > longestName || holdsSecret(text)) {
			obj[name], changed = w.hidden(Whole, obj[name]), true
		}
	}
	meta, _ := obj["metadata"].(map[string]any)
	if !is(obj, "Secret") {
		changed = w.redactEntries(meta, "annotations", Literal) || changed
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		changed = w.redactIf(meta, name, func(text string) bool {
			_, err := time.Parse(time.RFC3339, text)
			return err != nil
		}) || changed
	}
	return changed
}

// longestName bounds the name of a type, in bytes: slightly more than a DNS name.
const longestName = 320

type walker struct {
	texts    int     // number of enclosing texts; a parsed text is content too
	with     Replace // nil: replace with lengths
	unpacker *Unpacker
	note     func(value any, named bool) // called for each secret; may be nil
	plain    bool                        // the secret is an entry of a Secret, not found by name
	most     int                         // length limit of secrets to split and to search for credentials
	find     func(text string) bool      // replaces the search of holds if not nil
	names    names
	clean    clean // texts known to hold no secret
	others   *others
	binary   bool // find or others look for other bytes than ASCII too
}

func newWalker(with Replace) walker {
	return walker{with: with, unpacker: &Unpacker{left: mostUnpacked}, most: longestTaken, names: classes()}
}

func (w walker) inner() walker {
	w.texts++
	w.plain = false // found by name or shape
	return w
}

// isSecret reports whether text is a secret under a name of class s. In a parsed text "$NAME" is a
// variable.
func (w walker) isSecret(s nameClass, text string) bool {
	return s != plainName && s.isSecret(text) && (w.texts == 0 || !variable().MatchString(text))
}

// walk redacts the fields of a map, or the items of a list, in a field.
func (w walker) walk(value any, field string) (changed bool) {
	switch v := value.(type) {
	case map[string]any:
		changed = w.redactKind(v)
		around, definition := w.names.class(field), isDefinition(v) // before its texts are hidden
		for name, child := range inOrder(v) {
			w.others.lookAtKey(w, name)
			switch {
			case isPublic(name):
				w.others.meet()
				continue
			case name == "spec" && definition: // all other fields are a schema
				w.others.meet()
				spec, _ := child.(map[string]any)
				changed = w.walk(spec["conversion"], "conversion") || changed
				continue
			}
			if shown := w.redactedField(v, name, around); shown != nil {
				v[name], changed = shown, true
			} else {
				changed = w.walk(child, name) || changed
			}
		}
	case []any:
		around := w.names.class(field)
		if strings.EqualFold(field, "secrets") { // names of Secrets
			around = plainName
		}
		command, inCommand := secretOfCommand(v)
		for i, child := range v {
			text, isText := child.(string)
			if !isText {
				changed = w.walk(child, field) || changed
				continue
			}
			secret := i == command || w.isSecret(around, text) || i > 0 && secretFlagBefore(v[i-1], text)
			switch {
			case isRedacted(text):
			case secret:
				if i == command && w.note != nil {
					w.note(inCommand, true)
				}
				v[i], changed = w.hidden(Literal, text), true
			case w.holds(text), secretFlag(text): // holds has noted the value
				v[i], changed = w.hidden(mixed, text), true
			}
		}
	}
	return changed
}

// redactedField returns the redacted form of a field, nil if the field may be shown. around is the
// class of the map's name.
func (w walker) redactedField(in map[string]any, name string, around nameClass) any {
	own := w.names.class(name)
	if own != plainName && namesEntry(in, name) {
		own = plainName
	}
	switch v := in[name].(type) {
	case string:
		switch {
		case isRedacted(v):
			return nil
		case name == corev1.LastAppliedConfigAnnotation:
			return w.hidden(applied, v)
		case name == tokenAnnotation, w.isSecret(own, v), around > headerName && !isPointer(name) &&
			w.isSecret(around, v):
			return w.hidden(Literal, v)
		case w.holds(v):
			return w.hidden(mixed, v)
		}
	case int64, float64:
		if own == secretName {
			return w.hidden(Literal, v)
		}
	case map[string]any:
		walk := func(w walker, value any) bool { return w.walk(value, strings.TrimPrefix(name, "f:")) }
		return w.hiddenKeys(v, walk, func(key string, edited bool) bool {
			return hasShape(key) || !edited && w.holdsMember(key, walk)
		})
	}
	return nil
}

// namesEntry reports whether a field such as secretKey names an entry of the Secret next to it.
func namesEntry(in map[string]any, field string) bool {
	return endsIn(words(field), "-secret-key") && slices.ContainsFunc(tables().pointerFields,
		func(name string) bool { return in[name] != nil })
}

func redacted(bytes int) string { return "<redacted " + strconv.Itoa(bytes) + " bytes>" }

func (w walker) redactIf(in map[string]any, field string, isSecret func(text string) bool) bool {
	text, isText := in[field].(string)
	if !isText || isRedacted(text) || !isSecret(text) {
		return false
	}
	in[field] = w.hidden(Literal, text)
	return true
}

// Hidden reports whether Object wrote a value in place of a secret.
func Hidden(value any) bool { return isRedacted(value) }

// isRedacted reports whether a value is a redacted form.
func isRedacted(value any) bool {
	text, isText := value.(string)
	if _, is := value.(replaced); is || text == "<redacted>" {
		return true
	}
	n, begins := strings.CutPrefix(text, "<redacted ")
	n, ends := strings.CutSuffix(n, " bytes>")
	return isText && begins && ends && n != "" && strings.Trim(n, "0123456789") == ""
}

// redactEntries redacts every value of the map in a field, or a field of a wrong type.
func (w walker) redactEntries(obj map[string]any, field string, part Part) (changed bool) {
	entries, isMap := obj[field].(map[string]any)
	if !isMap {
		if obj[field] == nil || isRedacted(obj[field]) {
			return false
		}
		obj[field] = w.hidden(Whole, obj[field])
		return true
	}
	for name, entry := range inOrder(entries) {
		own, w := part, w
		w.plain = part != Whole && is(obj, "Secret") && classify(name) <= headerName && !isKeyFile(name)
		if _, isText := entry.(string); !isText {
			own = Whole
		}
		if entry != nil && !isRedacted(entry) {
			entries[name], changed = w.hidden(own, entry), true
		}
	}
	return changed
}
