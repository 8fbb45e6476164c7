package calico

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/transform"
)

// isCalico reports whether an apiVersion is in one of the two groups, and whether in v1. Groups
// with similar names (policy.networking.k8s.io, migration.projectcalico.org) are not Calico's.
func isCalico(apiVersion string) (ofV1, ok bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return false, false
	}
	return gv.Group == groupV1, gv.Group == groupV1 || gv.Group == groupV3
}

// owners translates owner references and predicts the lookups of the garbage collector.
type owners struct {
	*store
	kinds  kindSet
	table  *table
	types  []*inspect.Type           // built-in types and those of the snapshot's CRDs; nil until needed
	relies map[*identity][]*identity // Calico owners of a record
}

// verdict is the result for one owner reference.
type verdict struct {
	ref    encoding.OwnerReference // the reference after the migration
	owner  owner                   // the Calico owner, if any
	found  bool                    // owner is set
	reason string                  // why a garbage collector will not find the owner; empty if it will
	fatal  bool                    // the collector looks for the owner, and deletes an object without another one
}

// translate returns the migrated form of a reference (for a Calico object: v3 name and UID) and the
// Calico owner. A v1 reference without an existing owner takes the form seen by clients, since the
// v1 group will be gone. translate is safe for parallel use.
func (o *owners) translate(ref encoding.OwnerReference) (verdict, error) {
	ofV1, ok := isCalico(ref.APIVersion)
	if !ok {
		return verdict{ref: ref}, nil
	}
	uid, err := parseUID(ref.UID)
	if err != nil {
		return verdict{ref: ref}, codeBadUID.Because("owner reference to %s %q: %v", ref.Kind, ref.Name, err)
	}
	found, ok := o.table.find(ofV1, ref.Kind, uid)
	switch {
	case ok:
		ref.APIVersion, ref.Kind, ref.Name, ref.UID = apiVersionV3, found.kind.Kind, found.name, found.uid
	case ofV1:
		ref = o.kinds.asSeen(ref)
	}
	return verdict{ref: ref, owner: found, found: ok}, nil
}

// check completes the verdict about a reference of an object in namespace: it predicts whether a
// garbage collector will find the owner. before is the untranslated reference.
func (o *owners) check(namespace string, before encoding.OwnerReference, v *verdict) error {
	_, calico := isCalico(before.APIVersion)
	switch {
	case !calico:
		var unread bool
		var err error
		v.reason, unread, err = o.missing(namespace, before)
		v.fatal = !unread
		return err
	case !v.found:
		v.reason, v.fatal = o.unknown(namespace, before)
		return nil
	}
	v.fatal = true
	switch record := v.owner.record; {
	case record != nil && !record.present():
		v.reason = record.absence()
	case v.owner.kind.Namespaced:
		v.reason = outOfScope(namespace, v.owner.namespace)
	}
	return nil
}

// unknown says why no Calico object has the UID of a reference from an object in namespace, and
// whether a garbage collector would act on this. An unreadable record is found by its name.
func (o *owners) unknown(namespace string, ref encoding.OwnerReference) (reason string, fatal bool) {
	k, known := o.kinds.called(ref.Kind)
	if !known {
		return "no Calico object has its UID", false
	}
	if !k.Namespaced {
		namespace = ""
	}
	if there := o.table.objects[string(o.key(k.v3(), namespace, ref.Name))]; there != nil && there.unreadable {
		return "the v3 object of that name cannot be read", false
	}
	if o.table.unread[string(o.key(k.v1(), namespace, ref.Name))] {
		return "the v1 record of that name cannot be read, and is not migrated", true
	}
	return "no Calico object has its UID", true
}

// missing says why a garbage collector would not find a non-Calico owner of an object in namespace.
// The reason is empty if the owner is found, or if the owner's kind is unknown: a garbage collector
// then keeps the object. unread reports an owner unreadable for etcdshift and for a garbage
// collector.
func (o *owners) missing(namespace string, ref encoding.OwnerReference) (reason string, unread bool, err error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", false, nil
	}
	t, err := o.typeOf(gv.WithKind(ref.Kind).GroupKind())
	switch {
	case t == nil || err != nil:
		return "", false, err
	case !t.Namespaced:
		namespace = ""
	case namespace == "":
		return "it is namespaced, but what it owns is cluster-scoped", false, nil
	}
	if ref.Name == "" || strings.Contains(ref.Name, "/") {
		return "it has no name", false, nil
	}
	entry, err := o.get(o.key(t.Resource, namespace, ref.Name))
	if err != nil {
		return "", false, err
	}
	if entry == nil {
		return "it does not exist", false, nil
	}
	found, err := encoding.ReadMeta(entry.Value)
	switch {
	case errors.Is(err, encoding.ErrEncrypted):
		return "", false, nil // it exists; the encrypted record has its own finding
	case err != nil:
		return "it cannot be read: " + err.Error(), true, nil
	case found.UID != ref.UID:
		return "the one that exists has another uid, " + found.UID, false, nil
	}
	return "", false, nil
}

// typeOf finds a kind among the built-in types and those of the snapshot's CRDs; nil for none.
func (o *owners) typeOf(gk schema.GroupKind) (*inspect.Type, error) {
	if o.types == nil {
		found, err := o.Reader().Defined(o.ctx)
		if err != nil {
			return nil, err
		}
		o.types = found.All()
	}
	i := slices.IndexFunc(o.types, func(t *inspect.Type) bool {
		return t.Kind == gk.Kind &&
			t.Resource.Group == gk.Group
	})
	if i < 0 {
		return nil, nil
	}
	return o.types[i], nil
}

