package native

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// bytesField appends a field with a length to a message.
func bytesField(message []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, number, protowire.BytesType), content)
}

// TestPruneMemory checks that the memory for hostile objects is a small multiple of their size.
func TestPruneMemory(t *testing.T) {
	var names, numbers strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&names, `"n%d":1,`, i)
		tag := protowire.AppendTag(nil, protowire.Number(1000+i), protowire.VarintType)
		numbers.Write(protowire.AppendVarint(tag, 1))
	}
	key := strings.Repeat("k", 100_000)
	capacity := bytesField(bytesField(nil, 1, []byte(key)), 2, []byte(numbers.String()))
	spec := bytesField(nil, 6, bytesField(nil, 3, capacity))
	for _, test := range []struct {
		format     encoding.Format
		kind, body string
	}{
		{encoding.FormatJSON, "v1 ConfigMap", `{` + names.String() + `"data":{}}`},
		{encoding.FormatJSON, "resource.k8s.io/v1 ResourceSlice",
			`{"spec":{"devices":[{"capacity":{"` + key + `":{` + names.String() + `"value":"1"}}}]}}`},
		{encoding.FormatProtobuf, "resource.k8s.io/v1 ResourceSlice", string(bytesField(nil, 2, spec))},
	} {
		apiVersion, kind, _ := strings.Cut(test.kind, " ")
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		v := encoding.Value{Format: test.format, GVK: gvk, Raw: []byte(test.body)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Len(t, UnknownFields(v, LinkedRelease), 5_000)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), test.kind)
	}
}

// TestLostMemory checks that equal content of any depth costs no path.
func TestLostMemory(t *testing.T) {
	deep := func() any {
		var content any = "x"
		for range 2_000 {
			content = map[string]any{strings.Repeat("k", 100): content}
		}
		return content
	}
	a, b := map[string]any{"same": deep(), "other": "a"}, map[string]any{"same": deep()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Equal(t, []string{"other"}, lost("", a, b))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

// TestUnknownNumberTwice checks that an empty last element does not hide the others.
func TestUnknownNumberTwice(t *testing.T) {
	v := encoding.Value{Format: encoding.FormatProtobuf, GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	v.Raw = bytesField(bytesField(nil, 99, []byte("a")), 99, nil)
	require.Equal(t, []string{"field 99"}, UnknownFields(v, LinkedRelease))
}
