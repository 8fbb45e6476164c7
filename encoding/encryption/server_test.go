package encryption

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

const (
	crdName   = "widgets.demo.example.com"
	crdKey    = "/registry/apiextensions.k8s.io/customresourcedefinitions/" + crdName
	widgetDir = "/registry/demo.example.com/widgets/default/"
)

var crds = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// cluster is an etcd with an API server that can be restarted with another configuration.
type cluster struct {
	etcd *etcdtest.Server
	api  *apitest.API
}

// serve starts the server, with a configuration unless it is "".
func (c *cluster) serve(t *testing.T, configuration string) dynamic.ResourceInterface {
	t.Helper()
	if c.api != nil {
		c.api.Close()
	}
	var flags []string
	if configuration != "" {
		flags = append(flags, "--encryption-provider-config="+configuration)
	}
	c.api = apitest.Start(t, c.etcd.URL, flags...)
	resource := schema.GroupVersionResource{Group: widgets.Group, Version: "v1", Resource: widgets.Resource}
	return c.api.Dynamic.Resource(resource).Namespace("default")
}

func (c *cluster) get(t *testing.T, key string) []byte {
	t.Helper()
	r, err := c.etcd.Client.Get(context.Background(), key)
	require.NoError(t, err)
	require.Len(t, r.Kvs, 1, key)
	return r.Kvs[0].Value
}

func (c *cluster) put(t *testing.T, key string, value []byte) {
	t.Helper()
	_, err := c.etcd.Client.Put(context.Background(), key, string(value))
	require.NoError(t, err)
}

// establish creates the CRD of widgets.
func (c *cluster) establish(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crdName},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: widgets.Resource, Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size": {Type: "integer"}},
					}},
				}},
			}},
		},
	}
	_, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(context.Background(), crd,
		metav1.CreateOptions{})
	require.NoError(t, err)
	apitest.WaitEstablished(t, c.api, crdName)
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size},
	}}
}

// touch updates an object without a change and reports whether the server wrote it. A server writes
// only stale objects.
func touch(t *testing.T, c *cluster, api dynamic.ResourceInterface, name string) (written bool) {
	t.Helper()
	before := c.get(t, widgetDir+name)
	object, err := api.Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = api.Update(context.Background(), object, metav1.UpdateOptions{})
	require.NoError(t, err)
	return string(c.get(t, widgetDir+name)) != string(before)
}

