package compare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/snapshot"
)

// value is a stored value for a comparison.
type value struct {
	kind    schema.GroupKind // empty if it is no readable object
	content map[string]any   // the object with its secrets; nil if undecodable
	note    string           // why it is compared by its bytes, at least in part, or is invalid
	whole   view             // shown as a short text
	hide    *redact.Shared   // nil for nothing
	key     []byte
}

// bodyField holds the bytes of an object with only its metadata decoded.
const bodyField = "(body)"

// hiding returns a function for the redactor of some snapshots, which is computed at the first
// call. If changes are only counted, secrets of other objects are not needed.
func (o *Options) hiding(ctx context.Context, sides ...*inspect.Reader) func() (*redact.Shared, error) {
	return sync.OnceValues(func() (*redact.Shared, error) {
		switch {
		case o.ShowSecrets:
			return nil, nil
		case o.CountOnly:
			return redact.NewShared(), nil
		}
		return inspect.SecretsOf(ctx, sides...)
	})
}

func read(ctx context.Context, r *inspect.Reader, rec *snapshot.Record, hide *redact.Shared) (v value, err error) {
	e, err := r.Entry(ctx, rec)
	if err != nil {
		return v, err
	}
	return readEntry(e, hide), nil
}

func readEntry(e *inspect.Entry, hide *redact.Shared) value {
	v := value{hide: hide, key: e.Key}
	if e.Undecryptable != nil {
		by, _ := encoding.Encryption(e.Stored)
		v.note = "encrypted by " + by + "; compared by its bytes"
		v.whole = view{Raw: string(e.Stored), Shown: fmt.Sprintf("<encrypted by %s, %d bytes>", by, len(e.Stored))}
		return v
	}
	var err error
	v.content, err = native.Decode(e.Value)
	if unknown := err; errors.Is(err, native.ErrUnknownKind) {
		if v.content, err = native.Metadata(e.Value); err == nil {
			v.note = unknown.Error() + "; compared by its bytes but for its metadata"
			v.content[bodyField] = string(e.Value)
		}
	}
	if err != nil {
		v.content = nil
		v.readRaw(e)
		return v
	}
	v.kind = schema.FromAPIVersionAndKind(v.object().GetAPIVersion(), v.object().GetKind()).GroupKind()
	v.whole = view{Raw: v.content, Shown: fmt.Sprintf("<%s, %d bytes>", v.kind, len(e.Stored))}
	if err := e.CheckKind(); err != nil {
		v.note = "undecodable: " + err.Error()
	}
	return v
}

// readRaw reads an undecodable value, or a value other than an object.
func (v *value) readRaw(e *inspect.Entry) {
	text := string(e.Value)
	v.note = "no object; compared by its bytes"
	v.whole = view{Raw: text, Shown: fmt.Sprintf("<%d bytes>", len(text))}
	switch {
	case encoding.Detect(e.Value) != encoding.FormatUnknown: // a broken value may be a Secret too
		v.note = "does not decode; compared by its bytes"
	case v.hide == nil && utf8.ValidString(text), isNote(text) && (v.hide == nil || !v.hide.Value(e.Key, e.Value)):
		v.whole.Shown = text
	}
}

// isNote reports whether text is short, such as a leader's name, and no base64 of an object.
func isNote(text string) bool {
	const longest = 256
	return len(text) <= longest && utf8.ValidString(text) && !strings.HasPrefix(text, "azhz") // "k8s" in base64
}

// object gives access to the metadata; it is empty for other values.
func (v value) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: v.content}
}

// shown returns the view of an object. Redaction is slow, so only changed objects are redacted.
func (v value) shown() view {
	body, partial := v.content[bodyField].(string)
	if v.hide == nil && !partial {
		return plain(v.content)
	}
	shown := runtime.DeepCopyJSON(v.content)
	if v.hide != nil {
		v.hide.Object(v.key, shown)
	}
	if partial {
		shown[bodyField] = fmt.Sprintf("<%d bytes>", len(body))
	}
	return view{Raw: v.content, Shown: shown}
}

// diff returns the changes from v to w, and the number of folded noise changes, 0 with all. With
// count, changes are not redacted.
func (v value) diff(w value, all, count bool) (changes []Change, folded int) {
	if v.content == nil || w.content == nil {
		return compare(v.whole, w.whole, w.kind, all)
	}
	changes, folded = compare(plain(v.content), plain(w.content), w.kind, all)
	if count || len(changes) == 0 {
		return changes, folded
	}
	changes, folded = compare(v.shown(), w.shown(), w.kind, all)
	if v.hide != nil {
		v.hideQuotes(w, v.hide.Quoted(), changes)
	}
	return changes, folded
}

// hideQuotes hides secrets of both objects in the values of changes: copies may be in any field.
func (v value) hideQuotes(w value, q *redact.Secrets, changes []Change) {
	q.Add(v.key, v.content)
	q.Add(w.key, w.content)
	for i := range changes {
		c := &changes[i]
		for _, value := range []*any{&c.Old, &c.New} {
			if shown, changed := hideQuotes(q, *value); changed {
				*value, c.Redacted = shown, true
			}
		}
	}
}

func hideQuotes(q *redact.Secrets, value any) (shown any, changed bool) {
	switch v := value.(type) {
	case string:
		text := q.Hide(v)
		return text, text != v
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			var is bool
			out[i], is = hideQuotes(q, child)
			changed = changed || is
		}
		return out, changed
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			var is bool
			out[name], is = hideQuotes(q, child)
			changed = changed || is
		}
		return out, changed
	}
	return value, false
}

func compare(a, b view, kind schema.GroupKind, all bool) (changes []Change, folded int) {
	found := differences(a, b)
	kept := found
	if !all {
		kept = slices.DeleteFunc(found, func(c Change) bool { return isNoiseChange(kind, c) })
	}
	for i := range kept {
		for _, value := range []*any{&kept[i].Old, &kept[i].New} {
			if isDeep(*value, maxDepth) {
				*value, kept[i].Redacted = fmt.Sprintf("<nested more than %d levels>", maxDepth), true
			}
		}
	}
	return kept, len(found) - len(kept)
}

func isDeep(value any, most int) bool {
	children, _ := value.([]any)
	if fields, isMap := value.(map[string]any); isMap {
		children = slices.Collect(maps.Values(fields))
	}
	return slices.ContainsFunc(children, func(child any) bool { return most == 0 || isDeep(child, most-1) })
}

// Writer is an entry of managedFields, new or with a new time at a step.
type Writer struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	APIVersion  string `json:"apiVersion,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, as stored
}

// writers returns the entries missing in before; for the oldest record, the latest entries.
func writers(before, now value, what What) []Writer {
	if what == Oldest {
		return newest(managers(now.object()))
	}
	old := map[Writer]bool{}
	if what == Updated {
		for _, w := range managers(before.object()) {
			old[w] = true
		}
	}
	return slices.DeleteFunc(managers(now.object()), func(w Writer) bool { return old[w] })
}

func newest(all []Writer) []Writer {
	latest := ""
	for _, w := range all {
		latest = max(latest, w.Time)
	}
	return slices.DeleteFunc(all, func(w Writer) bool { return w.Time != latest })
}

func managers(o metav1.Object) (out []Writer) {
	for _, entry := range o.GetManagedFields() {
		w := Writer{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource,
			APIVersion: entry.APIVersion}
		if entry.Time != nil {
			w.Time = entry.Time.UTC().Format("2006-01-02T15:04:05Z")
		}
		out = append(out, w)
	}
	return out
}
