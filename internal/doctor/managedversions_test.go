package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

func TestManagedVersions(t *testing.T) {
	const text = `{"metadata":{"managedFields":[{"apiVersion":"b/v1"},{"apiVersion":"a/v1","fieldsV1":{"apiVersion":{}}},{"apiVersion":"b/v1"},{}]}}`
	obj, _, err := encoding.DecodeObject([]byte(text))
	require.NoError(t, err)
	cbor, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	for _, data := range [][]byte{[]byte(text), cbor} {
		require.Equal(t, [][]byte{{}, []byte("a/v1"), []byte("b/v1")}, managedVersions(data))
	}
	for _, bad := range []string{"{", `{"metadata":1}`, `{"metadata":{"managedFields":{}}}`, `{"metadata":{"managedFields":[1]}}`, `{"metadata":{"managedFields":[{"apiVersion":1}]}}`, `{"metadata":{}}`} {
		require.Empty(t, managedVersions([]byte(bad)), bad)
	}
}
