package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// RelabelManagedFields mends metadata.managedFields of obj, as Finish left it,
// in place, where they make every server-side apply of the object fail
// (kubernetes#111937), and returns how many entries it changed or dropped, and
// the managers that lose fields by it, which a webhook may have renamed. An
// entry does so whose apiVersion is none of the CRD's, or, with the strategy
// None, whose version's schema does not accept the object (a default that only
// the storage version has is enough).
//
// With the strategy None such an entry becomes one of the storage version with
// the same fields, so that its manager still owns them; only fields that the
// storage version does not know go. With a webhook, which may rename fields,
// that is done where the storage version knows all of them; else the entry is
// dropped. So is, with any strategy, one that would own nothing. Where none is
// left, the first one's manager and operation stay with metadata.name as their
// only field, like the seed of Cluster API's crdmigrator: with no entry at all,
// the first apply would find every field owned by "before-first-apply". (That
// apply takes the seed away, and so does any other write.)
//
// Entries that end up with the same manager, operation, subresource and
// apiVersion become one, with the newest time, and the list is sorted as a
// server sorts it, so that the next no-op write changes nothing. All other
// entries stay as they are, among them those that a server could not read
// either.
//
// With all, entries of other versions that do no harm yet are relabelled too,
// so that those versions can be removed from the CRD: but, with a webhook, not
// those that the storage version does not know all fields of, which stay.
//
// An obj at another version is ErrNotStorageVersion.
func (c *CRD) RelabelManagedFields(obj map[string]any, all bool) (changed int, lost []string, err error) {
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	if len(list) == 0 {
		return 0, nil, nil
	}
	if obj["apiVersion"] != c.storageAPIVersion() {
		return 0, nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, obj["apiVersion"], ErrNotStorageVersion)
	}
	storage, err := c.Version(c.StorageVersion())
	if err != nil {
		return 0, nil, err
	}
	r := relabel{crd: c, storage: storage, obj: obj, all: all, accepted: map[string]bool{}}
	if err := r.entries(list); err != nil {
		return 0, nil, fmt.Errorf("CustomResourceDefinition %q: managedFields: %w", c.v1.Name, err)
	}
	if r.changed > 0 {
		metadata["managedFields"] = r.out
	}
	return r.changed, r.lost, nil
}

// relabel is one object's RelabelManagedFields.
type relabel struct {
	crd      *CRD
	storage  *Version
	obj      map[string]any
	all      bool            // entries of other versions too
	accepted map[string]bool // by version name
	out      []any
	changed  int
	lost     []string // managers that own less than before, which the object may still have under another name
}

func (r *relabel) entries(list []any) error {
	var seed map[string]any
	for _, element := range list {
		entry, _ := element.(map[string]any)
		breaks := r.breaks(entry)
		if !breaks && !(r.all && entry["apiVersion"] != r.crd.storageAPIVersion()) {
			r.out = append(r.out, element)
			continue
		}
		fields, readable := decodeEntry(entry)
		if !readable {
			r.out = append(r.out, element)
			continue
		}
		mended, err := r.mend(entry, fields)
		if err != nil {
			return err
		}
		if mended == nil && !breaks && r.crd.Webhook() { // it owns what another version's paths do not tell, and still does
			r.out = append(r.out, element)
			continue
		}
		r.changed++
		if mended == nil && r.crd.Webhook() && !fields.Empty() {
			r.lost = append(r.lost, entryField(entry, "manager"))
		}
		if mended != nil {
			r.out = append(r.out, mended)
		} else if seed == nil {
			seed = withFields(entry, r.storage, map[string]any{"f:metadata": map[string]any{"f:name": map[string]any{}}})
		}
	}
	if r.changed == 0 {
		return nil
	}
	if len(r.out) == 0 {
		r.out = []any{seed}
	}
	if err := r.merge(); err != nil {
		return err
	}
	slices.SortStableFunc(r.out, compareEntries)
	return nil
}

