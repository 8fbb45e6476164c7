package calico

import (
	"bytes"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// remapReferences makes the owner references of all objects but the records just written end at v3
// records. v1 records stay as they are.
func (m *run) remapReferences() {
	m.eachOther(mayReferToCalico, func(entry *transform.Entry, namespace string) {
		e := referenceEdit{run: m, namespace: namespace}
		m.Failed(m.View.EditOwners(m.Ctx, entry, e.edit, func() bool { return e.report(entry.Key) }))
	})
}

// mayReferToCalico says whether a value may hold a reference to a Calico object: one of neither
// group does not. An encrypted one may.
func mayReferToCalico(entry *transform.Entry) bool {
	return bytes.Contains(entry.Value, []byte(groupV3)) || // it is a part of groupV1
		encoding.Detect(entry.Value) == encoding.FormatEncrypted
}

// beginOthers begins to look for the objects of eachOther, beside all that comes before it.
func (m *run) beginOthers() *transform.Early {
	v1 := groupDir(m.Keys, groupV1)
	unreadable := func(entry *transform.Entry) bool {
		_, err := entry.ParseKey()
		return err == nil && entry.Check() != nil
	}
	return m.View.PickEarly(m.Ctx, m.Keys.Prefix, func(entry *transform.Entry) bool {
		return !bytes.HasPrefix(entry.Key, v1) && (unreadable(entry) || mayReferToCalico(entry))
	})
}

// eachOther calls do for the objects that concern picks among those that may refer to Calico, but
// for v1 records and the v3 records just written. It refuses those that no API server can read as
// the object their key names.
func (m *run) eachOther(concern func(entry *transform.Entry) bool, do func(entry *transform.Entry, namespace string)) {
	v3 := groupDir(m.Keys, groupV3)
	for entry, err := range m.others.All(m.Ctx) {
		if m.Failed(err) {
			return
		}
		if bytes.HasPrefix(entry.Key, v3) && m.wrote(entry) {
			continue
		}
		key, err := entry.ParseKey()
		if (err != nil || m.View.Readable(entry)) && concern(entry) {
			do(entry, key.Namespace)
		}
	}
}

// wrote says whether this run staged a v3 record; its references are translated already.
func (m *run) wrote(entry *transform.Entry) bool {
	o := m.table.objects[string(entry.Key)]
	return entry.ModRevision == 0 || o != nil && o.replaced
}

// referenceEdit is the edit of one object's references.
type referenceEdit struct {
	run       *run
	namespace string
	total     int
	fatal     []string // owners that a garbage collector looks for and does not find
	lost      []string // owners that it neither finds nor looks for
}

func (e *referenceEdit) edit(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
	e.total++
	ofV1, ok := isCalico(ref.APIVersion)
	if !ok {
		return ref, false
	}
	v, err := e.run.calicoOwner(e.namespace, ref, ofV1)
	if err != nil {
		_, known := e.run.crds.kinds.called(ref.Kind)
		v = verdict{ref: ref, reason: err.Error(), fatal: known}
	}
	switch id := v.owner.record; {
	case v.reason == "" || ofV1 && id != nil && id.fate == skipped:
		// found, or a v1 record that stays for this very reason
	case v.fatal && !ofV1:
		e.fatal = append(e.fatal, describe(ref, v.reason))
	default:
		e.lost = append(e.lost, describe(ref, v.reason)) // crd.projectcalico.org goes: its owners are not looked for
	}
	if !v.found || v.reason != "" {
		return ref, false
	}
	return v.ref, true
}

// report says what is wrong with the references. It returns false where the object has to stay as
// it is.
func (e *referenceEdit) report(key []byte) bool {
	if len(e.fatal) > 0 && len(e.fatal) == e.total {
		e.run.Raise(string(key), codeDanglingOwner.Because("the garbage collector would delete it: %s", strings.Join(e.fatal, "; ")))
		return false
	}
	e.run.warnOwners(key, "the garbage collector will drop a reference: ", e.fatal...)
	e.run.warnOwners(key, "", e.lost...)
	return true
}
