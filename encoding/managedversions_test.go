package encoding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManagedVersions(t *testing.T) {
	const text = `{"metadata":{"managedFields":[{"apiVersion":"b/v1"},{"apiVersion":"a/v1","fieldsV1":{"apiVersion":{}}},{"apiVersion":"b/v1"},{}]}}`
	obj, _, err := DecodeObject([]byte(text))
	require.NoError(t, err)
	cbor, err := EncodeObject(obj, FormatCBOR)
	require.NoError(t, err)
	for _, data := range [][]byte{[]byte(text), cbor} {
		got, err := ManagedVersions(data)
		require.NoError(t, err)
		require.Equal(t, []string{"", "a/v1", "b/v1"}, got)
	}
	for _, bad := range []string{"{", `{"metadata":1}`, `{"metadata":{"managedFields":{}}}`, `{"metadata":{"managedFields":[1]}}`, `{"metadata":{"managedFields":[{"apiVersion":1}]}}`} {
		_, err := ManagedVersions([]byte(bad))
		require.Error(t, err, bad)
	}
	got, err := ManagedVersions([]byte(`{"metadata":{}}`))
	require.NoError(t, err)
	require.Empty(t, got)
}
