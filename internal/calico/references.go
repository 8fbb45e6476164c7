package calico

import (
	"bytes"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// remapReferences makes the owner references of all objects but the records just written end at v3
// records. v1 records stay as they are.
func (m *run) remapReferences() error {
	return m.eachReferrer(m.table, func(entry *transform.Entry, namespace string) error {
		e := referenceEdit{owners: m.owners, namespace: namespace}
		return objects.EditOwners(m.ctx, m.View, entry, e.edit, func() bool { return e.report(entry.Key) })
	})
}

// mayReferToCalico says whether a value may hold a reference to a Calico object: one of neither
// group does not. An encrypted one may.
func mayReferToCalico(entry *transform.Entry) bool {
	return bytes.Contains(entry.Value, []byte(groupV3)) || // it is a part of groupV1
		encoding.Detect(entry.Value) == encoding.FormatEncrypted
}

// eachReferrer calls do for each object that may refer to Calico, except v1 records and the v3
// records that were just written. It refuses objects that no API server can read as the object
// their key names. written is nil where no record was written.
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

// wrote says whether the record of a v3 object was staged by this run.
func (t *table) wrote(entry *transform.Entry) bool {
	o := t.objects[string(entry.Key)]
	return entry.ModRevision == 0 || o != nil && o.replaced
}

// referenceEdit is the edit of one object's references.
type referenceEdit struct {
	*owners
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
		e.Raise(string(key), codeDanglingOwner.Because("the garbage collector would delete it: %s",
			strings.Join(e.fatal, "; ")))
		return false
	}
	e.warnOwners(key, "the garbage collector will drop a reference: ", e.fatal...)
	e.warnOwners(key, "", e.lost...)
	return true
}
