package native

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// Heads decodes labels and the writers in managedFields, of stored protobuf of any kind, with
// Direct. A Heads is for one goroutine.
type Heads map[schema.GroupVersionKind]*Direct

// Decode returns an object with its labels, and its managedFields without their field sets. It
// returns nil if only Decode of the value can tell, which may fail.
func (h Heads) Decode(v encoding.Value) metav1.Object {
	if v.Format != encoding.FormatProtobuf {
		return nil
	}
	obj, err := scheme.Scheme.New(v.GVK)
	if err != nil {
		return nil
	}
	head, ok := obj.(metav1.Object)
	if !ok {
		return nil
	}
	if h[v.GVK] == nil {
		h[v.GVK] = NewDirect(obj, map[reflect.Type][]string{
			reflect.TypeOf(obj).Elem():           {"ObjectMeta"},
			reflect.TypeFor[metav1.ObjectMeta](): {"Labels", "ManagedFields"},
			reflect.TypeFor[metav1.ManagedFieldsEntry](): {"Manager", "Operation", "APIVersion", "Time",
				"FieldsType", "Subresource"},
		})
	}
	if !h[v.GVK].Decode(v, obj) {
		return nil
	}
	return head
}
