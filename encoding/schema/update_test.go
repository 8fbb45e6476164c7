package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding/schema"
)

const stored = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",` +
	`"metadata":{"name":"gizmos.example.com","uid":"u",` +
	`"generation":1,"creationTimestamp":"2026-11-20T19:28:17Z"},"spec":{"group":"example.com","version":"v1",` +
	`"names":{"plural":"gizmos","singular":"gizmo",` +
	`"kind":"Gizmo","listKind":"GizmoList"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object"}},` +
	`"versions":[{"name":"v1","served":true,` +
	`"storage":true}],"conversion":{"strategy":"None"},"preserveUnknownFields":false},` +
	`"status":{"conditions":[{"type":"Established","status":"True",` +
	`"lastTransitionTime":"2026-11-20T19:28:17Z","reason":"r","message":"m"}],"acceptedNames":{"plural":"gizmos",` +
	`"singular":"gizmo","kind":"Gizmo",` +
	`"listKind":"GizmoList"},"storedVersions":["v1"]}}` + "\n"

// TestUpdate checks that an update without a change returns the same bytes, and that other updates
// are stored like by a server, or refused with a reason.
func TestUpdate(t *testing.T) {
	crd, err := schema.ParseCRD([]byte(stored))
	require.NoError(t, err)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd.Object())
	require.NoError(t, err)
	content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	same, err := crd.Update(t.Context(), content)
	require.NoError(t, err)
	require.Equal(t, stored, string(same))

	versions := []any{
		map[string]any{"name": "v1", "served": true, "storage": false,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}},
		map[string]any{"name": "v2", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}},
	}
	after := runtime.DeepCopyJSON(content)
	require.NoError(t, unstructured.SetNestedSlice(after, versions, "spec", "versions"))
	value, err := crd.Update(t.Context(), after)
	require.NoError(t, err)
	updated, err := schema.ParseCRD(value)
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v2"}, updated.StoredVersions())

	for why, change := range map[string]struct {
		value any
		path  []string
	}{
		"spec.scope: field is immutable":      {"Cluster", []string{"spec", "scope"}},
		"unknown field \"spec.none\"":         {"x", []string{"spec", "none"}},
		"missing from spec.versions; v9":      {[]any{"v1", "v9"}, []string{"status", "storedVersions"}},
		"spec.names.plural: field is immutab": {"other", []string{"spec", "names", "plural"}},
	} {
		wrong := runtime.DeepCopyJSON(content)
		require.NoError(t, unstructured.SetNestedField(wrong, change.value, change.path...))
		_, err := crd.Update(t.Context(), wrong)
		require.ErrorContains(t, err, why)
	}
}
