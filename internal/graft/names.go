package graft

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	crdschema "github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// checkPrefixes reports storage prefixes of items below which the input has nothing.
func (r *run) checkPrefixes() error {
	for _, storage := range r.storages() {
		has := false
		for e, err := range r.view.Reader().Raw(r.ctx, []byte(storage.Prefix+"/")) {
			if err != nil {
				return err
			}
			if key, err := e.ParseKey(); err == nil && key.Prefix == storage.Prefix {
				has = true
				break
			}
		}
		if !has {
			r.view.Raise(storage.Prefix+"/", codePrefixNew.Because("B has no records below it"))
		}
	}
	return nil
}

// related is an object of the input with the UID of an item, or with a replaced owner.
type related struct {
	at    string
	item  string // with the same UID
	owner string // the replaced owner
}

// checkUIDs reports objects of the input with the UID of an item, and objects whose owner an item
// replaces.
func (r *run) checkUIDs() error {
	transform.Foresee(r.view)
	look := func(e *transform.Entry) (one related, is bool) {
		one.at = string(e.Key)
		if r.byKey[one.at] != nil || e.Undecryptable != nil {
			return one, false
		}
		meta, err := e.Meta()
		if err != nil || meta.UID == "" {
			return one, false
		}
		one.item = r.uids[objects.ToUID(meta.UID)]
		for _, ref := range meta.OwnerReferences {
			one.owner = cmp.Or(one.owner, r.replaced[objects.ToUID(ref.UID)])
		}
		return one, one.item != "" || one.owner != ""
	}
	return stream.Each(transform.Visit(r.ctx, r.view, nil, look), func(one related) error {
		if one.item != "" {
			r.view.Raise(one.item, codeDuplicateUID.Because("its UID is also that of %s in B", one.at))
		}
		if one.owner != "" {
			r.view.Raise(one.at, codeOwnerOutside.Because(
				"the archive replaces its owner %s with an object that has another UID", one.owner))
		}
		return nil
	})
}

// names are the checks of what items name.
type names struct {
	*run
	lacks       map[string]*lack // by the key of the missing object
	definitions map[string]*definition
}

// checkNames checks the objects that each item names: owners, definition, namespace and others.
func (r *run) checkNames() error {
	n := &names{run: r, lacks: map[string]*lack{}, definitions: map[string]*definition{}}
	unread, first, why := 0, "", error(nil)
	for _, it := range r.items {
		t := r.types.Of(it.key.Resource)
		if it.key.Name == "" || t == nil || keys.IsRecord(it.key.Resource) {
			continue
		}
		e, err := r.view.Get(r.ctx, it.at)
		if err != nil {
			return err
		}
		if err := e.Check(); err != nil && e.Undecryptable == nil && !errors.Is(err, native.ErrUnknownKind) {
			r.view.Raise(string(it.at), codeUndecodable.Because("%v", err))
		}
		named, err := objects.NamedBy(e, t)
		if err != nil {
			if unread++; unread == 1 {
				first, why = string(it.at), err
			}
		}
		if err := cmp.Or(n.checkOwners(it, named.Owners), n.checkNeeds(it, named.Needs)); err != nil {
			return err
		}
		if !t.Builtin && e.Undecryptable == nil {
			if err := n.checkDefinition(it, e, t); err != nil {
				return err
			}
		}
	}
	if unread > 0 {
		r.view.Raise(first, codeOwnersUnread.Because("owners and needs of objects are unknown: %d; the first: %v",
			unread, why))
	}
	n.reportLacks()
	return cmp.Or(n.checkNamespaces(), n.addStoredVersions())
}

