package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

func TestCRDRoundTrip(t *testing.T) {
	for _, name := range []string{"crd.etcd", "ippools.etcd", "networkpolicies.etcd"} {
		data, err := encode(readCRD(t, name).internal)
		require.NoError(t, err)
		require.Equal(t, string(readFile(t, name)), string(data), name)
	}
}

func TestCRDView(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	require.Equal(t, "widgets.demo.example.com", crd.Object().Name)
	require.Equal(t, []string{"v1alpha1", "v1beta1"}, crd.StoredVersions())
	require.Equal(t, "v1beta1", crd.StorageVersion())
	require.Equal(t, schema.GroupKind{Group: "demo.example.com", Kind: "Widget"}, crd.GroupKind())
	require.Equal(t, schema.GroupResource{Group: "demo.example.com", Resource: "widgets"}, crd.GroupResource())
	require.True(t, version(t, crd, "v1alpha1").spec.Subresources.Status != nil, "hoisted to spec.subresources")
	require.Equal(t, "demo.example.com/v1alpha1, Kind=Widget", version(t, crd, "v1alpha1").gvk().String())
	_, err := crd.Version("v9")
	require.ErrorIs(t, err, ErrNoVersion)
}

// v1beta1 stores a schema shared by all versions once, above the versions.
func TestHoistedSchema(t *testing.T) {
	const schema = `{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",` +
		`"properties":{"a":{"type":"string"}}}}}}`
	crd := parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true},{"name":"v2","served":false,"storage":false}`,
		`,"preserveUnknownFields":false,"validation":`+schema))
	for _, name := range []string{"v1", "v2"} {
		obj := object(t, `{"apiVersion":"example.com/`+name+
			`","kind":"Thing","metadata":{"name":"x","generation":1},"spec":{"a":"1","b":2}}`)
		require.Equal(t, []string{"spec.b"}, version(t, crd, name).Prune(obj))
		require.NotNil(t, crd.Object().Spec.Versions[0].Schema)
	}
	data, err := encode(crd.internal)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(data), "openAPIV3Schema"))
}

// The oldest CRDs may have only spec.version, no schema, and no preserveUnknownFields, which then
// means true.
func TestOldestCRD(t *testing.T) {
	crd := parseCRD(
		t, `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
"spec":{"group":"example.com","version":"v1","names":{"plural":"things","kind":"Thing"},"scope":"Namespaced"}}`)
	require.True(t, crd.Object().Spec.PreserveUnknownFields)
	require.Equal(t, "v1", crd.StorageVersion())
	require.Empty(t, crd.StoredVersions(), "raw")
	require.Equal(t, []string{"v1"}, crd.Object().Status.StoredVersions, "defaulted")
	obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"any":{"thing":null}}`)
	require.Empty(t, version(t, crd, "v1").Prune(obj))
	require.Equal(t, map[string]any{"thing": nil}, obj["any"])
	require.NoError(t, version(t, crd, "v1").Default(obj))
	require.Empty(t, version(t, crd, "v1").Validate(t.Context(), obj))
}

func TestNoSchemaPrunesAll(t *testing.T) {
	crd := parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true}`, `,"preserveUnknownFields":false`))
	obj := object(t,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","generation":1},"spec":{"a":1}}`)
	require.Equal(t, []string{"spec"}, version(t, crd, "v1").Prune(obj))
}

