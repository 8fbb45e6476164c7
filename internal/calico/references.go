package calico

import (
	"bytes"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// remapReferences changes the owner references of all objects but the new v3 records to name v3
// records. v1 records stay unchanged.
func (m *run) remapReferences() error {
	return m.eachReferrer(m.table, func(entry *transform.Entry, namespace string) error {
		e := referenceEdit{owners: m.owners, namespace: namespace}
		return objects.EditOwners(m.ctx, m.View, entry, e.edit, func() bool { return e.report(entry.Key) })
	})
}

// mayReferToCalico reports whether a value may hold a reference to a Calico object: it contains one
// of the groups or is encrypted.
func mayReferToCalico(entry *transform.Entry) bool {
	return bytes.Contains(entry.Value, []byte(groupV3)) || // a part of groupV1 too
		encoding.Detect(entry.Value) == encoding.FormatEncrypted
}

// eachReferrer calls do for each object that may refer to Calico, except v1 records and the new v3
// records. Objects unreadable under their key are refused. written is nil if no record was written.
func (s *store) eachReferrer(written *table, do func(entry *transform.Entry, namespace string) error) error {
	v1, v3 := s.groupDir(groupV1), s.groupDir(groupV3)
	unreadable := func(entry *transform.Entry) bool {
		_, err := entry.ParseKey()
		return err == nil && entry.Check() != nil
	}
	concerns := func(entry *transform.Entry) bool {
		return !bytes.HasPrefix(entry.Key, v1) && (unreadable(entry) || mayReferToCalico(entry))
	}
	return stream.Each(s.Pick(s.ctx, s.keys.Prefix, concerns), func(entry *transform.Entry) error {
		if written != nil && bytes.HasPrefix(entry.Key, v3) && written.wrote(entry) {
			return nil // its references are translated already
		}
		key, err := entry.ParseKey()
		if (err != nil || s.Readable(entry)) && mayReferToCalico(entry) {
			return do(entry, key.Namespace)
		}
		return nil
	})
}

// wrote reports whether the record of a v3 object was staged by this run.
func (t *table) wrote(entry *transform.Entry) bool {
	o := t.objects[string(entry.Key)]
	return entry.ModRevision == 0 || o != nil && o.replaced
}

// referenceEdit edits the references of one object.
type referenceEdit struct {
	*owners
	namespace string
	total     int
	fatal     []string // owners that a garbage collector looks for and does not find
	lost      []string // owners that a garbage collector does not look for
}

func (e *referenceEdit) edit(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
	e.total++
	ofV1, ok := isCalico(ref.APIVersion)
	if !ok {
		return ref, false
	}
	v, err := e.translate(ref)
	if err == nil {
		err = e.check(e.namespace, ref, &v)
	}
	if err != nil {
		_, known := e.kinds.called(ref.Kind)
		v = verdict{ref: ref, reason: err.Error(), fatal: known}
	}
	switch id := v.owner.record; {
	case v.reason == "" || ofV1 && id != nil && id.fate == skipped:
		// found, or a skipped v1 record, kept with its group
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

// report reports missing owners. The result is false if the object must stay unchanged.
func (e *referenceEdit) report(key []byte) bool {
	if len(e.fatal) > 0 && len(e.fatal) == e.total {
		e.Raise(string(key), codeDanglingOwner.Because("the garbage collector would delete it: %s",
			strings.Join(e.fatal, "; ")))
		return false
	}
	e.warnOwners(key, "the garbage collector will drop a reference: ", e.fatal...)
	e.warnOwners(key, "", e.lost...)
	return true
}
