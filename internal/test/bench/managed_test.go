package bench

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// manage sets the fields in managedFields like an API server: the status has an entry of its own.
func (m maker) manage(o runtime.Object) {
	object := o.DeepCopyObject().(metav1.Object)
	managed := object.GetManagedFields()
	if len(managed) != 1 {
		return
	}
	object.SetManagedFields(nil)
	object.SetName("")
	object.SetNamespace("")
	object.SetUID("")
	object.SetCreationTimestamp(metav1.Time{})
	typed, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(object.(runtime.Object))
	require.NoError(m, err)
	all, err := typed.ToFieldSet()
	require.NoError(m, err)
	path := fieldpath.MakePathOrDie
	all = all.Difference(fieldpath.NewSet(path("apiVersion"), path("kind"), path("metadata"), path("spec"),
		path("status"), path("metadata", "creationTimestamp")))
	other := all.RecursiveDifference(fieldpath.NewSet(path("status")))
	managed[0].FieldsV1 = m.fields(other)
	if status := all.Difference(other); !status.Empty() {
		entry := managed[0]
		entry.Subresource, entry.FieldsV1 = "status", m.fields(status)
		managed = append(managed, entry)
	}
	o.(metav1.Object).SetManagedFields(managed)
}

func (m maker) fields(set *fieldpath.Set) *metav1.FieldsV1 {
	text, err := set.ToJSON()
	require.NoError(m, err)
	return metav1.NewFieldsV1(string(text))
}

// TestSizes checks that generated objects have the sizes of real ones, with managedFields.
func TestSizes(t *testing.T) {
	m := maker{t, rand.New(rand.NewPCG(1, 1))}
	for _, k := range m.kinds() {
		switch k.resource {
		case "pods", "deployments", "secrets":
			for _, p := range k.current {
				require.Greater(t, len(p.value), 2000, k.resource)
				require.Less(t, len(p.value), 8192, k.resource)
			}
		}
	}
	var pod corev1.Pod
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(m.encode(m.pod()), nil, &pod)
	require.NoError(t, err)
	managed := decoded.(*corev1.Pod).ManagedFields
	require.Len(t, managed, 2)
	require.Contains(t, managed[0].FieldsV1.GetRawString(),
		`"k:{\"name\":\"OPTION_0\"}":{".":{},"f:name":{},"f:value":{}}`)
	require.Contains(t, managed[1].FieldsV1.GetRawString(),
		`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}"`)
}
