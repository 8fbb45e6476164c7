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

// Told is what the bytes of a JSON value tell of its object.
type Told struct {
	Version string   // at which it is stored
	Managed []string // other versions than the storage version that managedFields name, each once

	crd      *CRD
	value    []byte
	accepted bool   // but for CEL rules
	entries  []byte // the text of managedFields, nil for none
}

// Tell looks at a JSON value in one pass for each of its schemas, and decodes nothing. It is sure
// that the object is the one its key names, that Rewrite changes nothing but the apiVersion, and
// that RelabelManagedFields without all changes nothing. False means that the object has to be
// decoded to be sure: the answer is never wrong, and "no" only for few objects that a server wrote,
// such as those with nulls or with unusual escapes.
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

// Accepts reports that bytes tell all of Tell, and that servers accept writes of the object.
func (c *CRD) Accepts(ctx context.Context, value []byte, namespace, name string) bool {
	told, ok := c.Tell(value, namespace, name)
	return ok && told.Accepted(ctx)
}

// maxAccepted is the size of the values that Accepted tells: no annotations of one are too large.
const maxAccepted = 200 << 10

// Accepted reports that Validate, Refused and CheckApply find nothing wrong with the object once it
// is rewritten. It decodes objects only where the schema has CEL rules. False means that the object
// has to be decoded to be sure.
func (t *Told) Accepted(ctx context.Context) bool {
	storage := t.crd.versions[t.crd.StorageVersion()]
	compiled, err := storage.validators()
	if err != nil || !t.accepted || !compiled.ruled {
		return err == nil && t.accepted
	}
	obj, _, err := encoding.DecodeObject(t.value)
	if err != nil {
		return false
	}
	obj["apiVersion"] = t.crd.storageAPIVersion()
	structural, _ := storage.structural()
	meter := bounded.MeterOf(ctx)
	if !meter.Start() {
		return false
	}
	created := ruleCheck{ctx, celconfig.PerCallLimit} // others are decoded, and have the budget of a server
	met := created.meets(compiled.created(), obj)
	if meter.Add(compiled.name, celconfig.PerCallLimit-created.budget); !met {
		return false
	}
	return compiled.asOnCreates || len(compiled.rules(ctx, nil, structural, touch(obj), obj)) == 0
}

// Relabelled returns the bytes of the object at the storage version. False means that its
// managedFields have to be rewritten to be sure.
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

// apiVersionHead is what a value begins with that a server wrote.
const apiVersionHead = `{"apiVersion":"`

// versionIn is the version in the apiVersion that a value begins with, nil for one not listed.
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

// twin reports that the schemas of two versions are the same.
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

// isPlainName accepts DNS names of at most so many letters; a label has no dot.
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

// maxManagers bounds the versions that managedFields may name.
const maxManagers = 4

// versionSet is a small set of versions in the order of their addition.
type versionSet [maxManagers]*Version

// add is false if the set is full.
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