// decodeEntry returns an entry's fields; false where a server would not read it.
func decodeEntry(entry map[string]any) (*fieldpath.Set, bool) {
	if entry["fieldsType"] != "FieldsV1" || entry["operation"] != "Apply" && entry["operation"] != "Update" {
		return nil, false
	}
	return decodeFields(entry["fieldsV1"])
}

// breaks says whether the entry makes server-side apply fail.
func (r *relabel) breaks(entry map[string]any) bool {
	version, err := r.crd.versionOf(entry)
	switch {
	case err != nil:
		return true
	case version == r.storage || r.crd.Webhook():
		return false
	}
	accepted, known := r.accepted[version.Name()]
	if !known {
		_, err := version.typedAt(r.obj)
		accepted = err == nil
		r.accepted[version.Name()] = accepted
	}
	return !accepted
}

// mend returns the entry at the storage version, or nil where it owns nothing
// there, or would own what another version's paths do not tell.
func (r *relabel) mend(entry map[string]any, fields *fieldpath.Set) (map[string]any, error) {
	known, err := r.storage.knownFields(fields)
	if err != nil || known.Empty() || r.crd.Webhook() && known.Size() != fields.Size() {
		return nil, err
	}
	// A server does the same on the next write, for lists and maps that are atomic now.
	if object, err := r.storage.typedAt(r.obj); err == nil {
		if reconciled, err := typed.ReconcileFieldSetWithSchema(known, object); err == nil && reconciled != nil {
			known = reconciled
		}
	}
	fieldsV1, err := encodeFields(known)
	if err != nil {
		return nil, err
	}
	return withFields(entry, r.storage, fieldsV1), nil
}

func withFields(entry map[string]any, version *Version, fieldsV1 map[string]any) map[string]any {
	out := maps.Clone(entry)
	out["apiVersion"] = version.GroupVersionKind().GroupVersion().String()
	out["fieldsV1"] = fieldsV1
	return out
}

// merge unites the storage version's entries of the same manager, operation and
// subresource.
func (r *relabel) merge() error {
	first := map[[3]string]map[string]any{}
	out := r.out[:0]
	for _, element := range r.out {
		entry, _ := element.(map[string]any)
		owner := [3]string{entryField(entry, "manager"), entryField(entry, "operation"), entryField(entry, "subresource")}
		other := first[owner]
		merged := false
		switch {
		case entry["apiVersion"] != r.crd.storageAPIVersion():
		case other == nil:
			first[owner] = entry
		default:
			var err error
			if merged, err = unite(other, entry); err != nil {
				return err
			}
		}
		if !merged {
			out = append(out, element)
		}
	}
	r.out = out
	return nil
}

// unite adds the entry's fields to those of into; false where one can't be read.
func unite(into, entry map[string]any) (bool, error) {
	fields, ok := decodeEntry(into)
	more, readable := decodeEntry(entry)
	if !ok || !readable {
		return false, nil
	}
	fieldsV1, err := encodeFields(fields.Union(more))
	if err != nil {
		return false, err
	}
	into["fieldsV1"] = fieldsV1
	if seconds(entry) > seconds(into) {
		into["time"] = entry["time"]
	}
	return true, nil
}

// compareEntries is sortEncodedManagedFields of apimachinery's managedfields.
func compareEntries(a, b any) int {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	return cmp.Or(
		compareField(x, y, "operation"),
		cmp.Compare(seconds(x), seconds(y)),
		compareField(x, y, "manager"),
		compareField(x, y, "apiVersion"),
		compareField(x, y, "subresource"),
	)
}

func compareField(x, y map[string]any, name string) int {
	return cmp.Compare(entryField(x, name), entryField(y, name))
}

func entryField(entry map[string]any, name string) string {
	value, _ := entry[name].(string)
	return value
}

// seconds is the entry's time, 0 where it has none.
func seconds(entry map[string]any) int64 {
	t, err := time.Parse(time.RFC3339, entryField(entry, "time"))
	if err != nil {
		return 0
	}
	return t.Unix()
}
