package storageversion_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/internal/storageversion"
)

// keys of the objects, sorted.
func (w *world) keys() []string { return slices.Sorted(maps.Keys(w.of)) }

// served starts a server on the migrated snapshot, and uses every object as clients do, before and
// after the removal of the old version.
func (w *world) served(t *testing.T, o storageversion.Options, flags ...string) {
	out, _ := migrate(t, w.before, o, "pruned-field")
	c := restore(t, out, flags...)
	defer c.close()
	t.Run("elided", func(t *testing.T) {
		w.listed(t, c)
		n := 0
		for _, s := range w.shapes {
			c.elidesCRD(t, s)
		}
		for _, key := range w.keys() {
			n += c.elides(t, w.of[key], w.names[key])
		}
		t.Logf("%d requests that do nothing wrote nothing, on %d objects", n, len(w.of))
	})
	t.Run("dropped", func(t *testing.T) {
		for _, s := range w.shapes {
			require.NoError(t, c.updateCRD(t, s.crdName(), withoutVersion(oldName)), s.plural)
			require.Equal(t, []string{newName}, c.crd(t, s.crdName()).Status.StoredVersions)
		}
		c.establish(t)
		w.listed(t, c)
		for _, key := range w.keys() {
			c.use(t, w.of[key], w.names[key])
		}
	})
	if o.AllManagedFields {
		for _, key := range w.keys() {
			if name := w.names[key]; strings.HasPrefix(name, "owned-") || strings.HasPrefix(name, "full-") {
				require.False(t, c.isBehind(t, w.of[key], name), key)
			}
		}
		return
	}
	t.Run("mended", func(t *testing.T) { w.mended(t, c, flags...) })
}

// mended checks managedFields at an old version that knew every field: server-side apply fails
// after the removal of that version, and a migration of the broken cluster repairs server-side
// apply.
func (w *world) mended(t *testing.T, c *cluster, flags ...string) {
	left := map[string]int{}
	for _, key := range w.keys() {
		if s, name := w.of[key], w.names[key]; strings.HasPrefix(name, "owned-") && c.isBehind(t, s, name) {
			require.False(t, s.drifting, key)
			applyFails(t, c.of(s, newName), "newcomer", s.bare(newName, name),
				"request to convert CR to an invalid group/version: demo.example.com/v1alpha1")
			left[key]++
		}
	}
	out, _ := migrate(t, c.save(t), storageversion.Options{})
	again := restore(t, out, flags...)
	defer again.close()
	for key := range left {
		again.elides(t, w.of[key], w.names[key])
		again.owns(t, w.of[key], w.names[key], "gitops")
	}
	t.Logf("%d objects on which apply failed", len(left))
}

// isBehind reports whether managedFields of an object name the old version.
func (c *cluster) isBehind(t *testing.T, s *shape, name string) bool {
	t.Helper()
	obj, err := c.of(s, newName).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(obj.GetManagedFields(),
		func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == group+"/"+oldName })
}

// listed lists and counts every kind.
func (w *world) listed(t *testing.T, c *cluster) {
	t.Helper()
	for _, s := range w.shapes {
		list, err := c.client(s.plural, newName, "").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err, s.plural)
		want := 0
		for _, of := range w.of {
			if of == s {
				want++
			}
		}
		require.Len(t, list.Items, want, s.plural)
	}
}

// elides sends the no-op requests: a server skips the write only if the bytes would be equal to the
// stored bytes.
func (c *cluster) elides(t *testing.T, s *shape, name string) (requests int) {
	t.Helper()
	obj, err := c.of(s, newName).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err, "%s %s", s.plural, name)
	all := []string{"put", "merge", "jsonpatch"}
	if s.status {
		all = append(all, "status")
	}
	if len(obj.GetManagedFields()) > 0 { // otherwise the first apply makes an entry for the existing fields
		all = append(all, "apply")
	}
	before, revision := c.record(t, s.key(name))
	for _, request := range all {
		c.doNothing(t, s, name, request)
		after, now := c.record(t, s.key(name))
		require.Equal(t, before, after, "%s %s %s", request, s.plural, name)
		require.Equal(t, revision, now, "%s %s %s", request, s.plural, name)
	}
	return len(all)
}

// elidesCRD is elides for a CRD.
func (c *cluster) elidesCRD(t *testing.T, s *shape) {
	t.Helper()
	before, revision := c.record(t, crdDir+s.crdName())
	client := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions()
	_, err := client.Update(t.Context(), c.crd(t, s.crdName()), metav1.UpdateOptions{FieldManager: "probe"})
	require.NoError(t, err)
	_, err = client.UpdateStatus(t.Context(), c.crd(t, s.crdName()), metav1.UpdateOptions{FieldManager: "probe"})
	require.NoError(t, err)
	after, now := c.record(t, crdDir+s.crdName())
	require.Equal(t, before, after)
	require.Equal(t, revision, now, s.plural)
}

// use sends the requests that the object's name asks for.
func (c *cluster) use(t *testing.T, s *shape, name string) {
	t.Helper()
	client := c.of(s, newName)
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err, "%s %s", s.plural, name)
	what, _, _ := strings.Cut(name, "-")
	switch what {
	case "bare", "raw":
		require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
		_, err = client.Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	case "dying":
		require.NotNil(t, obj.GetDeletionTimestamp())
		_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = client.Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	case "full":
		require.NoError(t, unstructured.SetNestedField(obj.Object, "changed", "spec", "text"))
		changed, err := client.Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "editor"})
		require.NoError(t, err)
		require.Equal(t, obj.GetGeneration()+1, changed.GetGeneration())
	case "owned":
		if !c.isBehind(t, s, name) {
			c.owns(t, s, name, "gitops")
		}
	}
}

// owns checks that server-side apply works, for a new manager and for the creator of the object:
// fields no longer applied are removed.
func (c *cluster) owns(t *testing.T, s *shape, name, owner string) {
	t.Helper()
	client := c.of(s, newName)
	body := s.bare(newName, name)
	require.NoError(t, unstructured.SetNestedField(body, "here", "metadata", "annotations", "newcomer"))
	_, err := apply(t, client, "newcomer", body)
	require.NoError(t, err, "%s %s", s.plural, name)
	less := s.bare(newName, name)
	require.NoError(t, unstructured.SetNestedField(less, "v", "metadata", "labels", "k"))
	obj, err := apply(t, client, owner, less)
	require.NoError(t, err, "%s %s", s.plural, name)
	_, found, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "text")
	require.NoError(t, err)
	require.False(t, found, "%s %s: a field that its owner stopped applying is still there", s.plural, name)
	require.Equal(t, map[string]string{"newcomer": "here"}, obj.GetAnnotations(), "html was the owner's")
	for _, entry := range obj.GetManagedFields() {
		require.Equal(t, group+"/"+newName, entry.APIVersion)
	}
}
