package storageversion_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/transform"
)

// life is a CRD whose versions are added and removed, with a migration of the snapshot between the
// steps.
type life struct {
	*cluster
	machine, part *shape
	snapshots     map[string]string // the migrated snapshot of each step
}

// TestServerLife takes a CRD through four steps: one version; a second version as the storage
// version; the first version unserved; the first version removed.
func TestServerLife(t *testing.T) {
	t.Parallel()
	l := &life{machine: shapes()[0], part: shapes()[2], snapshots: map[string]string{}}
	l.machine.plural, l.machine.kind = "machines", "Machine"
	l.cluster = startCluster(t, "")
	l.begin(t)
	l.second(t)
	l.unserve(t)
	l.drop(t)
	l.back(t)
	r, err := transform.Run(t.Context(), transform.Options{In: l.snapshots["gone"],
		Out: filepath.Join(t.TempDir(), "refused.db")},
		storageversion.New(storageversion.Options{CRDs: []string{l.machine.crdName()}, To: oldName}))
	require.ErrorIs(t, err, transform.ErrRefused, "no way back")
	require.Equal(t, []string{"unlisted-version"}, codes(r))
}

func codes(r *transform.Report) (all []string) {
	for _, p := range r.Problems {
		all = append(all, p.Code.Name)
	}
	return all
}

// step migrates the present cluster, and continues with a cluster restored from the result.
func (l *life) step(t *testing.T, name string, allow ...string) *transform.Report {
	t.Helper()
	in := l.save(t)
	l.close()
	out, r := migrate(t, in, storageversion.Options{}, allow...)
	l.snapshots[name] = out
	l.cluster = restore(t, out)
	return r
}

// versions returns the apiVersions of an object's managedFields, without the group.
func (l *life) versions(t *testing.T, name string) (all []string) {
	t.Helper()
	obj, err := l.of(l.machine, newName).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		obj, err = l.of(l.machine, oldName).Get(t.Context(), name, metav1.GetOptions{})
	}
	require.NoError(t, err)
	for _, entry := range obj.GetManagedFields() {
		all = append(all, entry.Manager+" "+strings.TrimPrefix(entry.APIVersion, group+"/"))
	}
	return all
}

func (l *life) begin(t *testing.T) {
	for _, s := range []*shape{l.machine, l.part} {
		crd := s.definition(t)
		crd.Spec.Versions = crd.Spec.Versions[:1]
		_, err := l.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd,
			metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return isEstablished(l.crd(t, l.machine.crdName())) && isEstablished(l.crd(t, l.part.crdName()))
	}, 30*time.Second, 20*time.Millisecond)
	l.establish(t)
	for _, name := range []string{"old", "mixed", "plain"} {
		body := l.machine.bare(oldName, name)
		require.NoError(t, unstructured.SetNestedMap(body, map[string]any{"size": int64(1), "text": "t",
			"oldOnly": "x"}, "spec"))
		var err error
		if name == "plain" {
			_, err = l.of(l.machine, oldName).Create(t.Context(), &unstructured.Unstructured{Object: body},
				metav1.CreateOptions{FieldManager: "creator"})
		} else {
			_, err = apply(t, l.of(l.machine, oldName), "gitops", body)
		}
		require.NoError(t, err)
	}
	r := l.step(t, "one")
	require.Equal(t, transform.Unchanged, r.Outcome, "nothing to do")
	require.Equal(t, []string{oldName}, resource(t, r, l.machine.crdName()).StoredVersions.After)
	require.Equal(t, []string{"gitops v1alpha1"}, l.versions(t, "old"))
}

