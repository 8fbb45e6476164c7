package schema

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// The edited text equals the library's encoding of the changed CRD.
func TestStoredVersionEditsEqualTheCodec(t *testing.T) {
	for _, name := range []string{"crd.etcd", "ippools.etcd", "networkpolicies.etcd"} {
		data := readFile(t, name)
		for _, versions := range [][]string{{"v1beta1"}, {"v1", "v2", "v<3>"}, {}, nil} {
			changed := parseCRD(t, string(data))
			changed.internal.Status.StoredVersions = append([]string{}, versions...)
			want, err := encode(changed.internal)
			require.NoError(t, err)
			got, err := SetStoredVersions(data, versions)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
	}
	data := readFile(t, "crd.etcd")
	changed := parseCRD(t, string(data))
	changed.internal.Generation++
	for i := range changed.internal.Spec.Versions {
		changed.internal.Spec.Versions[i].Storage = changed.internal.Spec.Versions[i].Name == "v1alpha1"
	}
	want, err := encode(changed.internal)
	require.NoError(t, err)
	got, err := SetStorageVersion(data, "v1alpha1")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	back, err := SetStorageVersion(got, "v1beta1")
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(data), `"generation":2`, `"generation":4`, 1), string(back))
}

func TestStoredVersionEditsOfNothing(t *testing.T) {
	for _, name := range []string{"crd.etcd", "ippools.etcd"} {
		data := readFile(t, name)
		crd := parseCRD(t, string(data))
		same, err := SetStoredVersions(data, crd.StoredVersions())
		require.NoError(t, err)
		require.Same(t, &data[0], &same[0])
		same, err = SetStorageVersion(data, crd.StorageVersion())
		require.NoError(t, err)
		require.Same(t, &data[0], &same[0])
	}
}

// The text of all other fields stays, including unknown fields.
func TestStoredVersionEditsOfText(t *testing.T) {
	const head = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",` +
		`"metadata":{"name":"things.example.com","future":{"b":1,"a":"<&>"}},`
	const spec = `"spec":{"group":"example.com","names":{"plural":"things","kind":"Thing"},"scope":"Cluster",` +
		`"new":1e3,"versions":[` +
		`{"name":"v1","served":true,"storage":true,"newer":[ 1 ]},{"name":"v2","served":false},{"name":"v3",` +
		`"storage":false,"served":true}]}`
	for _, c := range []struct{ before, stored, flipped string }{
		{
			head + spec + "}\n", head + spec + `,"status":{"storedVersions":["v1","v2"]}}` + "\n",
			strings.Replace(head, `"a":"<&>"}`, `"a":"<&>"},"generation":1`, 1) +
				strings.Replace(strings.Replace(spec, `"storage":true`, `"storage":false`, 1),
					`"served":false}`, `"served":false,"storage":true}`, 1) + "}\n",
		},
		{head + spec + `,"status":{"x":1,"conditions":null}}`,
			head + spec + `,"status":{"x":1,"conditions":null,"storedVersions":["v1","v2"]}}`, ""},
		{head + spec + `,"status":{"storedVersions":null,"x":1}}`,
			head + spec + `,"status":{"storedVersions":["v1","v2"],"x":1}}`, ""},
		{head + spec + `,"status":{"storedVersions":[]}}`, head + spec + `,"status":{"storedVersions":["v1","v2"]}}`,
			""},
	} {
		stored, err := SetStoredVersions([]byte(c.before), []string{"v1", "v2"})
		require.NoError(t, err)
		require.Equal(t, c.stored, string(stored))
		require.Equal(t, []string{"v1", "v2"}, parseCRD(t, string(stored)).StoredVersions())
		flipped, err := SetStorageVersion([]byte(c.before), "v2")
		require.NoError(t, err)
		require.Equal(t, "v2", parseCRD(t, string(flipped)).StorageVersion())
		if c.flipped != "" {
			require.Equal(t, c.flipped, string(flipped))
		}
	}
}

