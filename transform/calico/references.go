package calico

import (
	"bytes"
	"context"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// remapReferences makes the owner references of all objects but the records just written end at v3 records. v1 records
// stay as they are: they go, or they are kept for a way back.
func (m *run) remapReferences(ctx context.Context) error {
	return m.eachOther(ctx, func(entry *transform.Entry) error {
		if !m.readable(entry) {
			return nil
		}
		return m.remapObject(ctx, entry)
	})
}

// checkValues refuses values that no API server can read. It is for a snapshot without anything to migrate.
func (m *run) checkValues(ctx context.Context) error {
	return m.eachOther(ctx, func(entry *transform.Entry) error {
		m.readable(entry)
		return nil
	})
}

// eachOther calls do for all objects but v1 records and the v3 records just written.
func (m *run) eachOther(ctx context.Context, do func(*transform.Entry) error) error {
	v1, v3 := groupDir(m.keys, groupV1), groupDir(m.keys, groupV3)
	for entry, err := range m.view.Below(ctx, m.keys.Prefix) {
		if err != nil {
			return err
		}
		under := func(prefix []byte) bool { return bytes.HasPrefix(entry.Key, prefix) }
		if under(v1) || under(v3) && m.wrote(entry) {
			continue
		}
		if err := do(entry); err != nil {
			return err
		}
	}
	return nil
}

// readable refuses a value that no API server can read as what its key says, whatever is in it.
func (m *run) readable(entry *transform.Entry) bool {
	key, err := m.keys.Parse(entry.Key)
	return err != nil || m.view.Readable(key, entry)
}

// wrote says whether a v3 record is one this run staged; its references are translated already.
func (m *run) wrote(entry *transform.Entry) bool {
	o := m.table.objects[string(entry.Key)]
	return entry.ModRevision == 0 || o != nil && o.replaced
}

// remapObject does one object. A value that names neither group anywhere holds no reference to a Calico object; one that is
// encrypted may.
func (m *run) remapObject(ctx context.Context, entry *transform.Entry) error {
	e := referenceEdit{run: m}
	if key, err := m.keys.Parse(entry.Key); err == nil {
		e.namespace = key.Namespace
	}
	encrypted := encoding.Detect(entry.Value) == encoding.FormatEncrypted
	if !encrypted && !bytes.Contains(entry.Value, []byte(groupV3)) { // it is a part of groupV1
		return nil
	}
	return m.view.EditOwners(ctx, entry, "owner references to Calico objects", e.edit, func() bool { return e.report(entry.Key) })
}

// referenceEdit is the edit of one object's references.
type referenceEdit struct {
	run       *run
	namespace string
	total     int
	fatal     []string // owners that a garbage collector will look for in vain
	lost      []string // owners that it will not find, nor look for
}

func (e *referenceEdit) edit(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
	e.total++
	ofV1, ok := isCalico(ref.APIVersion)
	if !ok {
		return ref, false
	}
	v, err := e.run.calicoOwner(e.namespace, ref, ofV1)
	if err != nil {
		v = verdict{ref: ref, reason: err.Error(), fatal: isCalicoKind(ref.Kind)}
	}
	switch {
	case v.reason == "" || ofV1 && v.found && v.owner.record.stays():
		// found, or a v1 record that stays for this very reason
	case v.fatal && !ofV1:
		e.fatal = append(e.fatal, describe(ref, v.reason))
	default:
		e.lost = append(e.lost, describe(ref, v.reason)) // crd.projectcalico.org goes: nobody looks for what it names
	}
	if !v.found || v.reason != "" {
		return ref, false
	}
	return v.ref, true
}

// report says what is wrong with the references. It returns false where the object is to be left alone.
func (e *referenceEdit) report(key []byte) bool {
	if len(e.fatal) > 0 && len(e.fatal) == e.total {
		e.run.view.Raise(string(key), codeDanglingOwner.Because("the garbage collector would delete it: %s", join(e.fatal)))
		return false
	}
	if len(e.fatal) > 0 {
		e.run.view.Raise(string(key), codeDanglingOwner.Because("the garbage collector will drop a reference: %s", join(e.fatal)).Decided(finding.Noted))
	}
	if len(e.lost) > 0 {
		e.run.view.Raise(string(key), codeDanglingOwner.Because("%s", join(e.lost)).Decided(finding.Noted))
	}
	return true
}

func join(reasons []string) string { return strings.Join(reasons, "; ") }
