package schema

import "strings"

// maxPlainAnnotations bounds the annotations that plainMetadata accepts: a server accepts 256 KiB.
const maxPlainAnnotations = 200 << 10

// plainMetadata reports that validateMeta finds nothing wrong: usual fields only, with simple
// names. False means that it has to be asked.
func plainMetadata(metadata map[string]any, namespaced bool) bool {
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if !isPlainWord(name, 253, "-.") || namespaced != (namespace != "") {
		return false
	}
	for field, value := range metadata {
		ok := false
		switch field {
		case "name", "uid", "creationTimestamp", "managedFields":
			ok = true
		case "namespace":
			ok = namespace == "" || isPlainWord(namespace, 63, "-") && strings.ToLower(namespace) == namespace
		case "generation":
			n, isInteger := value.(int64)
			ok = isInteger && n >= 0
		case "labels":
			ok = isMapOf(value, func(value any) bool {
				text, ok := value.(string)
				return ok && (text == "" || isPlainWord(text, 63, "-_."))
			}) &&
				hasPlainKeys(value)
		case "annotations":
			total := 0
			ok = isMapOf(value, func(value any) bool { text, ok := value.(string); total += len(text); return ok }) &&
				hasPlainKeys(value) && total < maxPlainAnnotations && len(value.(map[string]any)) < 100
		}
		if !ok {
			return false
		}
	}
	return true
}

// hasPlainKeys accepts keys of labels and annotations: a name, or a domain and a name.
func hasPlainKeys(value any) bool {
	texts, _ := value.(map[string]any)
	for key := range texts {
		domain, name, found := strings.Cut(key, "/")
		if !found {
			domain, name = "x", key
		}
		if len(domain) > 253 || strings.ToLower(domain) != domain || !isPlainWord(name, 63, "-_.") {
			return false
		}
		for label := range strings.SplitSeq(domain, ".") {
			if !isPlainWord(label, 63, "-") {
				return false
			}
		}
	}
	return true
}

// isPlainWord accepts letters and digits of ASCII, and more in between.
func isPlainWord(text string, most int, between string) bool {
	if len(text) == 0 || len(text) > most {
		return false
	}
	for i := range len(text) {
		b := text[i]
		inside := i > 0 && i < len(text)-1 && strings.IndexByte(between, b) >= 0
		if !inside && !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9') {
			return false
		}
	}
	return true
}
