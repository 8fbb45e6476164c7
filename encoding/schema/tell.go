package schema

import (
	"bytes"
	"context"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/bounded"
)

// Told holds the facts about an object found in the bytes of its JSON value.
type Told struct {
	Version string   // the stored version
	Managed []string // versions in managedFields other than the storage version, each once

	crd      *CRD
	value    []byte
	accepted bool   // servers accept the object, apart from CEL rules
	entries  []byte // the text of managedFields, or nil
}

// Tell scans a JSON value in one pass for each of its schemas, without decoding. ok means that the
// object has the given namespace and name, that Rewrite changes only the apiVersion, and that
// RelabelManagedFields without all changes nothing. False means that only decoding gives a sure
// answer. True is never wrong; false is rare for objects written by a server, for example with
// nulls or unusual escapes.
func (c *CRD) Tell(value []byte, namespace, name string) (told Told, ok bool) {
	stored, storage := versionIn(c, value), c.versions[c.StorageVersion()]
	if stored == nil || storage == nil || stored != storage && c.Webhook() || c.isNamespaced() != (namespace != "") {
		return Told{}, false
	}
	w := walker{crd: c, stored: stored.spec.Name, namespace: namespace, name: name}
	if !w.passes(value, storage) || !w.settled {
		return Told{}, false
	}
	told = Told{
		Version: stored.spec.Name, crd: c, value: value, accepted: w.valid, entries: w.entries,
	}
	typed, managed := w.typed, w.versions
	if !storage.twin(stored) && (!w.passes(value, stored) || !w.settled) {
		return Told{}, false
	}
	for _, v := range managed {
		if v == nil || v == storage {
			continue
		}
		told.Managed = append(told.Managed, v.spec.Name)
		switch {
		case c.Webhook():
			ok = v.checked() != nil
		case storage.twin(v):
			ok = typed
		default:
			ok = w.passes(value, v) && w.typed
		}
		if !ok {
			return Told{}, false
		}
	}
	return told, true
}

// Accepts reports whether Tell succeeds and servers accept writes of the object.
func (c *CRD) Accepts(ctx context.Context, value []byte, namespace, name string) bool {
	told, ok := c.Tell(value, namespace, name)
	return ok && told.Accepted(ctx)
}

// maxAccepted is the maximum size of the values that Accepted decides: their annotations cannot be
// too large.
const maxAccepted = 200 << 10

// Accepted reports whether Validate, Refused and CheckApply find no fault in the rewritten object.
// Accepted decodes only objects whose schema has CEL rules. False means that only decoding gives a
// sure answer.
func (t *Told) Accepted(ctx context.Context) bool {
	storage := t.crd.versions[t.crd.StorageVersion()]
	compiled, err := storage.validators()
	if err != nil || !t.accepted || !compiled.ruled {
		return err == nil && t.accepted
	}
	meter := bounded.MeterOf(ctx)
	if !meter.Start() {
		return false
	}
	obj, _, err := encoding.DecodeObject(t.value)
	if err != nil {
		return false
	}
	obj["apiVersion"] = t.crd.storageAPIVersion()
	structural, _ := storage.structural()
	created := ruleCheck{ctx, celconfig.PerCallLimit} // other objects are decoded, with the budget of a server
	met := created.meets(compiled.created(), obj)
	if meter.Add(compiled.name, celconfig.PerCallLimit-created.budget); !met {
		return false
	}
	return compiled.asOnCreates || len(compiled.rules(ctx, nil, structural, touch(obj), obj)) == 0
}

// Relabelled returns the bytes of the object at the storage version. False means that the caller
// must rewrite its managedFields.
func (t *Told) Relabelled() (out []byte, ok bool) {
	if t.entries != nil {
		content, err := encoding.DecodeJSON(t.entries)
		if list, _ := content.([]any); err != nil || !keepsManagedFields(t.crd, list) {
			return nil, false
		}
	}
	at := len(apiVersionHead) + len(t.crd.prefix)
	out = append(append(make([]byte, 0, len(t.value)+64), t.value[:at]...), t.crd.StorageVersion()...)
	return append(out, t.value[at+len(t.Version):]...), true
}

// apiVersionHead is the beginning of a value written by a server.
const apiVersionHead = `{"apiVersion":"`

// versionIn returns the version in the apiVersion at the beginning of a value, or nil for an
// unlisted version.
func versionIn(c *CRD, value []byte) *Version {
	const most = 512
	rest, _ := bytes.CutPrefix(value[:min(len(value), most)], []byte(apiVersionHead))
	rest, found := bytes.CutPrefix(rest, []byte(c.prefix))
	version, _, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return nil
	}
	return c.versions[string(version)]
}

func (c *CRD) isNamespaced() bool { return c.v1.Spec.Scope == apiextensionsv1.NamespaceScoped }

// twin reports whether two versions have the same schema.
func (v *Version) twin(other *Version) bool {
	if v == other {
		return true
	}
	twin, known := v.twins.Load(other)
	if !known {
		twin = reflect.DeepEqual(v.spec.Schema, other.spec.Schema)
		v.twins.Store(other, twin)
	}
	return twin.(bool)
}

// isPlainName reports whether name is a DNS name of at most most letters, with dots only if dots is
// set.
func isPlainName[T string | []byte](name T, most int, dots bool) bool {
	for i := range len(name) {
		inside := i > 0 && i < len(name)-1
		if b := name[i]; !isEdge(b) && !(inside && (b == '-' || dots && b == '.')) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= most
}

func isEdge(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// maxManagers is the maximum number of different versions in the managedFields of a value; values
// with more versions must be decoded.
const maxManagers = 4

// versionSet is a small set of versions in the order of their addition.
type versionSet [maxManagers]*Version

// add returns false if the set is full.
func (s *versionSet) add(v *Version) bool {
	if slices.Contains(s[:], v) {
		return true
	}
	i := slices.Index(s[:], nil)
	if i >= 0 {
		s[i] = v
	}
	return i >= 0
}