// Values of a real server decrypt to the bytes stored without encryption, for each provider. The
// server reads values of Encrypt, and a no-op update writes exactly the stale values.
func TestRealServer(t *testing.T) {
	ctx := context.Background()
	c := &cluster{etcd: etcdtest.Start(t, filepath.Join(t.TempDir(), "encrypted.etcd"))}
	api := c.serve(t, "")
	c.establish(t)
	_, err := api.Create(ctx, widget("one", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	plain, plainCRD := c.get(t, widgetDir+"one"), c.get(t, crdKey)
	require.Contains(t, string(plain), `"spec":{"size":1}`)

	plugin := apitest.StartKMS(t)
	all := []string{
		keyed("aescbc", "key1", "a"), keyed("aesgcm", "key1", "b"), keyed("secretbox", "key1", "c"),
		plugged("vault", plugin.Endpoint()),
	}
	for i, named := range []string{"aescbc:v1:key1", "aesgcm:v1:key1", "secretbox:v1:key1", "kms:v2:vault"} {
		path := configuration(t, rule("widgets.demo.example.com, customresourcedefinitions.apiextensions.k8s.io",
			all[i], "identity: {}"))
		by := load(t, path)
		api = c.serve(t, path)
		apitest.WaitEstablished(t, c.api, crdName)

		// The server encrypts a plaintext object on the next update.
		c.put(t, widgetDir+"one", plain)
		decrypts(t, by, widgets, widgetDir+"one", plain, string(plain), true)
		require.True(t, touch(t, c, api, "one"), named)
		stored := c.get(t, widgetDir+"one")
		described, encrypted := describe(stored)
		require.True(t, encrypted)
		require.Equal(t, named, described.String())
		decrypts(t, by, widgets, widgetDir+"one", stored, string(plain), false)
		require.False(t, touch(t, c, api, "one"), named)

		// The server reads a value of Encrypt and does not rewrite it.
		moved := strings.Replace(string(plain), `"name":"one"`, `"name":"moved"`, 1)
		c.put(t, widgetDir+"moved", encrypt(t, by, widgets, widgetDir+"moved", moved))
		object, err := api.Get(ctx, "moved", metav1.GetOptions{})
		require.NoError(t, err, named)
		require.Equal(t, "moved", object.GetName())
		require.False(t, touch(t, c, api, "moved"), named)

		// Ciphertext copied to another key: the server and Decrypt agree.
		c.put(t, widgetDir+"copied", stored)
		_, err = api.Get(ctx, "copied", metav1.GetOptions{})
		if bound := i == 1 || i == 3; bound {
			require.Error(t, err)
			refused(t, by, widgets, widgetDir+"copied", stored, named, "copied from another etcd key")
		} else {
			require.NoError(t, err)
			decrypts(t, by, widgets, widgetDir+"copied", stored, string(plain), false)
		}
		for _, name := range []string{"copied", "moved"} {
			_, err = c.etcd.Client.Delete(ctx, widgetDir+name)
			require.NoError(t, err)
		}

		// CRDs are encrypted by the rule for their own resource.
		labels := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, i)
		definitions := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions()
		_, err = definitions.Patch(ctx, crdName, "application/merge-patch+json", []byte(labels), metav1.PatchOptions{})
		require.NoError(t, err)
		crd, stale, err := by.Decrypt(ctx, crds, []byte(crdKey), c.get(t, crdKey))
		require.NoError(t, err)
		require.False(t, stale)
		require.Contains(t, string(crd), `"round":"`)
		refused(t, nil, crds, crdKey, c.get(t, crdKey), named)
		c.put(t, crdKey, plainCRD)
		c.put(t, widgetDir+"one", plain)
	}
}

// Rotation: the server rewrites stale values, and no others.
func TestRealServerAndRotation(t *testing.T) {
	ctx := context.Background()
	c := &cluster{etcd: etcdtest.Start(t, filepath.Join(t.TempDir(), "rotated.etcd"))}
	api := c.serve(t, configuration(t, rule("'*.*'", keyed("aescbc", "key1", "a"))))
	c.establish(t)
	_, err := api.Create(ctx, widget("one", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	first := c.get(t, widgetDir+"one")

	plugin := apitest.StartKMS(t)
	vault := plugged("vault", plugin.Endpoint())
	for _, step := range []struct {
		providers []string
		rotate    bool
		stale     bool   // for the value stored before
		first     string // provider of the next write
	}{
		{[]string{keyed("aescbc", "key1", "a", "key2", "b")}, false, false, "aescbc:v1:key1"},
		{[]string{keyed("aescbc", "key2", "b", "key1", "a")}, false, true, "aescbc:v1:key2"},
		{[]string{vault, keyed("aescbc", "key2", "b", "key1", "a")}, false, true, "kms:v2:vault"},
		{[]string{vault, keyed("aescbc", "key1", "a")}, false, false, "kms:v2:vault"},
		{[]string{vault, keyed("aescbc", "key1", "a")}, true, true, "kms:v2:vault"},
		{[]string{"identity: {}", vault, keyed("aescbc", "key1", "a")}, false, true, ""},
		{[]string{keyed("aescbc", "key1", "a"), "identity: {}"}, false, true, "aescbc:v1:key1"},
	} {
		if step.rotate {
			plugin.Rotate(t)
		}
		path := configuration(t, rule("'*.*'", step.providers...))
		by := load(t, path)
		api = c.serve(t, path)
		apitest.WaitEstablished(t, c.api, crdName)
		_, stale, err := by.Decrypt(ctx, widgets, []byte(widgetDir+"one"), c.get(t, widgetDir+"one"))
		require.NoError(t, err)
		require.Equal(t, step.stale, stale, "%v", step)
		require.Equal(t, step.stale, touch(t, c, api, "one"), "%v", step)
		described, encrypted := describe(c.get(t, widgetDir+"one"))
		require.Equal(t, step.first != "", encrypted, "%v", step)
		if encrypted {
			require.Equal(t, step.first, described.String())
		}
		_, stale, err = by.Decrypt(ctx, widgets, []byte(widgetDir+"one"), c.get(t, widgetDir+"one"))
		require.NoError(t, err)
		require.False(t, stale, "%v", step)
		require.False(t, touch(t, c, api, "one"), "%v", step)
		_, _, err = by.Decrypt(ctx, widgets, []byte(widgetDir+"one"), first)
		require.NoError(t, err)
	}
}
