package apitest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

func widgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.demo.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "demo.example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size": {Type: "integer"}}},
					},
				}},
			}},
		},
	}
}

func TestServesACustomResource(t *testing.T) {
	ctx := context.Background()
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	api := Start(t, etcd.URL)
	_, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, widgets(),
		metav1.CreateOptions{})
	require.NoError(t, err)
	WaitEstablished(t, api, "widgets.demo.example.com")

	resource := schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
	_, err = api.Dynamic.Resource(resource).Namespace("default").Create(ctx,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "demo.example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "one"},
			"spec":     map[string]any{"size": int64(3), "unknown": true},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)

	r, err := etcd.Client.Get(ctx, "/registry/demo.example.com/widgets/default/one")
	require.NoError(t, err)
	require.Len(t, r.Kvs, 1)
	require.Contains(t, string(r.Kvs[0].Value), `"spec":{"size":3}`)

	api.Close()
	api.Close()
	again := Start(t, etcd.URL)
	WaitEstablished(t, again, "widgets.demo.example.com")
	list, err := again.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
}
