package native_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/native"
)

func TestFieldNames(t *testing.T) {
	require.Equal(t, map[int]string{1: "metadata", 2: "spec", 3: "status"},
		native.FieldNames(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
	require.Equal(t, map[int]string{1: "metadata", 2: "data", 3: "type", 4: "stringData", 5: "immutable"},
		native.FieldNames(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}))
	require.Nil(t, native.FieldNames(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}))
}
