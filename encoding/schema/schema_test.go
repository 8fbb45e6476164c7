package schema

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// readFile returns a file of testdata.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

// readCRD parses a file of testdata.
func readCRD(t testing.TB, name string) *CRD {
	t.Helper()
	return parseCRD(t, string(readFile(t, name)))
}

func parseCRD(t testing.TB, data string) *CRD {
	t.Helper()
	crd, err := ParseCRD([]byte(data))
	require.NoError(t, err)
	return crd
}

func version(t testing.TB, crd *CRD, name string) *Version {
	t.Helper()
	v, err := crd.Version(name)
	require.NoError(t, err)
	return v
}

// object decodes JSON like a server's decoder of stored custom resources.
func object(t testing.TB, json string) map[string]any {
	t.Helper()
	obj, _, err := encoding.DecodeObject([]byte(json))
	require.NoError(t, err)
	return obj
}

// text encodes an object in its stored form.
func text(t testing.TB, obj map[string]any) string {
	t.Helper()
	data, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	return string(data)
}

// crdOf returns a small stored CRD of kind Thing with one version v1 and extra spec fields (JSON
// members with a leading comma, or nothing).
func crdOf(version, extra string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition",
"metadata":{"name":"things.example.com","uid":"1","generation":1},
"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
"versions":[` + version + `]` + extra + `}}`
}

// thing returns v1 of a crdOf with this structural schema.
func thing(t testing.TB, schema string) *Version {
	t.Helper()
	return version(t, parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":`+schema+
		`}}`,
		`,"preserveUnknownFields":false`)), "v1")
}
