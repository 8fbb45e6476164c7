package redact

import (
	"encoding/base64"
	"fmt"
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
	return walk(obj, "") || changed
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
				meta[name], changed = mark(len(text)), true
			}
		}
	}
	return changed
}

// longestName is how long a type's name may be, in bytes: a DNS name and a little more.
const longestName = 320

// walk redacts a map, a list or a string that stands in a field; strings are replaced by their parents.
func walk(value any, field string) (changed bool) {
	switch v := value.(type) {
	case map[string]any:
		if is(v, "Secret") {
			changed = empty(v, "data", decodedLen) || changed
			changed = empty(v, "stringData", textLen) || changed
		}
		if is(v, "SecretList") { // its items need not say what they are
			items, _ := v["items"].([]any)
			for _, item := range items {
				if item, ok := item.(map[string]any); ok {
					changed = empty(item, "data", decodedLen) || changed
					changed = empty(item, "stringData", textLen) || changed
				}
			}
		}
		if is(v, "ConfigMap") && isHelm(v) {
			changed = empty(v, "data", textLen) || changed
		}
		if is(v, "ConfigMap") {
			changed = entries(v) || changed
		}
		changed = env(v, field) || changed
		for name, child := range v {
			text, isText := child.(string)
			switch {
			case !isText:
				changed = texts(child, name) || changed
				changed = walk(child, name) || changed
			case !isRedacted(text) && hidden(name, text):
				v[name], changed = mark(len(text)), true
			}
		}
	case []any:
		for i, child := range v {
			text, isText := child.(string)
			switch {
			case !isText:
				changed = walk(child, field) || changed
			case !isRedacted(text) && (holdsSecret(text) || secretFlag(text) || i > 0 && secretFlagBefore(v[i-1]) && isLiteral(text)):
				v[i], changed = mark(len(text)), true
			}
		}
	}
	return changed
}

// entries redacts entries of a ConfigMap that are environment variables of secrets, and binary ones that hold one.
func entries(obj map[string]any) (changed bool) {
	data, _ := obj["data"].(map[string]any)
	for name, value := range data {
		if text, isText := value.(string); isText && !isRedacted(text) && namedSecretVariable(name) && isLiteral(text) {
			data[name], changed = mark(len(text)), true
		}
	}
	binary, _ := obj["binaryData"].(map[string]any)
	for name, value := range binary {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && !isRedacted(text) && (holdsSecret(string(decoded)) || namedSecretVariable(name)) {
			binary[name], changed = mark(len(decoded)), true
		}
	}
	return changed
}

// texts redacts those that stand in a list or a map whose name says that they are secrets.
func texts(value any, field string) (changed bool) {
	if !namedSecret(field) {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if text, isText := child.(string); isText && !isRedacted(text) && isLiteral(text) {
				v[name], changed = mark(len(text)), true
			}
		}
	case []any:
		for i, child := range v {
			if text, isText := child.(string); isText && !isRedacted(text) && isLiteral(text) {
				v[i], changed = mark(len(text)), true
			}
		}
	}
	return changed
}

// hidden tells whether the text in a field must not be shown.
func hidden(field, text string) bool {
	return field == corev1.LastAppliedConfigAnnotation || field == tokenAnnotation || namedSecret(field) && isLiteral(text) || holdsSecret(text)
}

func mark(bytes int) string { return fmt.Sprintf("<redacted %d bytes>", bytes) }

// is tells whether an object is of a kind of the core group.
func is(obj map[string]any, kind string) bool {
	return obj["kind"] == kind && obj["apiVersion"] == "v1"
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
			entries[name], changed = mark(length(text)), true
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

// isHelm tells a release that Helm keeps in a ConfigMap: version 3 with its configmap driver, version 2 by default.
func isHelm(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels["owner"] == "helm" || labels["OWNER"] == "TILLER"
}

// env redacts the literal of an environment variable whose name says that it is a secret.
func env(v map[string]any, field string) bool {
	name, _ := v["name"].(string)
	value, isText := v["value"].(string)
	if !isText || !strings.Contains(strings.ToLower(field), "env") || isRedacted(value) || !namedSecretVariable(name) || !isLiteral(value) {
		return false
	}
	v["value"] = mark(len(value))
	return true
}
