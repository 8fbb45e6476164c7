package serve_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// oddDefinition returns a definition with one version, which keeps all fields.
func oddDefinition(name, group, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: "Namespaced", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural,
				Kind: "Odd", ListKind: "OddList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
						XPreserveUnknownFields: new(true)},
				}}},
		},
	}
}

// hostileFile returns a snapshot with unusual definitions, and objects with unusual values.
func hostileFile(t *testing.T) string {
	t.Helper()
	var script strings.Builder
	put := func(key string, object any) {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		fmt.Fprintf(&script, "put %q %q\n", key, text)
	}
	define := func(name, group, plural string, change ...func(*apiextensionsv1.CustomResourceDefinition)) {
		crd := oddDefinition(name, group, plural)
		for _, fn := range change {
			fn(crd)
		}
		put("/registry/apiextensions.k8s.io/customresourcedefinitions/"+name, crd)
		if group != "" && plural != "" {
			put("/registry/"+group+"/"+plural+"/a/one", map[string]any{
				"apiVersion": group + "/v1", "kind": "Odd", "metadata": map[string]any{"name": "one", "namespace": "a",
					"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
			})
		}
	}
	type crd = apiextensionsv1.CustomResourceDefinition
	define("good.example.com", "example.com", "good")
	define("deployments.apps", "apps", "deployments")
	define("widgets.apps", "apps", "widgets")
	define("a.twice.example.com", "twice.example.com", "things")
	define("b.twice.example.com", "twice.example.com", "things", func(c *crd) { c.Spec.Names.Kind = "Other" })
	define("none.example.com", "example.com", "none", func(c *crd) { c.Spec.Versions = nil })
	define("noschema.example.com", "example.com", "noschema", func(c *crd) { c.Spec.Versions[0].Schema = nil })
	define("nokind.example.com", "example.com", "nokind",
		func(c *crd) { c.Spec.Names.Kind, c.Spec.Names.ListKind = "", "" })
	define("list.example.com", "example.com", "lists", func(c *crd) {
		c.Spec.Names.Kind, c.Spec.Names.ListKind = "List",
			"List"
	})
	define("noplural.example.com", "example.com", "")
	define("slash.example.com", "slash/example.com", "things")
	define("dots.example.com", "example.com", "..")
	define("star.example.com", "example.com", "{a:*}")
	define("internal.example.com", "internal.example.com", "things",
		func(c *crd) { c.Spec.Versions[0].Name = "__internal" })
	define("version.example.com", "version.example.com", "things",
		func(c *crd) { c.Spec.Versions[0].Name = "v1/../../x {y}" })
	define("selfsubjectaccessreviews.authorization.k8s.io", "authorization.k8s.io", "selfsubjectaccessreviews")
	define("events.events.k8s.io", "events.k8s.io", "events")
	define("script.example.com", "example.com", "<script>alert(1)</script>")
	define("columns.example.com", "example.com", "columns", func(c *crd) {
		c.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "\x1b[31m<b>", Type: "nothing", JSONPath: ".[[["}}
		c.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: "[[["}}
	})
	define("ref.example.com", "example.com", "refs", func(c *crd) {
		c.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Ref: new("#/definitions/x"), Type: "\x00", Pattern: "(((",
					Default: &apiextensionsv1.JSON{Raw: []byte(`{"a":[]}`)}},
			}}
	})
	put("/registry/apiextensions.k8s.io/customresourcedefinitions/cut", "{")
	put("/registry/deployments/a/native", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "native", "namespace": "a"}})
	for i, value := range []string{"<script>alert(1)</script>", "\x1b]0;x\a\x1b[2J", "a\r\nSet-Cookie: x=y",
		"- a: &a [*a]\n---\n...", "  |2-\n\n  x\n ", "\u202e\ufeff\u2028", strings.Repeat("l", 1<<20-9999)} {
		put(fmt.Sprintf("/registry/configmaps/a/odd-%d", i), map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]string{"k": value,
				value[:min(50, len(value))]: "v"},
			"metadata": map[string]any{"name": fmt.Sprintf("odd-%d", i), "namespace": "a",
				"labels": map[string]string{"l": value}},
		})
	}
	fmt.Fprintf(&script, "put %q %q\n", "/registry/configmaps/a/no\r\nSet-Cookie: x\x1b[2J", "\xff\xfe")
	fmt.Fprintf(&script, "put %q %q\n", "/registry/pods/a/b/c/d", "{}")
	fmt.Fprintf(&script, "put %q %q\n", "/registry/pods/a/", "{}")
	return etcdtest.Build(t, script.String())
}

