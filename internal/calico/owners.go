package calico

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// isCalico says whether an apiVersion is of one of the two groups, and of which. Groups with
// similar names (policy.networking.k8s.io, migration.projectcalico.org) are not.
func isCalico(apiVersion string) (ofV1, ok bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return false, false
	}
	return gv.Group == groupV1, gv.Group == groupV1 || gv.Group == groupV3
}

// verdict is what became of one owner reference.
type verdict struct {
	ref    encoding.OwnerReference // as it is to be
	owner  owner                   // the Calico owner, where there is one
	found  bool                    // owner is set
	reason string                  // why a garbage collector will not find the owner; empty where it will
	fatal  bool                    // it looks for the owner, and deletes an object that has no other
}

// calicoOwner translates a reference of one of the two groups, from an object in namespace, into
// one to the v3 record with the UID of that record.
func (m *run) calicoOwner(namespace string, ref encoding.OwnerReference, ofV1 bool) (verdict, error) {
	uid, err := parseUID(ref.UID)
	if err != nil {
		return verdict{ref: ref}, codeBadUID.Because("owner reference to %s %q: %v", ref.Kind, ref.Name, err)
	}
	o, ok := m.table.find(ofV1, ref.Kind, uid)
	if !ok {
		reason, fatal := m.unknownOwner(namespace, ref)
		return verdict{ref: ref, reason: reason, fatal: fatal}, nil
	}
	ref.APIVersion, ref.Kind, ref.Name, ref.UID = apiVersionV3, o.kind.Kind, o.name, o.uid
	out := verdict{ref: ref, owner: o, found: true, fatal: true}
	switch {
	case o.record != nil && !o.record.present():
		out.reason = o.record.absence()
	case o.kind.Namespaced:
		out.reason = outOfScope(namespace, o.namespace)
	}
	return out, nil
}

// unknownOwner says why no Calico object has the UID of a reference from an object in namespace,
// and whether a garbage collector would act on that. A record that cannot be read is found by its
// name.
func (m *run) unknownOwner(namespace string, ref encoding.OwnerReference) (reason string, fatal bool) {
	k, known := m.crds.kinds.called(ref.Kind)
	if !known {
		return "no Calico object has its UID", false
	}
	at := keys.Key{Resource: k.v3(), Name: ref.Name}
	if k.Namespaced {
		at.Namespace = namespace
	}
	if o := m.table.objects[string(m.Keys.Format(at))]; o != nil && o.unreadable {
		return "the v3 object of that name cannot be read", false
	}
	at.Resource = k.v1()
	if m.table.unread[string(m.Keys.Format(at))] {
		return "the v1 record of that name cannot be read, and is not migrated", true
	}
	return "no Calico object has its UID", true
}

// absence says why a record has no v3 record.
func (id *identity) absence() string {
	if twin := id.rest().twin; twin != nil {
		return twin.absence()
	}
	if id.fate == gone {
		return "it is being deleted"
	}
	return "it is not migrated"
}

// outOfScope says why an object cannot have a namespaced owner; empty where it can.
func outOfScope(namespace, owners string) string {
	switch {
	case namespace == "":
		return "it is in namespace " + owners + ", but what it owns is cluster-scoped"
	case namespace != owners:
		return "it is in namespace " + owners + ", an owner must be in the namespace of what it owns"
	default:
		return ""
	}
}

// translation is an owner reference as it was and as it is written.
type translation struct {
	before, after encoding.OwnerReference
}

// translations are the owner references of one object, each owner once.
type translations []translation

func (t translations) with(before, after encoding.OwnerReference) translations {
	if slices.ContainsFunc(t, func(t translation) bool { return t.after.UID == after.UID }) {
		return t // annotation and record name it by different UIDs
	}
	return append(t, translation{before, after})
}

// guessOwners is what recordOwners will most likely return, without its reports; nil where that
// cannot be told.
func (m *run) guessOwners(id *identity, refs []metav1.OwnerReference) (out translations) {
	for _, stored := range refs {
		v, err := m.translate(id.namespace(), fromMeta(stored))
		if err != nil {
			return nil
		}
		out = out.with(fromMeta(stored), v.ref)
	}
	return out
}

// recordOwners translates the owner references of a v1 record. Where the garbage collector would
// find none of the owners, and so delete the v3 record, the record is refused; else lost owners are
// reported.
func (m *run) recordOwners(id *identity, refs []metav1.OwnerReference) (translations, error) {
	var lost, ignored []string
	var out translations
	for _, stored := range refs {
		before := fromMeta(stored)
		v, err := m.translate(id.namespace(), before)
		if err != nil {
			return nil, err
		}
		switch {
		case v.reason != "" && v.fatal:
			lost = append(lost, describe(before, v.reason))
		case v.reason != "":
			ignored = append(ignored, describe(before, v.reason))
			id.firm = true // an owner that cannot be looked for is never found to be gone
		case v.found && v.owner.record != nil:
			id.more().owners = append(id.more().owners, v.owner.record)
		default:
			id.firm = true
		}
		out = out.with(before, v.ref)
	}
	if len(lost) > 0 && len(id.rest().owners) == 0 && !id.firm {
		return nil, codeDanglingOwner.Because("the garbage collector would delete it: %s", strings.Join(lost, "; "))
	}
	m.warnOwners(id.key, "the garbage collector will drop a reference: ", lost...)
	m.warnOwners(id.key, "the garbage collector cannot look for it: ", ignored...)
	return out, nil
}

