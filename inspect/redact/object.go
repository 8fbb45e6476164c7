package redact

import (
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// tokenAnnotation holds the token of a pull secret in the clear (OpenShift until 4.15).
const tokenAnnotation = "openshift.io/token-secret.value"

// Object replaces, in place, what must not be shown of an object in JSON content, and says whether there was any.
func Object(obj map[string]any) (changed bool) {
	return walk(obj, "")
}

// walk redacts a map, a list or a string that stands in a field; strings are replaced by their parents.
func walk(value any, field string) (changed bool) {
	switch v := value.(type) {
	case map[string]any:
		if is(v, "Secret") {
			changed = empty(v, "data", decodedLen) || changed
			changed = empty(v, "stringData", textLen) || changed
		}
		if is(v, "ConfigMap") && isHelm(v) {
			changed = empty(v, "data", textLen) || changed
		}
		changed = env(v, field) || changed
		for name, child := range v {
			text, isText := child.(string)
			switch {
			case !isText:
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
