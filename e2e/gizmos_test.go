package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gizmos are custom resources with an old and a new version. Three are stored at the old version.
const (
	gizmoFolder = "/registry/example.com/gizmos/"
	oldGizmos   = 3
)

func gizmos(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "gizmos"}
}

// gizmoVersion returns a version of the definition. The new version has a default, so that its
// stored bytes differ.
func gizmoVersion(name string, storage bool) any {
	spec := map[string]any{"size": map[string]any{"type": "integer"}}
	if name == "v1" {
		spec["colour"] = map[string]any{"type": "string", "default": "red"}
	}
	return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
			"spec": map[string]any{"type": "object", "properties": spec},
		}},
	}}
}

// createGizmos creates the definition, gizmos at the old version, one at the new version after the
// change of the storage version, and an object owned by the first gizmo.
func (c *cluster) createGizmos(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	_, err := c.client(definitions(), "").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gizmos.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": "gizmos", "kind": "Gizmo"},
			"versions": []any{gizmoVersion("v1alpha1", true), gizmoVersion("v1", false)},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range oldGizmos {
		c.createGizmo(t, "v1alpha1", fmt.Sprintf("old-%d", i))
	}
	require.NoError(t, c.setGizmoVersions(gizmoVersion("v1alpha1", false), gizmoVersion("v1", true)))
	c.createGizmo(t, "v1", "new")
	owner, err := c.client(gizmos("v1"), "").Get(ctx, "old-0", metav1.GetOptions{})
	require.NoError(t, err)
	c.createOwned(t, "owned-by-gizmo", owner, owner.GetUID())
}

// createGizmo applies a gizmo, as a field manager at that version, until the gizmo is stored at
// that version: a server follows changed definitions with a delay.
func (c *cluster) createGizmo(t testing.TB, version, name string) {
	t.Helper()
	ctx := context.Background()
	eventually(t, serveTimeout, "create "+name, func() error {
		_, err := c.client(gizmos(version), "").Apply(ctx, name, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/" + version, "kind": "Gizmo", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"size": int64(3)},
		}}, metav1.ApplyOptions{FieldManager: "installer"})
		if err != nil {
			return err
		}
		r, err := c.store.Get(ctx, gizmoFolder+name)
		if err == nil && !strings.Contains(string(r.Kvs[0].Value), `"apiVersion":"example.com/`+version+`","kind"`) {
			err = fmt.Errorf("stored is %s", r.Kvs[0].Value)
		}
		return err
	})
}

// setGizmoVersions updates the definition.
func (c *cluster) setGizmoVersions(versions ...any) error {
	client := c.client(definitions(), "")
	crd, err := client.Get(context.Background(), "gizmos.example.com", metav1.GetOptions{})
	if err != nil {
		return err
	}
	crd.Object["spec"].(map[string]any)["versions"] = versions
	_, err = client.Update(context.Background(), crd, metav1.UpdateOptions{})
	return err
}

// dropOldGizmos removes the old version from the definition, and waits until no server serves it.
func (c *cluster) dropOldGizmos(t testing.TB) {
	t.Helper()
	require.NoError(t, c.setGizmoVersions(gizmoVersion("v1", true)))
	eventually(t, serveTimeout, "v1alpha1 is gone", func() error {
		_, err := c.client(gizmos("v1alpha1"), "").List(context.Background(), metav1.ListOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("list: %w", err)
		}
		return nil
	})
}

// requireGizmos requires that all gizmos can be listed and changed at a version.
func (c *cluster) requireGizmos(t testing.TB, version string) {
	t.Helper()
	list, err := c.client(gizmos(version), "").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, oldGizmos+1)
	for _, gizmo := range list.Items {
		spec := map[string]any{"size": int64(3)}
		if version == "v1" {
			spec["colour"] = "red"
		}
		require.Equal(t, spec, gizmo.Object["spec"], gizmo.GetName())
		require.NoError(t, c.change(gizmos(version), &gizmo), gizmo.GetName())
	}
}