// With preserveUnknownFields a schema need not be structural.
func TestPreservedNonStructuralSchema(t *testing.T) {
	const version1 = `{"name":"v1","served":true,"storage":true,` +
		`"schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"a":{"pattern":"^x"}}}}}}}`
	crd := parseCRD(t, crdOf(version1, `,"preserveUnknownFields":true`))
	obj := object(t,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","generation":1},"spec":{"a":"y","b":2}}`)
	v := version(t, crd, "v1")
	require.Empty(t, v.Prune(obj))
	errs := v.Validate(t.Context(), obj)
	require.Len(t, errs, 1)
	require.Contains(t, errs[0].Error(), `spec.a: Invalid value: "y": spec.a in body should match '^x'`)

	_, err := parseCRD(t, crdOf(strings.Replace(version1, `{"pattern":"^x"}`,
		`{"type":"object","items":{"type":"string"},"$ref":"#/x"}`, 1),
		`,"preserveUnknownFields":false`)).Version("v1")
	require.Error(t, err)
}

func TestParsesV1AndCBOR(t *testing.T) {
	stored := readCRD(t, "crd.etcd")
	v1 := stored.Object().DeepCopy()
	v1.TypeMeta.Kind, v1.TypeMeta.APIVersion = "CustomResourceDefinition", apiextensionsv1.SchemeGroupVersion.String()
	asJSON, err := json.Marshal(v1)
	require.NoError(t, err)
	asCBOR, err := encoding.EncodeObject(object(t, string(asJSON)), encoding.FormatCBOR)
	require.NoError(t, err)
	for _, data := range [][]byte{asJSON, asCBOR} {
		crd, err := ParseCRD(data)
		require.NoError(t, err)
		again, err := encode(crd.internal)
		require.NoError(t, err)
		require.Equal(t, string(readFile(t, "crd.etcd")), string(again))
	}
}

func TestParseCRDErrors(t *testing.T) {
	for _, data := range []string{"", "not json", "kind: CustomResourceDefinition", "k8s\x00\n"} {
		_, err := ParseCRD([]byte(data))
		require.ErrorIs(t, err, encoding.ErrUnknownFormat, "%q", data)
	}
	_, err := ParseCRD([]byte("k8s:enc:aescbc:v1:key:x"))
	require.ErrorIs(t, err, encoding.ErrEncrypted)
	for data, want := range map[string]string{
		`{"apiVersion":`:                         "unexpected end of JSON input",
		`{"apiVersion":"v1","kind":"ConfigMap"}`: `no kind "ConfigMap" is registered`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList",` +
			`"items":[]}`: "is not a CustomResourceDefinition",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
			`"spec":5}`: "cannot unmarshal number",
		`{"apiVersion":"apiextensions.k8s.io/v2","kind":"CustomResourceDefinition"}`: "is registered",
		crdOf(`{"name":"v1","served":true,"storage":true},{"name":"v1"}`,
			""): `version "v1" is listed twice`,
		crdOf(`{"name":"v1","schema":`+strings.Repeat(`[{"items":`, 300)+strings.Repeat("}]", 300)+"}",
			""): "nested more than 512 levels",
	} {
		_, err := ParseCRD([]byte(data))
		require.ErrorContains(t, err, want, "%.80s", data)
		require.ErrorContains(t, err, "CustomResourceDefinition")
	}
}

// FuzzParseCRD checks that hostile definitions cause an error, never a panic.
func FuzzParseCRD(f *testing.F) {
	for _, name := range []string{"crd.etcd", "ippools.etcd"} {
		f.Add(readFile(f, name))
	}
	f.Add([]byte(crdOf(`{"name":"v1","served":true,"storage":true}`, "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		crd, err := ParseCRD(data)
		if err != nil {
			return
		}
		for _, v := range crd.Object().Spec.Versions {
			version, err := crd.Version(v.Name)
			if err != nil {
				continue
			}
			obj := map[string]any{"apiVersion": version.gvk().GroupVersion().String(), "kind": crd.GroupKind().Kind}
			obj["spec"] = map[string]any{"a": nil, "list": []any{int64(1)}}
			version.Prune(obj)
			require.NoError(t, version.Default(obj))
			_ = version.Validate(t.Context(), obj)
		}
		once, err := encode(crd.internal)
		if err != nil {
			return
		}
		again, err := ParseCRD(once)
		require.NoError(t, err)
		twice, err := encode(again.internal)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}