// checkOwners reports missing owners. The garbage collector deletes an object without any owner; if
// one exists, it removes the references to the others.
func (n *names) checkOwners(it *item, owners []encoding.OwnerReference) error {
	var missing []string
	for _, ref := range owners {
		key, e, err := n.finder.Owner(n.ctx, it.key, ref)
		if err != nil {
			return err
		}
		if e == nil && key != "" {
			missing = append(missing, ref.Kind+" "+ref.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found := codeOwnerOutside.Because("its owner is missing in B and in the archive: %s", phrase.List(missing, 5))
	if len(missing) < len(owners) {
		found = found.Decided(finding.Noted)
	}
	n.view.Raise(string(it.at), found)
	return nil
}

// lack is an object that items name and that is neither in the input nor in the archive.
type lack struct {
	code  *finding.Code
	warns bool
	by    string // the first item
	more  int
}

// checkNeeds notes the objects that an item names and that are missing.
func (n *names) checkNeeds(it *item, needs []objects.Need) error {
	for _, need := range needs {
		t := n.types.Of(need.Resource)
		if t == nil || need.Optional || need.Resource == keys.DefinitionType() || t.Namespaced && need.Namespace == "" {
			continue
		}
		key, e, err := n.finder.Get(n.ctx, it.key.Prefix, t, need.Namespace, need.Name)
		if err != nil {
			return err
		}
		if e != nil || isBootstrapped(need) {
			continue
		}
		one := n.lacks[key]
		if one == nil {
			one = &lack{code: codeNeedMissing, by: string(it.at), warns: true, more: -1}
			n.lacks[key] = one
		}
		one.more++
		switch need.Resource.String() {
		case "namespaces":
			one.code, one.warns = codeNamespaceMissing, false
		case "nodes": // other objects are updated, or deleted by their controllers
			one.code = codeNodeMissing
			one.warns = one.warns && it.key.Resource.Resource != "pods"
		default: // in a namespace, it was perhaps missing in the origin too
			one.warns = t.Namespaced
		}
	}
	return nil
}

// isBootstrapped reports whether API servers create a ClusterRole at their start.
func isBootstrapped(need objects.Need) bool {
	return need.Resource.Resource == "clusterroles" && (strings.HasPrefix(need.Name, "system:") ||
		slices.Contains([]string{"admin", "cluster-admin", "edit", "view"}, need.Name))
}

// reportLacks reports the missing objects.
func (n *names) reportLacks() {
	for _, key := range slices.Sorted(maps.Keys(n.lacks)) {
		one := n.lacks[key]
		by := one.by
		if one.more > 0 {
			by += " and " + phrase.Count(one.more, "other object")
		}
		found := one.code.Because("missing in B and in the archive; needed by %s", by)
		if one.warns {
			found = found.Decided(finding.Noted)
		}
		n.view.Raise(key, found)
	}
}

// checkNamespaces reports namespaces of items that are being deleted.
func (n *names) checkNamespaces() error {
	seen := map[string]bool{}
	for _, it := range n.items {
		if it.key.Namespace == "" {
			continue
		}
		at := it.key.Prefix + "/" + it.key.Namespace
		if seen[at] {
			continue
		}
		seen[at] = true
		key, e, err := n.finder.Get(n.ctx, it.key.Prefix,
			n.types.Of(schema.GroupResource{Resource: "namespaces"}), "", it.key.Namespace)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if isTerminating(e) {
			n.view.Raise(key, codeTerminating.Because(
				"it is being deleted: the namespace controller would delete the imported objects too"))
		}
	}
	return nil
}

// isTerminating reports whether an object is being deleted.
func isTerminating(e *transform.Entry) bool {
	meta, err := e.Meta()
	return err == nil && e.Undecryptable == nil && !meta.DeletionTimestamp.IsZero()
}

// definition is a CustomResourceDefinition with the versions of items.
type definition struct {
	entry    *transform.Entry // nil for none
	crd      *crdschema.CRD   // nil if unreadable
	versions []string
}

// checkDefinition reports a custom resource that no API server could read: its definition is
// missing, or does not list its version.
func (n *names) checkDefinition(it *item, e *transform.Entry, t *inspect.Type) error {
	kind := n.types.Of(keys.DefinitionType())
	key, entry, err := n.finder.Get(n.ctx, it.key.Prefix, kind, "", t.Name())
	if err != nil {
		return err
	}
	d := n.definitions[key]
	if d == nil {
		if d = (&definition{entry: entry}); entry != nil {
			d.crd, err = crdschema.ParseCRD(entry.Value)
		}
		switch n.definitions[key] = d; {
		case entry == nil:
			n.view.Raise(key, codeNoDefinition.Because(
				"missing in B and in the archive; needed by %s", it.at))
		case err != nil || entry.Undecryptable != nil:
			n.view.Raise(key, transform.Unreadable(cmp.Or(entry.Undecryptable, err)))
			d.crd = nil
		case isTerminating(entry):
			n.view.Raise(key, codeCRDTerminating.Because(
				"it is being deleted: its API server would delete the imported objects too"))
		}
	}
	if d.crd == nil {
		return nil
	}
	value, err := e.ParseValue()
	if err != nil {
		return nil // reported as unreadable
	}
	version := value.GVK.Version
	if _, err := d.crd.Version(version); errors.Is(err, crdschema.ErrNoVersion) {
		n.view.Raise(string(it.at), codeUnlistedVersion.Because("it is stored at version %q, which the "+
			"CustomResourceDefinition of B does not list", version))
	}
	if !slices.Contains(d.versions, version) {
		d.versions = append(d.versions, version)
	}
	return nil
}

// addStoredVersions adds the versions of items to storedVersions of their definitions: otherwise an
// administrator could remove a version that still has objects.
func (n *names) addStoredVersions() error {
	for _, key := range slices.Sorted(maps.Keys(n.definitions)) {
		d := n.definitions[key]
		if d.crd == nil {
			continue
		}
		stored := d.crd.StoredVersions()
		for _, version := range d.versions {
			if !slices.Contains(stored, version) {
				stored = append(stored, version)
			}
		}
		if len(stored) == len(d.crd.StoredVersions()) {
			continue
		}
		value, err := crdschema.SetStoredVersions(d.entry.Value, stored)
		if err != nil {
			n.view.Raise(key, transform.Unreadable(err))
			continue
		}
		n.changed[key] = true
		if err := n.view.Put(n.ctx, []byte(key), value); err != nil {
			return err
		}
	}
	return nil
}