func (l *life) second(t *testing.T) {
	for _, s := range []*shape{l.machine, l.part} {
		require.NoError(t, l.updateCRD(t, s.crdName(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = append(crd.Spec.Versions, s.definition(t).Spec.Versions[1])
			storeAt(newName)(crd)
		}))
	}
	l.restart(t)
	for name, version := range map[string]string{"new": newName, "late": oldName} { // both stored at the new version
		body := l.machine.bare(version, name)
		require.NoError(t, unstructured.SetNestedMap(body, map[string]any{"size": int64(2), "text": "t"}, "spec"))
		_, err := apply(t, l.of(l.machine, version), "gitops", body)
		require.NoError(t, err)
	}
	mixed := l.machine.bare(newName, "mixed") // a second manager, at the new version
	require.NoError(t, unstructured.SetNestedField(mixed, int64(8), "spec", "big"))
	_, err := apply(t, l.of(l.machine, newName), "tuner", mixed)
	require.NoError(t, err)
	require.Equal(t, []string{oldName, newName}, l.crd(t, l.machine.crdName()).Status.StoredVersions)

	r := l.step(t, "two", "pruned-field")
	k := resource(t, r, l.machine.crdName())
	require.Equal(t, map[string]int{oldName: 2, newName: 3}, k.Found, "the apply has rewritten mixed")
	require.Equal(t, []string{newName}, k.StoredVersions.After)
	require.Equal(t, 0, k.Refused)
	for name, want := range map[string][]string{
		"old": {"gitops v1beta1"}, "mixed": {"gitops v1beta1", "tuner v1beta1"}, "plain": {"creator v1beta1"},
		"new": {"gitops v1beta1"}, "late": {"gitops v1beta1"},
	} {
		require.ElementsMatch(t, want, l.versions(t, name), name)
		obj, err := l.of(l.machine, newName).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "from-beta", obj.Object["spec"].(map[string]any)["betaDefault"])
		require.Equal(t, int64(1), obj.GetGeneration()-map[string]int64{"mixed": 1}[name], name)
		l.elides(t, l.machine, name)
	}
}

// unserve checks that owner references to an unserved version are changed, in native objects too.
func (l *life) unserve(t *testing.T) {
	owner, err := l.of(l.machine, newName).Get(t.Context(), "plain", metav1.GetOptions{})
	require.NoError(t, err)
	owners := []metav1.OwnerReference{
		{APIVersion: group + "/" + oldName, Kind: "Machine", Name: "plain", UID: owner.GetUID()},
		{APIVersion: group + "/" + newName, Kind: "Machine", Name: "new", UID: "there"},
		{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "pod"},
	}
	part := &unstructured.Unstructured{Object: l.part.bare(newName, "owned")}
	part.SetOwnerReferences(owners)
	_, err = l.of(l.part, newName).Create(t.Context(), part, metav1.CreateOptions{FieldManager: "creator"})
	require.NoError(t, err)
	const secret = "/registry/secrets/default/owned"
	l.put(t, secret, envelope(t, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "owned", Namespace: "default", UID: "secret", OwnerReferences: owners},
		Data:       map[string][]byte{"k": {0, 1}},
	}))
	require.NoError(t, l.updateCRD(t, l.machine.crdName(), setServed(oldName, false)))

	r := l.step(t, "unserved")
	require.Equal(t, transform.Changes{Updated: 2}, r.Changes)
	require.Len(t, r.References, 2)
	want := append([]metav1.OwnerReference{}, owners...)
	want[0].APIVersion = group + "/" + newName
	part, err = l.of(l.part, newName).Get(t.Context(), "owned", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, want, part.GetOwnerReferences())
	l.elides(t, l.part, "owned")
	value, _ := l.record(t, secret)
	read, err := encoding.Parse([]byte(value))
	require.NoError(t, err)
	var got corev1.Secret
	require.NoError(t, got.Unmarshal(read.Raw))
	require.Equal(t, want, got.OwnerReferences)
	require.Equal(t, map[string][]byte{"k": {0, 1}}, got.Data)
}

// envelope returns a native object as kube-apiserver stores it.
func envelope(t *testing.T, obj runtime.Object) string {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	data, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), obj)
	require.NoError(t, err)
	return string(data)
}