// TestHostile checks that invalid definitions hide nothing else, and that unusual values are
// served.
func TestHostile(t *testing.T) {
	s := start(t, hostileFile(t))
	const names = " objects are not served: their CustomResourceDefinition serves no version, or has names that no " +
		"API server accepts"
	for _, name := range []string{"nokind.example.com", "things.internal.example.com", "things.version.example.com",
		"selfsubjectaccessreviews.authorization.k8s.io"} {
		require.Contains(t, s.reported, name+": 1"+names)
	}
	served := map[string]int{}
	for _, gvr := range s.resources(t) {
		for _, accept := range []string{
			"application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf",
			"application/json;as=Table;v=v1;g=meta.k8s.io",
		} {
			resp, text := s.do(t, "GET", objectPath(gvr), "", "Accept", accept)
			if accept != "application/vnd.kubernetes.protobuf" {
				require.Equal(t, 200, resp.StatusCode, "%s: %.300s", gvr, text)
			}
			require.Empty(t, resp.Header.Values("Set-Cookie"))
			require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
			for _, warning := range resp.Header.Values("Warning") {
				require.NotContains(t, warning, "\x1b")
			}
			if list := (metav1.PartialObjectMetadataList{}); accept == "application/json" {
				require.NoError(t, json.Unmarshal([]byte(text), &list))
				served[gvr.GroupResource().String()] = len(list.Items)
			}
		}
	}
	for resource, want := range map[string]int{
		"deployments.apps": 1, "good.example.com": 1, "columns.example.com": 1, "noschema.example.com": 1,
		"refs.example.com": 0, "things.twice.example.com": 1, "configmaps": 7,
	} {
		require.Contains(t, served, resource)
		require.Equal(t, want, served[resource], resource)
	}
	for path, want := range map[string]string{
		"/openapi/v3": "apis/apps/v1", "/openapi/v3/apis/example.com/v1": "com.example.v1.Odd",
		"/openapi/v2":               "com.example.v1.Odd",
		"/apis/apps/v1/deployments": "native", "/apis/apps/v1": "statefulsets",
	} {
		resp, text := s.do(t, "GET", path, "")
		require.Equal(t, 200, resp.StatusCode, path)
		require.Contains(t, text, want, path)
	}
	require.Contains(t, strings.Join(s.reported, "\n"), `"OpenAPI of refs.example.com v1" cannot be served`)
	config, err := s.typed(t).CoreV1().ConfigMaps("a").Get(t.Context(), "odd-6", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, config.Labels["l"], 1<<20-9999)
}

// secret is a credential, and encoded its base64.
const (
	secret  = "hunter2-hunter2"
	encoded = "aHVudGVyMi1odW50ZXIy"
)

// leakyFile returns a snapshot with the credential in sound and in damaged Secrets.
func leakyFile(t testing.TB) string {
	t.Helper()
	applied := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"a"},"data":{"k":"` + encoded +
		`"},"stringData":{"k":"` + secret + `"}}`
	var script strings.Builder
	put := func(key, object string) { fmt.Fprintf(&script, "put %q %q\n", key, object) }
	meta := func(name string) string {
		text, err := json.Marshal(map[string]any{
			"name": name, "namespace": "a", "uid": "u",
			"annotations": map[string]string{"kubectl.kubernetes.io/last-applied-configuration": applied},
			"managedFields": []any{map[string]any{"manager": "m", "operation": "Update", "apiVersion": "v1",
				"fieldsType": "FieldsV1",
				"fieldsV1":   map[string]any{"f:data": map[string]any{"f:k": map[string]any{}}}}},
		})
		require.NoError(t, err)
		return string(text)
	}
	put("/registry/namespaces/a", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)
	put("/registry/secrets/a/s", `{"apiVersion":"v1","kind":"Secret","metadata":`+meta("s")+
		`,"type":"kubernetes.io/service-account-token","data":{"k":"`+encoded+`"}}`)
	put("/registry/secrets/a/bad", `{"apiVersion":"v1","kind":"Secret","metadata":`+meta("bad")+`,"data":{"k":"`+secret+
		`"}}`)
	put("/registry/secrets/a/worse", `{"apiVersion":"v1","kind":"Secret","metadata":`+meta("worse")+`,"data":"`+encoded+
		`"}`)
	put("/registry/secrets/a/cut", `{"apiVersion":"v1","kind":"Secret","metadata":`+meta("cut")+`,"data":{"k":"`+
		encoded+`"`)
	return etcdtest.Build(t, script.String())
}

// TestNoLeak checks that no answer has a credential: in no format, watch, selection, error or
// earlier state.
func TestNoLeak(t *testing.T) {
	s := start(t, leakyFile(t))
	for _, path := range []string{
		"/api/v1/secrets", "/api/v1/namespaces/a/secrets/s", "/api/v1/namespaces/a/secrets/bad",
		"/api/v1/namespaces/a/secrets/worse", "/api/v1/namespaces/a/secrets/cut",
		"/api/v1/secrets?watch=1&timeoutSeconds=1", "/api/v1/secrets?includeObject=Object",
		"/api/v1/secrets?fieldSelector=data.k%3D" + encoded,
		"/api/v1/secrets?labelSelector=x&limit=1", "/api/v1/watch/secrets?timeoutSeconds=1",
	} {
		for _, accept := range []string{
			"application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf",
			"application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		} {
			resp, text := s.do(t, "GET", path, "", "Accept", accept)
			text += fmt.Sprint(resp.Header)
			if !strings.Contains(path, encoded) { // otherwise the client sent the secret
				require.NotContains(t, text, encoded, "%s %s", path, accept)
				require.NotContains(t, text, secret, "%s %s", path, accept)
			}
		}
	}
	require.NotContains(t, strings.Join(s.reported, "\n"), "hunter2")
	resp, text := s.do(t, "GET", "/api/v1/namespaces/a/secrets/s", "")
	require.Equal(t, 200, resp.StatusCode, text)
	require.Contains(t, text, base64.StdEncoding.EncodeToString([]byte("<redacted 15 bytes>")))
}
