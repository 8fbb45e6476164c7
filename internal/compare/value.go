package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/internal/differ"
	"github.com/etcdshift/etcdshift/internal/native"
)

// Value is a stored value that can be compared.
type Value struct {
	GVK     schema.GroupVersionKind // empty if it is no readable object
	Content map[string]any          // the object with its secrets; nil if it could not be decoded
	Note    string                  // why it is compared by its bytes, as a whole or in part; "" for a decoded object
	view    differ.View             // of a value that is no object
	bytes   int
	redact  bool
	key     []byte
}

// bodyField holds the bytes of an object whose metadata alone is known.
const bodyField = "(body)"

// Read reads the value of an entry. With showSecrets nothing is redacted.
func Read(e *inspect.Entry, showSecrets bool) Value {
	v := Value{bytes: len(e.Stored)}
	if e.Undecryptable != nil {
		by, _ := encoding.Encryption(e.Stored)
		v.Note = "encrypted by " + by + "; compared by its bytes"
		v.view = differ.View{Raw: string(e.Stored), Shown: fmt.Sprintf("<encrypted by %s, %d bytes>", by, len(e.Stored))}
		return v
	}
	content, err := native.Decode(e.Value)
	if errors.Is(err, native.ErrUnknownKind) {
		if content, err = native.Metadata(e.Value); err == nil {
			v.Note = "of a kind this build does not know; compared by its bytes but for its metadata"
			content[bodyField] = string(e.Value)
		}
	}
	if err != nil {
		v.readRaw(e, showSecrets)
		return v
	}
	v.Content = content
	v.GVK = schema.FromAPIVersionAndKind(v.Object().GetAPIVersion(), v.Object().GetKind())
	v.redact, v.key = !showSecrets, e.Key
	return v
}

// shown returns the view of an object. Redacting takes longest, so it is for changed objects only.
func (v Value) shown() differ.View {
	body, partial := v.Content[bodyField].(string)
	if !v.redact && !partial {
		return differ.Plain(v.Content)
	}
	shown := runtime.DeepCopyJSON(v.Content)
	if v.redact {
		redact.Object(v.key, shown)
	}
	if partial {
		shown[bodyField] = fmt.Sprintf("<%d bytes>", len(body))
	}
	return differ.View{Raw: v.Content, Shown: shown}
}

// readRaw reads a value that is no object, or does not decode.
func (v *Value) readRaw(e *inspect.Entry, showSecrets bool) {
	text := string(e.Value)
	shown := fmt.Sprintf("<%d bytes>", len(text))
	v.Note = "no object; compared by its bytes"
	switch {
	case encoding.Detect(e.Value) != encoding.FormatUnknown: // what is broken may be a Secret all the same
		v.Note = "does not decode; compared by its bytes"
	case showSecrets && utf8.ValidString(text), isNote(text) && !redact.Value(e.Key, e.Value):
		shown = text
	}
	v.view = differ.View{Raw: text, Shown: shown}
}

// isNote reports whether text is short, such as a leader's name, and no base64 of an object.
func isNote(text string) bool {
	const longest = 256
	return len(text) <= longest && utf8.ValidString(text) && !strings.HasPrefix(text, "azhz") // "k8s" in base64
}

// Object gives access to the metadata; it is empty for a value that is no object.
func (v Value) Object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: v.Content}
}

// Diff returns the changes from v to w, and the number folded away as noise, 0 with all.
func (v Value) Diff(w Value, all bool) (changes []differ.Change, folded int) {
	if v.Content == nil || w.Content == nil {
		return v.diff(w, all)
	}
	if changes, folded = v.diff(w, all); len(changes) == 0 {
		return changes, folded
	}
	return compare(v.shown(), w.shown(), w.GVK.GroupKind(), all)
}

// diff is Diff with all secrets in the changes.
func (v Value) diff(w Value, all bool) (changes []differ.Change, folded int) {
	kind := w.GVK.GroupKind()
	switch {
	case v.Content == nil && w.Content == nil:
		return compare(v.view, w.view, kind, all)
	case v.Content == nil || w.Content == nil: // what can be read against what cannot
		return compare(differ.View{Raw: v.raw(), Shown: v.described()}, differ.View{Raw: w.raw(), Shown: w.described()}, kind, all)
	}
	return compare(differ.Plain(v.Content), differ.Plain(w.Content), kind, all)
}

func compare(a, b differ.View, kind schema.GroupKind, all bool) (changes []differ.Change, folded int) {
	found := differ.Diff(a, b)
	kept := found
	if !all {
		kept = slices.DeleteFunc(found, func(c differ.Change) bool { return differ.Noise(kind, c) })
	}
	for i := range kept {
		for _, value := range []*any{&kept[i].Old, &kept[i].New} {
			if isDeep(*value, mostLevels) {
				*value, kept[i].Redacted = fmt.Sprintf("<nested more than %d levels>", mostLevels), true
			}
		}
	}
	return kept, len(found) - len(kept)
}

// mostLevels bounds the nesting of a shown value: a hostile one has 10,000 levels, each indented.
const mostLevels = 100

func isDeep(value any, most int) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			if most == 0 || isDeep(child, most-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(child any) bool { return most == 0 || isDeep(child, most-1) })
	}
	return false
}

func (v Value) raw() any {
	if v.Content == nil {
		return v.view.Raw
	}
	return v.Content
}

// described returns the value as a whole in a few words.
func (v Value) described() any {
	if v.Content == nil {
		return v.view.Shown
	}
	return fmt.Sprintf("<%s, %d bytes>", v.GVK.GroupKind(), v.bytes)
}
