package calico

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/finding"
)

// metadataAnnotation holds, as JSON, the metadata set by a client of the aggregated API. The
// content depends on the release (v3.27 left labels outside, v3.30 and later put policy names
// inside).
const metadataAnnotation = "projectcalico.org/metadata"

// metadata holds the two layers of a v1 record: outer is its own metadata, inner the metadata of
// the annotation.
type metadata struct {
	outer, inner metav1.ObjectMeta
	annotated    bool // the annotation exists; without it clients saw outer
}

// readMetadata reads both layers of a v1 record. A malformed or empty annotation is refused as
// bad-metadata: the live controller silently loses such records.
func readMetadata(obj map[string]any) (metadata, error) {
	var m metadata
	raw, ok := obj["metadata"].(map[string]any)
	if !ok {
		return m, finding.Undecodable.Because("metadata: not an object")
	}
	raw = withoutV1Fields(raw)
	if m.outer, ok = plainMetadata(raw); !ok {
		m.outer = metav1.ObjectMeta{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &m.outer); err != nil {
			return m, finding.Undecodable.Because("metadata: %v", err)
		}
	}
	text, ok := m.outer.Annotations[metadataAnnotation]
	if !ok {
		return m, nil
	}
	m.annotated = true
	if text == "{}" || text == `{"creationTimestamp":null}` { // Calico's form of an empty annotation
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m.inner); err != nil {
		return m, codeBadMetadata.Because("annotation %s: %v", metadataAnnotation, err)
	}
	return m, nil
}

// plainMetadata is a faster FromUnstructured for the fields of most records. ok is false for other
// fields and for values of another type.
func plainMetadata(raw map[string]any) (m metav1.ObjectMeta, ok bool) {
	for name, value := range raw {
		var text string
		switch name {
		case "name":
			m.Name, ok = value.(string)
		case "namespace":
			m.Namespace, ok = value.(string)
		case "uid":
			text, ok = value.(string)
			m.UID = types.UID(text)
		case "generation":
			m.Generation, ok = value.(int64)
		case "creationTimestamp":
			text, _ = value.(string)
			at, err := time.Parse(time.RFC3339, text)
			m.CreationTimestamp, ok = metav1.NewTime(at.Local()), err == nil
		case "labels":
			m.Labels, ok = plainTexts(value)
		case "annotations":
			m.Annotations, ok = plainTexts(value)
		case "managedFields":
			list, isList := value.([]any)
			ok = isList && len(list) == 0
		default:
			ok = false
		}
		if !ok {
			return m, false
		}
	}
	return m, true
}

// plainTexts converts a map of strings.
func plainTexts(value any) (map[string]string, bool) {
	object, ok := value.(map[string]any)
	out := make(map[string]string, len(object))
	for name, value := range object {
		text, isText := value.(string)
		out[name], ok = text, ok && isText
	}
	return out, ok
}

// withoutV1Fields returns raw metadata without the managedFields entries of v1, most of its text.
func withoutV1Fields(raw map[string]any) map[string]any {
	entries, ok := raw["managedFields"].([]any)
	if !ok {
		return raw
	}
	out := maps.Clone(raw)
	out["managedFields"] = slices.DeleteFunc(slices.Clone(entries), func(e any) bool {
		entry, _ := e.(map[string]any)
		return text(entry, "apiVersion") != apiVersionV3
	})
	return out
}

// seen returns the metadata seen by a client of the aggregated API, without name, namespace and
// UID. Finalizers, owner references and a deletion found only in the outer layer, dropped by a live
// migration, are added.
func (m metadata) seen() metav1.ObjectMeta {
	if !m.annotated {
		m.inner = m.outer
	}
	out := metav1.ObjectMeta{
		GenerateName:      m.inner.GenerateName,
		Generation:        1,
		CreationTimestamp: m.inner.CreationTimestamp,
		Labels:            overlay(m.outer.Labels, m.inner.Labels),
		Annotations:       overlay(m.outer.Annotations, m.inner.Annotations),
		OwnerReferences:   mergeOwners(m.inner.OwnerReferences, m.outer.OwnerReferences),
		Finalizers:        merge(m.inner.Finalizers, m.outer.Finalizers),
		// outer entries name v1 and Calico's own writes: under v3 they would be worse than none
		ManagedFields: slices.DeleteFunc(slices.Clone(m.inner.ManagedFields),
			func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion != apiVersionV3 }),
	}
	if out.CreationTimestamp.IsZero() {
		out.CreationTimestamp = m.outer.CreationTimestamp
	}
	out.DeletionTimestamp, out.DeletionGracePeriodSeconds = m.deletion()
	return out
}

// deletion returns the deletion time and grace period seen by clients, nil for an object that is
// not being deleted.
func (m *metadata) deletion() (*metav1.Time, *int64) {
	switch {
	case m.outer.DeletionTimestamp != nil:
		return m.outer.DeletionTimestamp, m.outer.DeletionGracePeriodSeconds
	case m.inner.DeletionTimestamp != nil:
		return m.inner.DeletionTimestamp, m.inner.DeletionGracePeriodSeconds
	}
	return nil, nil
}

// overlay returns the entries of under and over, without the metadata annotation; over takes
// precedence. An empty result is nil.
func overlay(under, over map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, under)
	maps.Copy(out, over)
	delete(out, metadataAnnotation)
	if len(out) == 0 {
		return nil
	}
	return out
}

// merge returns the elements of inner, then outer, without duplicates.
func merge[T comparable](inner, outer []T) (out []T) {
	for _, f := range slices.Concat(inner, outer) {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// mergeOwners returns the owners of inner, then outer, without duplicate UIDs. An object has at
// most one controller: if inner has one, additional owners of outer are plain owners.
func mergeOwners(inner, outer []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(inner)
	controlled := slices.ContainsFunc(inner, func(r metav1.OwnerReference) bool {
		return r.Controller != nil &&
			*r.Controller
	})
	for _, ref := range outer {
		if slices.ContainsFunc(inner, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
			continue
		}
		if controlled {
			ref.Controller = nil
		}
		out = append(out, ref)
	}
	return out
}

// metadataObject converts meta to unstructured content.
func metadataObject(meta metav1.ObjectMeta) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return nil, err
	}
	if out["creationTimestamp"] == nil {
		delete(out, "creationTimestamp")
	}
	return out, nil
}