func (l *life) drop(t *testing.T) {
	require.NoError(t, l.dropVersion(t, l.machine.crdName(), oldName))
	for _, name := range []string{"old", "mixed", "plain", "new", "late"} {
		_, err := apply(t, l.of(l.machine, newName), "newcomer", l.machine.bare(newName, name))
		require.NoError(t, err, name)
		l.elides(t, l.machine, name)
	}
	r := l.step(t, "gone")
	require.Equal(t, transform.Unchanged, r.Outcome, "nothing to do")
	for _, name := range []string{"old", "mixed", "new", "late"} {
		l.stopsApplying(t, newName, name)
	}
	_, err := l.of(l.machine, newName).Patch(t.Context(), "plain", types.MergePatchType, []byte(`{"spec":{"size":5}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
}

// stopsApplying lets the owner apply less: its omitted fields are removed, fields of no manager
// stay.
func (l *life) stopsApplying(t *testing.T, version, name string) {
	t.Helper()
	body := l.machine.bare(version, name)
	require.NoError(t, unstructured.SetNestedField(body, int64(3), "spec", "size"))
	obj, err := apply(t, l.of(l.machine, version), "gitops", body)
	require.NoError(t, err, name)
	spec := obj.Object["spec"].(map[string]any)
	require.Equal(t, int64(3), spec["size"], name)
	require.NotContains(t, spec, "text", name)
	require.Contains(t, spec, map[string]string{oldName: "alphaDefault", newName: "betaDefault"}[version], name)
}

// back migrates the snapshot of the second step back to the first version.
func (l *life) back(t *testing.T) {
	l.close()
	in := l.snapshots["two"]
	_, err := transform.Run(t.Context(), transform.Options{In: in, Out: filepath.Join(t.TempDir(), "refused.db")},
		storageversion.New(storageversion.Options{To: oldName}))
	require.ErrorIs(t, err, transform.ErrRefused, "the new version's fields get lost")
	out, r := migrate(t, in, storageversion.Options{To: oldName}, "pruned-field")
	k := resource(t, r, l.machine.crdName())
	require.Equal(t, oldName, k.StorageVersion)
	require.Equal(t, map[string]int{newName: 5}, k.Found)
	require.Equal(t, storageversion.StoredVersions{Before: []string{newName}, After: []string{oldName}},
		k.StoredVersions)
	l.cluster = restore(t, out)
	crd := l.crd(t, l.machine.crdName())
	require.Equal(t, int64(3), crd.Generation, "created, given a version, flipped back")
	require.Equal(t, []string{oldName}, crd.Status.StoredVersions)
	require.True(t, crd.Spec.Versions[0].Storage)
	for _, name := range []string{"old", "mixed", "plain", "new", "late"} {
		value, revision := l.record(t, l.machine.key(name))
		require.Contains(t, value, `{"apiVersion":"demo.example.com/v1alpha1","kind":"Machine"`)
		require.NotContains(t, value, "betaDefault")
		obj, err := l.of(l.machine, oldName).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		_, err = l.of(l.machine, oldName).Update(t.Context(), obj, metav1.UpdateOptions{FieldManager: "probe"})
		require.NoError(t, err)
		_, err = l.of(l.machine, oldName).UpdateStatus(t.Context(), obj, metav1.UpdateOptions{FieldManager: "probe"})
		require.NoError(t, err)
		_, err = apply(t, l.of(l.machine, oldName), "probe", l.machine.bare(oldName, name))
		require.NoError(t, err, name)
		_, now := l.record(t, l.machine.key(name))
		require.Equal(t, revision, now, name)
	}
	require.NoError(t, l.dropVersion(t, l.machine.crdName(), newName))
	l.step(t, "back")
	for _, name := range []string{"old", "mixed", "new", "late"} {
		l.stopsApplying(t, oldName, name)
	}
}
