package calico

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
)

// metadataAnnotation holds, as JSON, the metadata that a client of the aggregated API gave its
// object. Its content depends on the release (v3.27 left labels outside, v3.30 and later put policy
// names inside).
const metadataAnnotation = "projectcalico.org/metadata"

// metadata is a v1 record's two layers: outer is the record's own, inner that of the annotation.
type metadata struct {
	outer, inner metav1.ObjectMeta
	annotated    bool // the annotation is there; without it clients saw outer
}

// readMetadata takes both layers from a v1 record. A malformed or empty annotation is refused as
// bad-metadata: the live controller loses such records without a word.
func readMetadata(obj map[string]any) (metadata, error) {
	var m metadata
	raw, ok := obj["metadata"].(map[string]any)
	if !ok {
		return m, finding.Undecodable.Because("metadata: not an object")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(withoutV1Fields(raw), &m.outer); err != nil {
		return m, finding.Undecodable.Because("metadata: %v", err)
	}
	text, ok := m.outer.Annotations[metadataAnnotation]
	if !ok {
		return m, nil
	}
	m.annotated = true
	if err := json.Unmarshal([]byte(text), &m.inner); err != nil {
		return m, codeBadMetadata.Because("annotation %s: %v", metadataAnnotation, err)
	}
	return m, nil
}

// withoutV1Fields is raw metadata without the managedFields entries of v1, which are most of its
// text.
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

// seen is the metadata that a client of the aggregated API saw, without name, namespace and UID.
// Finalizers, owner references and a deletion that only the record itself has, and a live migration
// drops, are added.
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
		// the outer entries name v1 and Calico's own writes: under v3 they would be worse than none
		ManagedFields: slices.DeleteFunc(slices.Clone(m.inner.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion != apiVersionV3 }),
	}
	if out.CreationTimestamp.IsZero() {
		out.CreationTimestamp = m.outer.CreationTimestamp
	}
	deleting := m.outer
	if deleting.DeletionTimestamp == nil {
		deleting = m.inner
	}
	if deleting.DeletionTimestamp != nil {
		out.DeletionTimestamp = deleting.DeletionTimestamp
		out.DeletionGracePeriodSeconds = deleting.DeletionGracePeriodSeconds
	}
	return out
}

// overlay is under with the entries of over, which win, and without the metadata annotation; nil
// for an empty one.
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

// merge is inner and then outer, each once.
func merge[T comparable](inner, outer []T) (out []T) {
	for _, f := range slices.Concat(inner, outer) {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// mergeOwners is inner and then outer, each once by UID. An object has one controller at most:
// where inner has one, owners that only outer has are plain owners.
func mergeOwners(inner, outer []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(inner)
	controlled := slices.ContainsFunc(inner, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
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

// metadataObject is meta in an unstructured object.
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
