package storageversion_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/transform"
)

// uncached makes a list report a broken object at once; a watch cache retries until the client
// gives up.
const uncached = "--watch-cache=false"

// unmigrated is the control: the behavior of a server without the migration, and the repair of the
// worst damage.
func (w *world) unmigrated(t *testing.T) {
	c := restore(t, w.before, uncached)
	defer c.close()
	c.broken = true
	for _, s := range w.shapes {
		require.ErrorContains(t, c.dropVersion(t, s.crdName(), oldName), "missing from spec.versions", s.plural)
	}
	widgets, rigs, twins, hermits := w.shapes[0], w.shapes[1], w.shapes[2], w.shapes[4]

	// storedVersions trimmed by hand, although objects are left: the server accepts the update, and
	// then all reads fail.
	c.setStored(t, widgets, newName)
	require.NoError(t, c.dropVersion(t, widgets.crdName(), oldName))
	client := c.of(widgets, newName)
	var err error
	require.Eventually(t, func() bool { // the handler uses the update a moment later
		_, err = client.Get(t.Context(), "full-put", metav1.GetOptions{})
		return err != nil
	}, 30*time.Second, 20*time.Millisecond)
	require.ErrorContains(t, err, "request to convert CR from an invalid group/version: demo.example.com/v1alpha1")
	_, err = client.List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "request to convert CR from an invalid group/version: demo.example.com/v1alpha1")
	require.Error(t, client.Delete(t.Context(), "full-put", metav1.DeleteOptions{}))

	// Wrong lists. A server accepts any list, and fails at the next update of the spec.
	c.setStored(t, rigs, "v9")
	require.ErrorContains(t, c.dropVersion(t, rigs.crdName(), oldName), "missing from spec.versions")
	c.setStored(t, hermits, newName)
	c.api.Close() // a running server would write an empty list as one with the storage version
	crd, _ := c.record(t, crdDir+twins.crdName())
	const both = `"storedVersions":["v1alpha1","v1beta1"]`
	require.Contains(t, crd, both)
	c.put(t, crdDir+twins.crdName(), strings.Replace(crd, both, `"storedVersions":[]`, 1))
	w.mend(t, c.save(t), widgets, rigs, twins, hermits)
}

// setStored writes status.storedVersions, as users do by hand.
func (c *cluster) setStored(t *testing.T, s *shape, versions ...string) {
	t.Helper()
	crd := c.crd(t, s.crdName())
	crd.Status.StoredVersions = versions
	_, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().UpdateStatus(t.Context(), crd,
		metav1.UpdateOptions{})
	require.NoError(t, err)
}

// mend migrates the cluster that unmigrated leaves.
func (w *world) mend(t *testing.T, broken string, widgets, rigs, twins, hermits *shape) {
	t.Helper()
	r, err := transform.Run(t.Context(), transform.Options{In: broken, Out: filepath.Join(t.TempDir(), "refused.db"),
		Allow: []string{"pruned-field"}}, storageversion.New(storageversion.Options{}))
	require.ErrorIs(t, err, transform.ErrRefused)
	unlisted := 0
	for _, p := range r.Problems {
		if p.Level == finding.Error && p.Code.Name != "pruned-field" {
			require.Equal(t, "unlisted-version", p.Code.Name)
			require.True(t, strings.HasPrefix(p.Key, "/registry/demo.example.com/widgets/"), p.Key)
			unlisted++
		}
	}
	k := resource(t, r, widgets.crdName())
	require.Equal(t, k.Found[oldName], unlisted)
	require.Equal(t, []string{newName, oldName}, k.StoredVersions.After, "the truth: the old version is there")

	out, r := migrate(t, broken, storageversion.Options{Mappings: []storageversion.Mapping{{Group: group, Old: oldName,
		New: newName}}}, "pruned-field")
	for s, before := range map[*shape][]string{widgets: {newName}, rigs: {"v9"}, twins: {}, hermits: {newName}} {
		require.Equal(t, storageversion.StoredVersions{Before: before, After: []string{newName}},
			resource(t, r, s.crdName()).StoredVersions, s.plural)
	}
	c := restore(t, out)
	defer c.close()
	w.listed(t, c)
	for _, key := range w.keys() {
		c.elides(t, w.of[key], w.names[key])
	}
	for _, s := range []*shape{rigs, twins, hermits} {
		require.NoError(t, c.dropVersion(t, s.crdName(), oldName), s.plural)
	}
	require.NoError(t, c.updateCRD(t, widgets.crdName(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.ShortNames = []string{"wdg"}
	}))
	obj, err := c.of(widgets, newName).Get(t.Context(), "full-put", metav1.GetOptions{})
	require.NoError(t, err)
	spec := obj.Object["spec"].(map[string]any)
	require.Equal(t, "from-beta", spec["betaDefault"])
	require.Equal(t, int64(9007199254740993), spec["big"])
	require.NotContains(t, spec, "oldOnly")
	for _, s := range []*shape{widgets, rigs, hermits} {
		c.owns(t, s, "owned-put", "gitops")
	}
}

// keptManagedFields is the control for managedFields: without relabeling, any server-side apply
// fails after the removal of the old version, and a migration of the broken cluster repairs
// server-side apply.
func (w *world) keptManagedFields(t *testing.T) {
	out, _ := migrate(t, w.before, storageversion.Options{KeepManagedFields: true}, "pruned-field")
	c := restore(t, out)
	defer c.close()
	s := w.shapes[0]
	client := c.of(s, newName)
	name := "owned-put"
	_, err := apply(t, client, "newcomer", s.bare(newName, name))
	require.ErrorContains(t, err, "field not declared in schema") // the old version is still served
	require.NoError(t, c.dropVersion(t, s.crdName(), oldName))
	for _, manager := range []string{"newcomer", "gitops"} {
		applyFails(t, client, manager, s.bare(newName, name),
			"request to convert CR to an invalid group/version: demo.example.com/v1alpha1")
	}
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(obj.Object, int64(4), "spec", "size"))
	_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "editor"})
	require.NoError(t, err)
	_, err = apply(t, client, "newcomer", s.bare(newName, name))
	require.ErrorContains(t, err, "request to convert CR to an invalid group/version", "a PUT does not heal it")

	out, r := migrate(t, c.save(t), storageversion.Options{})
	k := resource(t, r, s.crdName())
	require.Equal(t, k.Rewritten, k.ManagedFields)
	require.Positive(t, k.Rewritten)
	again := restore(t, out)
	defer again.close()
	again.owns(t, s, name, "gitops")
}