// v1beta1 keeps fields shared by all versions above them; the oldest CRDs have no versions.
func TestStoredVersionEditsOfV1beta1(t *testing.T) {
	hoisted := parseCRD(t,
		crdOf(`{"name":"v1","served":true,"storage":true},{"name":"v2","served":false,"storage":false}`,
			`,"preserveUnknownFields":false,"validation":{"openAPIV3Schema":{"type":"object"}},`+
				`"subresources":{"status":{}}`))
	data, err := encode(hoisted.internal)
	require.NoError(t, err)
	flipped, err := SetStorageVersion(data, "v2")
	require.NoError(t, err)
	crd := parseCRD(t, string(flipped))
	require.Equal(t, "v2", crd.StorageVersion())
	require.Equal(t, int64(2), crd.Object().Generation)
	again, err := encode(crd.internal)
	require.NoError(t, err)
	require.Equal(t, string(again), string(flipped))

	oldest :=
		[]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
"spec":{"group":"example.com","version":"v1","names":{"plural":"things","kind":"Thing"},"scope":"Namespaced"}}`)
	same, err := SetStorageVersion(oldest, "v1")
	require.NoError(t, err)
	require.Same(t, &oldest[0], &same[0])
	_, err = SetStorageVersion(oldest, "v2")
	require.ErrorIs(t, err, ErrNoVersion)
	stored, err := SetStoredVersions(oldest, []string{"v1"})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(oldest[:len(oldest)-1]), "\n", "", 1)+
		`,"status":{"storedVersions":["v1"]}}`, string(stored))
}

func TestStoredVersionEditErrors(t *testing.T) {
	asCBOR, err := encoding.EncodeObject(object(t, string(readFile(t, "crd.etcd"))), encoding.FormatCBOR)
	require.NoError(t, err)
	for _, c := range []struct {
		data []byte
		want error
	}{{asCBOR, encoding.ErrUnknownFormat}, {nil, encoding.ErrUnknownFormat},
		{[]byte("k8s:enc:aesgcm:v1:k:x"), encoding.ErrEncrypted}} {
		_, err := SetStoredVersions(c.data, []string{"v1"})
		require.ErrorIs(t, err, c.want)
		_, err = SetStorageVersion(c.data, "v1")
		require.ErrorIs(t, err, c.want)
	}
	for _, version := range []string{"v9", ""} {
		for _, data := range []string{string(readFile(t, "crd.etcd")), `{}`, `{"spec":null}`,
			`{"spec":{"versions":[]}}`, crdOf(`{"name":""}`, "")} {
			_, err := SetStorageVersion([]byte(data), version)
			require.ErrorIs(t, err, ErrNoVersion)
		}
	}
	for _, data := range []string{`{"spec":[]}`, `{"spec":{"versions":{}}}`, `{"spec":{"versions":[5]}}`,
		`{"metadata":{"generation":"1"},"spec":{"versions":[{"name":"v1"}]}}`, `{"spec":`} {
		_, err := SetStorageVersion([]byte(data), "v1")
		require.Error(t, err, data)
		require.NotErrorIs(t, err, ErrNoVersion)
	}
	_, err = SetStoredVersions([]byte(`{"status":[]}`), nil)
	require.Error(t, err)
}

// FuzzStoredVersionEdits checks that the rest of any edited text is kept.
func FuzzStoredVersionEdits(f *testing.F) {
	f.Add(readFile(f, "crd.etcd"), "v1alpha1")
	f.Add([]byte(crdOf(`{"name":"v1","served":true,"storage":true}`, "")), "v1")
	f.Fuzz(func(t *testing.T, data []byte, version string) {
		if stored, err := SetStoredVersions(data, []string{version}); err == nil {
			require.True(t, json.Valid(bytes.TrimSpace(stored)))
			again, err := SetStoredVersions(stored, []string{version})
			require.NoError(t, err)
			require.Equal(t, string(stored), string(again))
		}
		if flipped, err := SetStorageVersion(data, version); err == nil {
			again, err := SetStorageVersion(flipped, version)
			require.NoError(t, err)
			require.Equal(t, string(flipped), string(again))
		}
	})
}
