package calico

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
)

// metadataAnnotation holds, as JSON, the metadata a client of the aggregated API gave its object. What is in it depends
// on the release that wrote it (v3.27 left labels outside, v3.30 and later put policy names inside); reading merges.
const metadataAnnotation = "projectcalico.org/metadata"

// metadata is a v1 record's two layers: outer is the record's own, inner that of the annotation.
type metadata struct {
	outer, inner metav1.ObjectMeta
	annotated    bool // the annotation is there; without it outer is what clients saw
}

// readMetadata takes both layers from a v1 record. A malformed annotation, the empty one included, is refused as
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

// withoutV1Fields is raw metadata without the managedFields entries of v1, most of its text, which nobody reads.
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

// seen is the metadata of the v3 object, but for name, namespace, UID and the translation of owner references. It is
// what a client of the aggregated API saw; what only the record itself had and a live migration drops is added to it:
// finalizers, owner references, a deletion that began.
func (m metadata) seen() metav1.ObjectMeta {
	if !m.annotated {
		m.inner = m.outer
	}
	out := metav1.ObjectMeta{
		GenerateName:      m.inner.GenerateName,
		Generation:        1,
		CreationTimestamp: m.inner.CreationTimestamp,
		Labels:            overlay(m.outer.Labels, m.inner.Labels),
		Annotations:       withoutMetadata(overlay(m.outer.Annotations, m.inner.Annotations)),
		OwnerReferences:   mergeOwners(m.inner.OwnerReferences, m.outer.OwnerReferences),
		Finalizers:        mergeFinalizers(m.inner.Finalizers, m.outer.Finalizers),
		ManagedFields:     ownedFields(m.inner.ManagedFields),
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

// overlay is under with the entries of over, which win; nil when both are empty.
func overlay(under, over map[string]string) map[string]string {
	if len(under)+len(over) == 0 {
		return nil
	}
	out := maps.Clone(under)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

func withoutMetadata(annotations map[string]string) map[string]string {
	delete(annotations, metadataAnnotation)
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// mergeFinalizers is inner, then what outer adds.
func mergeFinalizers(inner, outer []string) []string {
	var out []string
	for _, f := range slices.Concat(inner, outer) {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// mergeOwners is inner, then what outer adds. An object has one controller at most: where inner has one, owners that
// only outer has are plain owners.
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

// ownedFields keeps what clients of the v3 API own. The outer layer's entries name v1 and Calico's own writes; under v3
// they would be worse than none.
func ownedFields(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.APIVersion == apiVersionV3 {
			out = append(out, e)
		}
	}
	return out
}

// metadataObject is meta as it stands in an unstructured object.
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