// absence says why a record has no v3 record.
func (id *identity) absence() string {
	if twin := id.optional().twin; twin != nil {
		return twin.absence()
	}
	if id.fate == gone {
		return "it is being deleted"
	}
	return "it is not migrated"
}

// outOfScope says why an object cannot have an owner in namespace owners; empty if it can.
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

// translation is an owner reference before and after the migration.
type translation struct {
	before, after encoding.OwnerReference
}

// translateAll translates the owner references of a v1 record. The translations have each owner
// once: annotation and record may name the same owner by different UIDs.
func (o *owners) translateAll(refs []metav1.OwnerReference) (out []translation, verdicts []verdict, _ error) {
	for _, stored := range refs {
		v, err := o.translate(fromMeta(stored))
		if err != nil {
			return nil, nil, err
		}
		verdicts = append(verdicts, v)
		if !slices.ContainsFunc(out, func(t translation) bool { return t.after.UID == v.ref.UID }) {
			out = append(out, translation{fromMeta(stored), v.ref})
		}
	}
	return out, verdicts, nil
}

// ofRecord checks the owner references of a v1 record. If the garbage collector would find no
// owner, and so delete the v3 record, the record is refused; otherwise lost owners are reported.
func (o *owners) ofRecord(id *identity, refs []metav1.OwnerReference, verdicts []verdict) error {
	var lost, ignored []string
	for i, v := range verdicts {
		before := fromMeta(refs[i])
		if err := o.check(id.namespace(), before, &v); err != nil {
			return err
		}
		switch {
		case v.reason != "" && v.fatal:
			lost = append(lost, describe(before, v.reason))
		case v.reason != "":
			ignored = append(ignored, describe(before, v.reason))
			id.firm = true // a collector never sees this owner as gone
		case v.found && v.owner.record != nil:
			o.relies[id] = append(o.relies[id], v.owner.record)
		default:
			id.firm = true
		}
	}
	if len(lost) > 0 && len(o.relies[id]) == 0 && !id.firm {
		return codeDanglingOwner.Because("the garbage collector would delete it: %s", strings.Join(lost, "; "))
	}
	o.warnOwners(id.key, "the garbage collector will drop a reference: ", lost...)
	o.warnOwners(id.key, "the garbage collector cannot look for it: ", ignored...)
	return nil
}

// warnOwners warns of owners that a garbage collector will not find.
func (s *store) warnOwners(key []byte, what string, reasons ...string) {
	if len(reasons) > 0 {
		s.Raise(string(key), codeDanglingOwner.Because("%s%s", what,
			strings.Join(reasons, "; ")).Decided(finding.Noted))
	}
}

// asSeen returns a v1 reference in the form seen by clients of the aggregated API.
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

// describe names a stored reference and its problem.
func describe(ref encoding.OwnerReference, reason string) string {
	return fmt.Sprintf("owner %s %s %q (uid %s): %s", ref.APIVersion, ref.Kind, ref.Name, ref.UID, reason)
}

// recheckOwners checks staged records again after an owner was skipped, and repeats this until
// nothing changes: unstaged records may own others.
func (m *run) recheckOwners() error {
	for again := true; again; {
		again = false
		for _, id := range m.table.records {
			missing := slices.IndexFunc(m.relies[id], func(o *identity) bool { return !o.present() })
			if missing < 0 || id.fate == skipped || id.fate == gone {
				continue
			}
			o := m.relies[id][missing]
			m.relies[id] = slices.Delete(m.relies[id], missing, missing+1)
			again = true
			reason := fmt.Sprintf("owner %s %q: %s", o.kind.Kind, o.name(), o.absence())
			if id.firm || len(m.relies[id]) > 0 {
				m.warnOwners(id.key, "the garbage collector will drop a reference: ", reason)
				continue
			}
			if err := m.unstage(id); err != nil {
				return err
			}
			m.skip(id, codeDanglingOwner.Because("the garbage collector would delete it: %s", reason))
		}
	}
	return nil
}

// unstage removes a staged v3 record.
func (m *run) unstage(id *identity) error {
	delete(m.late, id)
	key, r := id.v3key(m.keys), m.Report()
	r.References = slices.DeleteFunc(r.References, func(ref transform.Reference) bool { return ref.Key == string(key) })
	switch id.fate {
	case migrated:
		return m.Delete(m.ctx, key)
	case replaced:
		id.special.there.replaced = false
		return m.put(key, id.special.there.value)
	}
	return nil
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

// setOwners sets the translated references. Paths in managedFields that name an owner by either UID
// follow.
func setOwners(meta *metav1.ObjectMeta, refs []translation) {
	meta.OwnerReferences = nil
	for _, t := range refs {
		meta.OwnerReferences = append(meta.OwnerReferences, toMeta(t.after))
		if t.before == t.after {
			continue // not a Calico object, or already correct
		}
		other, _ := ConvertUID(t.before.UID) // clients named the owner by the UID they saw
		for i := range meta.ManagedFields {
			if f := meta.ManagedFields[i].FieldsV1; f != nil {
				f.Raw = renameOwner(f.Raw, t.before.UID, t.after.UID)
				f.Raw = renameOwner(f.Raw, other, t.after.UID)
			}
		}
	}
}

// renameOwner replaces the UID in paths such as k:{"uid":"7d0c..."}.
func renameOwner(fields []byte, from, to string) []byte {
	return bytes.ReplaceAll(fields, []byte(`\"uid\":\"`+from+`\"`), []byte(`\"uid\":\"`+to+`\"`))
}
