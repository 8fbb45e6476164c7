package schema

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Relabelled reports that of a JSON value stored at another version only the apiVersion changes on
// its way to the storage version: with the new one it is settled, by the schemas of both versions,
// and RewriteManagedFields leaves it as it is. It returns the bytes and the object that it becomes,
// and the version it is stored at. False means that the object has to be rewritten to be sure.
func (c *CRD) Relabelled(value []byte, namespace, name string) (out []byte, obj map[string]any, from string, ok bool) {
	const prefix = `{"apiVersion":"`
	if len(value) < len(prefix) || string(value[:len(prefix)]) != prefix || c.Webhook() {
		return nil, nil, "", false
	}
	apiVersion, _, _ := strings.Cut(string(value[len(prefix):min(len(value), len(prefix)+maxAPIVersion)]), `"`)
	gv, err := schema.ParseGroupVersion(apiVersion)
	stored, storage := c.versions[gv.Version], c.versions[c.StorageVersion()]
	if err != nil || gv.Group != c.v1.Spec.Group || stored == nil || storage == nil || stored == storage {
		return nil, nil, "", false
	}
	before, after := stored.settled(), storage.settled()
	if before == nil || after == nil {
		return nil, nil, "", false
	}
	rest := value[len(prefix)+len(apiVersion):]
	out = make([]byte, 0, len(prefix)+len(after.apiVersion)+len(rest))
	out = append(append(append(out, prefix...), after.apiVersion...), rest...)
	relabelled := settledRoot{apiVersion: after.apiVersion, kind: before.kind, shape: before.shape, mode: before.mode}
	if !c.Settled(out, namespace, name) || !storage.twin(stored) && !relabelled.settles(out, namespace, name) {
		return nil, nil, "", false
	}
	r := reader{text: string(out)}
	obj, _ = r.value().(map[string]any)
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return out, obj, gv.Version, c.keepsManagedFields(list)
}

// twin reports that the schemas of two versions are the same.
func (v *Version) twin(other *Version) bool {
	twin, known := v.twins.Load(other)
	if !known {
		twin = reflect.DeepEqual(v.spec.Schema, other.spec.Schema)
		v.twins.Store(other, twin)
	}
	return twin.(bool)
}

// maxAPIVersion bounds the search for the end of an apiVersion.
const maxAPIVersion = 512

// reader decodes text that canonical has passed, as encoding.DecodeObject does. Strings share the
// memory of the text.
type reader struct {
	text string
	at   int
}

func (r *reader) value() any {
	switch r.text[r.at] {
	case '{':
		out := map[string]any{}
		for r.next('}') {
			name := r.str()
			r.at++ // the colon
			out[name] = r.value()
		}
		return out
	case '[':
		out := []any{}
		for r.next(']') {
			out = append(out, r.value())
		}
		return out
	case '"':
		return r.str()
	case 't':
		r.at += len("true")
		return true
	case 'f':
		r.at += len("false")
		return false
	case 'n':
		r.at += len("null")
		return nil
	}
	return r.number()
}

// next goes past an opening bracket or a comma, and past the end of the object or list.
func (r *reader) next(end byte) bool {
	if first := r.text[r.at]; first == '{' || first == '[' || first == ',' {
		r.at++
	}
	if r.text[r.at] == end {
		r.at++
		return false
	}
	return true
}

func (r *reader) str() string {
	start := r.at
	n := 1 + strings.IndexByte(r.text[start+1:], '"')
	if plain := r.text[start+1 : start+n]; strings.IndexByte(plain, '\\') < 0 {
		r.at = start + n + 1
		return plain
	}
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	out := ""
	_ = json.Unmarshal([]byte(r.text[start:r.at]), &out) // canonical text decodes
	return out
}

func (r *reader) number() any {
	start := r.at
	for strings.IndexByte("0123456789.eE+-", r.text[r.at]) >= 0 {
		r.at++
	}
	text := r.text[start:r.at]
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
