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

// RelabelManagedFields repairs metadata.managedFields of obj, at the storage version, in place, so
// that server-side applies work (kubernetes#111937). The result is the number of changed or dropped
// entries, and the managers that lose fields. An entry breaks every apply if its apiVersion is not
// in the CRD or, with the strategy None, if the schema of its version rejects the object.
//
// A breaking entry gets the storage version, with the fields known to that version; entries of one
// owner are merged, with the newest time. An entry left without fields is dropped; with a webhook,
// which may rename fields, an entry with other fields is dropped too. If no entry is left, the
// first one stays with the field metadata.name: otherwise the first apply would find all fields
// owned by "before-first-apply". Other entries, also unreadable ones, stay; the order is a
// server's.
//
// With all, entries of other versions are relabelled too, so that the CRD can drop those versions.
// With a webhook, entries with fields unknown to the storage version stay.
func (c *CRD) RelabelManagedFields(obj map[string]any, all bool) (changed int, lost []string, err error) {
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	if len(list) == 0 {
		return 0, nil, nil
	}
	if obj["apiVersion"] != c.storageAPIVersion() {
		return 0, nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, obj["apiVersion"],
			errNotStorageVersion)
	}
	storage, err := c.Version(c.StorageVersion())
	if err != nil {
		return 0, nil, err
	}
	r := relabel{crd: c, storage: storage, obj: obj, all: all, accepted: map[*Version]bool{}}
	if err := r.entries(list); err != nil {
		return 0, nil, fmt.Errorf("CustomResourceDefinition %q: managedFields: %w", c.v1.Name, err)
	}
	if r.changed > 0 {
		metadata["managedFields"] = r.out
	}
	return r.changed, r.lost, nil
}

// relabel is the state of RelabelManagedFields for one object.
type relabel struct {
	crd      *CRD
	storage  *Version
	obj      map[string]any
	all      bool // entries of other versions too
	accepted map[*Version]bool
	out      []any
	changed  int
	lost     []string // managers that lose fields; the object may have these fields under other names
}

func (r *relabel) entries(list []any) error {
	var seed map[string]any
	for _, element := range list {
		entry, _ := element.(map[string]any)
		breaks := r.breaks(entry)
		fields, readable := (*fieldpath.Set)(nil), false
		if breaks || r.all && entry["apiVersion"] != r.crd.storageAPIVersion() {
			fields, readable = decodeEntry(entry)
		}
		if !readable {
			r.out = append(r.out, element)
			continue
		}
		mended, err := r.atStorageVersion(entry, fields)
		if err != nil {
			return err
		}
		if mended == nil && !breaks && r.crd.Webhook() { // the entry owns fields that the webhook may have renamed
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
			seed = withFields(entry, r.storage,
				map[string]any{"f:metadata": map[string]any{"f:name": map[string]any{}}})
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

// decodeEntry returns the fields of an entry, or false if a server would not read the entry.
func decodeEntry(entry map[string]any) (*fieldpath.Set, bool) {
	if entry["fieldsType"] != "FieldsV1" || entry["operation"] != "Apply" && entry["operation"] != "Update" {
		return nil, false
	}
	return decodeFields(entry["fieldsV1"])
}

// breaks reports whether the entry makes server-side apply fail.
func (r *relabel) breaks(entry map[string]any) bool {
	version, err := r.crd.versionOf(entry)
	switch {
	case err != nil:
		return true
	case version == r.storage || r.crd.Webhook():
		return false
	}
	if _, known := r.accepted[version]; !known {
		_, err := version.typedAt(r.obj)
		r.accepted[version] = err == nil
	}
	return !r.accepted[version]
}

// atStorageVersion returns the entry at the storage version, or nil if no fields are left or a
// webhook may have renamed fields.
func (r *relabel) atStorageVersion(entry map[string]any, fields *fieldpath.Set) (map[string]any, error) {
	known, err := r.storage.knownFields(fields)
	if err != nil || known.Empty() || r.crd.Webhook() && known.Size() != fields.Size() {
		return nil, err
	}
	// A server does the same on the next write, for lists and maps that are now atomic.
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
	out["apiVersion"] = version.gvk().GroupVersion().String()
	out["fieldsV1"] = fieldsV1
	return out
}

// merge merges entries of the storage version with equal manager, operation and subresource.
func (r *relabel) merge() error {
	first := map[[3]string]map[string]any{}
	out := r.out[:0]
	for _, element := range r.out {
		entry, _ := element.(map[string]any)
		owner := [3]string{entryField(entry, "manager"), entryField(entry, "operation"),
			entryField(entry, "subresource")}
		merged, err := false, error(nil)
		switch other := first[owner]; {
		case entry["apiVersion"] != r.crd.storageAPIVersion():
		case other == nil:
			first[owner] = entry
		default:
			merged, err = addFields(other, entry)
		}
		if err != nil {
			return err
		}
		if !merged {
			out = append(out, element)
		}
	}
	r.out = out
	return nil
}

// addFields adds the fields of entry to into, or returns false if one entry is unreadable.
func addFields(into, entry map[string]any) (bool, error) {
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
	by := func(name string) int { return cmp.Compare(entryField(x, name), entryField(y, name)) }
	return cmp.Or(by("operation"), cmp.Compare(seconds(x), seconds(y)), by("manager"), by("apiVersion"),
		by("subresource"))
}

func entryField(entry map[string]any, name string) string {
	value, _ := entry[name].(string)
	return value
}

// seconds returns the time of the entry, or 0.
func seconds(entry map[string]any) int64 {
	if t, err := time.Parse(time.RFC3339, entryField(entry, "time")); err == nil {
		return t.Unix()
	}
	return 0
}
