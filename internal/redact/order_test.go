package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrder checks that an object is redacted alike each time: also if its packed texts exceed
// the bounds of an object, so that some of them count as secrets.
func TestOrder(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(strings.Repeat("all is well ", 100)))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	var first map[string]any
	for range 5 {
		entries := map[string]any{}
		for i := range 10 {
			entries[fmt.Sprint(i)] = fmt.Sprint(i, " ", base64.StdEncoding.EncodeToString(packed.Bytes()))
		}
		w := newWalker(nil)
		w.unpacker.left = 5000
		require.True(t, w.walk(entries, ""))
		require.False(t, isRedacted(entries["0"]))
		if first == nil {
			first = entries
		}
		require.Equal(t, first, entries)
	}
	schema := `{apiVersion: apis.kcp.io/v1alpha1, kind: APIResourceSchema, spec: {password: {default: hunter2-7f3a}}}`
	for range 5 {
		require.Empty(t, SecretsIn([]byte("/registry/a/b/c"), map[string]any{"a": schema}, Brief))
	}
	require.False(t, mayName("kd"))
}