// warnOwners warns of owners that will not be found, where there are any.
func (m *run) warnOwners(key []byte, what string, reasons ...string) {
	if len(reasons) > 0 {
		m.Raise(string(key), codeDanglingOwner.Because("%s%s", what, strings.Join(reasons, "; ")).Decided(finding.Noted))
	}
}

// translate translates a reference of a Calico object and says whether its owner will be found. One
// of the v1 group without an owner becomes the one that clients saw: its own group will be gone.
func (m *run) translate(namespace string, ref encoding.OwnerReference) (verdict, error) {
	if ofV1, ok := isCalico(ref.APIVersion); ok {
		v, err := m.calicoOwner(namespace, ref, ofV1)
		if err == nil && !v.found && ofV1 {
			v.ref = m.crds.kinds.asSeen(ref)
		}
		return v, err
	}
	reason, unread := m.missing(namespace, ref)
	return verdict{ref: ref, reason: reason, fatal: !unread}, m.Err
}

// asSeen is a reference of the v1 group as clients of the aggregated API saw it.
func (s kindSet) asSeen(ref encoding.OwnerReference) encoding.OwnerReference {
	ref.APIVersion = apiVersionV3
	if k, ok := s.called(ref.Kind); ok {
		ref.Kind = k.Kind
	}
	if uid, err := ConvertUID(ref.UID); err == nil {
		ref.UID = uid
	}
	return ref
}

// describe names a stored reference and what is wrong with it.
func describe(ref encoding.OwnerReference, reason string) string {
	return fmt.Sprintf("owner %s %s %q (uid %s): %s", ref.APIVersion, ref.Kind, ref.Name, ref.UID, reason)
}

// recheckOwners checks staged records again whose owner was skipped later. It goes on until nothing
// changes, for records that it takes back may own others.
func (m *run) recheckOwners() {
	for again := true; again; {
		again = false
		for _, id := range m.table.records {
			s := id.special
			if s == nil {
				continue
			}
			missing := slices.IndexFunc(s.owners, func(o *identity) bool { return !o.present() })
			if missing < 0 || id.fate == skipped || id.fate == gone {
				continue
			}
			o := s.owners[missing]
			s.owners = slices.Delete(s.owners, missing, missing+1)
			again = true
			reason := fmt.Sprintf("owner %s %q: %s", o.kind.Kind, o.name(), o.absence())
			if id.firm || len(s.owners) > 0 {
				m.warnOwners(id.key, "the garbage collector will drop a reference: ", reason)
				continue
			}
			m.unstage(id)
			m.skip(id, codeDanglingOwner.Because("the garbage collector would delete it: %s", reason))
		}
	}
}

// unstage takes a staged v3 record back.
func (m *run) unstage(id *identity) {
	id.more().late = nil
	key, r := id.v3key(m.Keys), m.View.Report()
	r.References = slices.DeleteFunc(r.References, func(ref transform.Reference) bool { return ref.Key == string(key) })
	switch id.fate {
	case migrated:
		m.Delete(key)
	case replaced:
		id.special.there.replaced = false
		m.Put(key, id.special.there.value)
	}
}

func fromMeta(r metav1.OwnerReference) encoding.OwnerReference {
	return encoding.OwnerReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: string(r.UID),
		Controller: r.Controller, BlockOwnerDeletion: r.BlockOwnerDeletion,
	}
}

func toMeta(r encoding.OwnerReference) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: types.UID(r.UID),
		Controller: r.Controller, BlockOwnerDeletion: r.BlockOwnerDeletion,
	}
}

// setOwners puts translated references into metadata. Paths in managedFields that name an owner by
// its UID, in either form, follow.
func setOwners(meta *metav1.ObjectMeta, refs translations) {
	meta.OwnerReferences = nil
	for _, t := range refs {
		meta.OwnerReferences = append(meta.OwnerReferences, toMeta(t.after))
		if t.before == t.after {
			continue // no Calico object, or one that was named as it is
		}
		other, _ := ConvertUID(t.before.UID) // clients named it as they saw it
		for i := range meta.ManagedFields {
			if f := meta.ManagedFields[i].FieldsV1; f != nil {
				f.Raw = renameOwner(f.Raw, t.before.UID, t.after.UID)
				f.Raw = renameOwner(f.Raw, other, t.after.UID)
			}
		}
	}
}

// renameOwner renames the UID in paths such as k:{"uid":"7d0c..."}.
func renameOwner(fields []byte, from, to string) []byte {
	return bytes.ReplaceAll(fields, []byte(`\"uid\":\"`+from+`\"`), []byte(`\"uid\":\"`+to+`\"`))
}
