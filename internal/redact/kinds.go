package redact

import (
	"slices"
	"strings"
)

// redactKind redacts secrets recognized by the kind of a map or by neighboring fields.
func (w walker) redactKind(v map[string]any) (changed bool) {
	switch {
	case is(v, "Secret"):
		changed = w.redactSecret(v)
	case is(v, "SecretList"): // items may lack a kind
		items, _ := v["items"].([]any)
		for _, item := range items {
			secret, _ := item.(map[string]any)
			changed = w.redactSecret(secret) || changed
		}
	case is(v, "ConfigMap"):
		if isHelm(v) {
			changed = w.redactEntries(v, "data", Literal)
		}
		changed = redactFiles(w, v) || changed
	}
	if auths, isMap := v["auths"].(map[string]any); isMap { // in a docker configuration
		for _, registry := range inOrder(auths) {
			registry, _ := registry.(map[string]any)
			changed = w.redactFields(registry, "auth") || changed
		}
	}
	if v["kty"] != nil { // a JSON web key, RFC 7518
		changed = w.redactFields(v, "d", "k", "p", "q", "dp", "dq", "qi") || changed
	}
	return redactBeside(w, v) || changed
}

func (w walker) redactFields(v map[string]any, fields ...string) (changed bool) {
	for _, field := range fields {
		changed = w.redactIf(v, field, isLiteral) || changed
	}
	return changed
}

// redactBeside redacts the value next to the name of a secret, as in environment variables and
// headers.
func redactBeside(w walker, v map[string]any) (changed bool) {
	if v["value"] == nil && v["default"] == nil {
		return false
	}
	for _, field := range []string{"name", "key", "type"} {
		name, _ := v[field].(string)
		s := w.names.class(name)
		if s == headerName { // the entry is a header
			s = tokenName
		}
		for _, field := range []string{"value", "default"} {
			changed = w.redactIf(v, field, func(text string) bool { return w.isSecret(s, text) }) || changed
		}
	}
	return changed
}

// isPublic reports whether a field has names such as "password" without secret values: a schema, or
// the encrypted data of a SealedSecret.
func isPublic(field string) bool { return field == "openAPIV3Schema" || field == "encryptedData" }

// isDefinition reports whether the spec of an object is a schema.
func isDefinition(v map[string]any) bool {
	version, _ := v["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	return v["kind"] == "CustomResourceDefinition" && group == "apiextensions.k8s.io" ||
		v["kind"] == "APIResourceSchema" && group == "apis.kcp.io"
}

func (w walker) redactSecret(v map[string]any) (changed bool) {
	changed = w.redactEntries(v, "data", Data)
	return w.redactEntries(v, "stringData", Literal) || changed
}

// redactFiles redacts ConfigMap entries with the names of private key files, and binary entries
// with a secret.
func redactFiles(w walker, obj map[string]any) (changed bool) {
	data, _ := obj["data"].(map[string]any)
	for name := range inOrder(data) {
		changed = isKeyFile(name) && w.redactIf(data, name, isLiteral) || changed
	}
	binary, _ := obj["binaryData"].(map[string]any)
	for name, value := range binary {
		text, _ := value.(string)
		decoded, is := fromBase64(text)
		if is && !isRedacted(text) && (isKeyFile(name) || classify(name).isSecret(text) ||
			holdsSecret(decoded)) {
			binary[name], changed = w.hidden(Data, text), true
		}
	}
	return changed
}

// is reports whether an object has a kind of the core group.
func is(obj map[string]any, kind string) bool {
	return obj["kind"] == kind && obj["apiVersion"] == "v1"
}

// isHelm reports whether a ConfigMap is a Helm release: from the configmap driver of Helm 3, or
// from Helm 2.
func isHelm(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels["owner"] == "helm" || labels["OWNER"] == "TILLER"
}

// secretFlag reports whether a word of a command line is a flag with a secret.
func secretFlag(word string) bool {
	name, value, hasValue := strings.Cut(word, "=")
	return hasValue && strings.HasPrefix(word, "-") && classify(name).isSecret(value)
}

// secretFlagBefore reports whether value is the secret of the flag before it.
func secretFlagBefore(word any, value string) bool {
	name, isText := word.(string)
	return isText && strings.HasPrefix(name, "-") && !strings.HasPrefix(value, "--") && classify(name).isSecret(value)
}

// secretOfCommand returns the index of the word with a password in a command line, -1 for none, and
// the password: "x" for "-px".
func secretOfCommand(list []any) (index int, secret string) {
	var line strings.Builder
	ends := make([]int, len(list))
	for i, item := range list {
		word, _ := item.(string)
		line.WriteString(word + " ")
		ends[i] = line.Len()
	}
	begin := secretInCommand(line.String())
	if begin < 0 {
		return -1, ""
	}
	index = slices.IndexFunc(ends, func(end int) bool { return begin < end })
	return index, line.String()[begin : ends[index]-1]
}

// secretInCommand returns the offset of the secret in a command line, -1 for none.
func secretInCommand(line string) int {
	if !traitsOf(line).marks { // most often
		return -1
	}
	for _, s := range tables().commands {
		if s.fits(line) {
			return s.pattern().FindStringIndex(line)[1] - 1
		}
	}
	return -1
}
