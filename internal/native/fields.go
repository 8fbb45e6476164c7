package native

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// FieldNames returns the JSON names of the top-level fields of a kind by their protobuf numbers;
// nil for an unknown kind.
func FieldNames(gvk schema.GroupVersionKind) map[int]string {
	t, known := scheme.Scheme.AllKnownTypes()[gvk]
	if !known || t.Kind() != reflect.Struct {
		return nil
	}
	names := map[int]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",") // bytes,2,opt,name=spec
		if len(parts) < 2 {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if number, err := strconv.Atoi(parts[1]); err == nil && name != "" {
			names[number] = name
		}
	}
	return names
}
