package native

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
)

// TestHeads checks that heads have the labels and writers of whole objects, for random objects of
// every kind, sound and damaged.
func TestHeads(t *testing.T) {
	all, read, heads := 0, 0, Heads{}
	for gvk := range messages() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		for seed := range int64(4) {
			raw := encoded(t, gvk, seed)
			for cut := range 8 { // from the end
				v := encoding.Value{Format: encoding.FormatProtobuf, GVK: gvk, Raw: raw[:max(0, len(raw)-cut*cut)]}
				head := heads.Decode(v)
				all++
				if head == nil {
					continue
				}
				read++
				whole, err := DecodeParsed(v)
				require.NoError(t, err, gvk)
				object := unstructured.Unstructured{Object: whole}
				require.Equal(t, object.GetLabels(), head.GetLabels(), gvk)
				require.Equal(t, withoutFields(object.GetManagedFields()), withoutFields(head.GetManagedFields()), gvk)
			}
		}
	}
	require.Greater(t, read, all/50, "of %d", all)
	require.Nil(t, heads.Decode(encoding.Value{Format: encoding.FormatJSON, Raw: []byte("{}")}))
}

// withoutFields formats managedFields without their field sets, with times as stored.
func withoutFields(entries []metav1.ManagedFieldsEntry) (out []string) {
	for _, e := range entries {
		e.FieldsV1 = nil
		if e.Time != nil {
			e.Time = &metav1.Time{Time: e.Time.UTC()}
		}
		out = append(out, e.String())
	}
	return out
}
