package conversion

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/etcdshift/etcdshift/encoding"
	crdschema "github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// metadata changes the metadata of a converted object.
func metadata(change func(meta m)) func(m) any {
	return func(obj m) any {
		change(obj["metadata"].(m))
		return obj
	}
}

// lies maps names of objects to the changes that a webhook makes besides the conversion.
func lies() map[string]func(m) any {
	set := func(field string, value any) func(m) any { return metadata(func(meta m) { meta[field] = value }) }
	return map[string]func(m) any{
		"honest":              func(obj m) any { return obj },
		"labels":              set("labels", m{"new": "label"}),
		"labels-gone":         metadata(func(meta m) { delete(meta, "labels") }),
		"labels-null":         set("labels", nil),
		"labels-empty":        set("labels", m{}),
		"labels-invalid":      set("labels", m{"a b": "c"}),
		"labels-number":       set("labels", m{"a": 1}),
		"labels-list":         set("labels", []any{}),
		"annotations":         set("annotations", m{"new": "note"}),
		"annotations-gone":    metadata(func(meta m) { delete(meta, "annotations") }),
		"annotations-invalid": set("annotations", m{"a b": "c"}),
		"annotations-word":    set("annotations", "x"),
		"finalizers":          set("finalizers", []any{"other/one"}),
		"finalizers-gone":     metadata(func(meta m) { delete(meta, "finalizers") }),
		"owners": set("ownerReferences",
			[]any{m{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}}),
		"generation":       set("generation", 99),
		"created":          set("creationTimestamp", nil),
		"version":          set("resourceVersion", "1"),
		"managed-gone":     metadata(func(meta m) { delete(meta, "managedFields") }),
		"unknown":          set("unknown", "field"),
		"name":             set("name", "other"),
		"name-gone":        metadata(func(meta m) { delete(meta, "name") }),
		"namespace":        set("namespace", "other"),
		"uid":              set("uid", "other"),
		"uid-gone":         metadata(func(meta m) { delete(meta, "uid") }),
		"metadata-gone":    func(obj m) any { delete(obj, "metadata"); return obj },
		"metadata-word":    func(obj m) any { obj["metadata"] = "x"; return obj },
		"kind":             func(obj m) any { obj["kind"] = "Other"; return obj },
		"kind-gone":        func(obj m) any { delete(obj, "kind"); return obj },
		"api-version":      func(obj m) any { obj["apiVersion"] = v1; return obj },
		"api-version-gone": func(obj m) any { delete(obj, "apiVersion"); return obj },
		"group":            func(obj m) any { obj["apiVersion"] = "other.example.com/v2"; return obj },
		"nothing":          func(m) any { return nil },
		"null":             func(m) any { return json.RawMessage("null") },
		"word":             func(m) any { return "x" },
		"extra-root": func(obj m) any {
			obj["data"] = m{"n": 1, "f": 1.5,
				"big": json.Number("1e30")}
			return obj
		},
		"no-spec": func(obj m) any { delete(obj, "spec"); return obj },
	}
}

// liar answers with the lies.
func liar(lies map[string]func(m) any) func(reviewIn) m {
	return func(in reviewIn) m {
		names := make(map[string]string)
		for _, obj := range in.Request.Objects {
			meta := obj["metadata"].(m)
			names[meta["uid"].(string)] = meta["name"].(string)
		}
		return good(in, func(obj m) any { return lies[obj["metadata"].(m)["name"].(string)](obj) })
	}
}

// TestEqualsAServer checks that Convert returns for a value stored at v1 the object of a real
// server at v2, and Convert fails with the same reason as the server. Both call the same webhook,
// in both versions of ConversionReview.
func TestEqualsAServer(t *testing.T) {
	for _, review := range []string{"v1", "v1beta1"} {
		equalsAServer(t, review)
	}
}

func equalsAServer(t *testing.T, review string) {
	ctx := t.Context()
	lies := lies()
	hook := serve(t, reviewer(liar(lies)))
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	// Without a cache, an object that cannot be converted fails only its own GET.
	api := apitest.Start(t, etcd.URL, "--watch-cache=false")
	defer api.Close()
	crd := widgets(apiextensionsv1.WebhookClientConfig{URL: ptr.To(hook.URL + "/convert"), CABundle: hook.ca}, review)
	crd, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{})
	require.NoError(t, err)
	apitest.WaitEstablished(t, api, crd.Name)

	names := slices.Sorted(maps.Keys(lies))
	at := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: "widgets"}
	}
	stored := make([]map[string]any, len(names))
	for i, name := range names {
		obj := object(t, name, `,"status":{"at":"2020-01-01T00:00:00Z"}`)
		delete(obj["metadata"].(m), "uid")
		created := &unstructured.Unstructured{Object: obj}
		_, err := api.Dynamic.Resource(at("v1")).Namespace("default").Create(ctx, created, metav1.CreateOptions{})
		require.NoError(t, err, name)
		stored[i], _, err = encoding.DecodeObject(value(t, etcd, "/registry/"+group+"/widgets/default/"+name))
		require.NoError(t, err)
		require.Equal(t, v1, stored[i]["apiVersion"])
	}

	parsed, err := crdschema.ParseCRD(value(t, etcd, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+
		crd.Name))
	require.NoError(t, err)
	schemaV2, err := parsed.Version("v2")
	require.NoError(t, err)

	c, err := Webhook(WebhookOptions{URL: hook.URL, CA: hook.ca})
	require.NoError(t, err)
	batch, err := c.Convert(ctx, crd, "v2", stored)
	require.NoError(t, err)
	refusedCount := 0
	for i, name := range names {
		single, err := c.Convert(ctx, crd, "v2", stored[i:i+1])
		require.NoError(t, err, name)
		require.Equal(t, batch[i].Object, single[0].Object, name)
		require.Equal(t, batch[i].Err, single[0].Err, name)

		got, err := api.Dynamic.Resource(at("v2")).Namespace("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			refusedCount++
			require.ErrorIs(t, batch[i].Err, errRefused, "%s: the server says %s", name, err)
			said := strings.TrimPrefix(batch[i].Err.Error(), errRefused.Error()+": ")
			if !strings.Contains(said, "is not an object with a kind") { // the server quotes the whole object
				require.Contains(t, printable(err.Error()), said, name)
			}
			continue
		}
		require.NoError(t, batch[i].Err, name)
		schemaV2.Prune(batch[i].Object)
		// The revision comes from etcd, after the conversion.
		require.NotEmpty(t, got.GetResourceVersion(), name)
		got.SetResourceVersion("")
		require.Equal(t, got.Object, batch[i].Object, name)
	}
	require.Equal(t, 20, refusedCount)
}

// value returns the stored value of the key.
func value(t testing.TB, etcd *etcdtest.Server, key string) []byte {
	t.Helper()
	r, err := etcd.Client.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, r.Kvs, 1)
	return r.Kvs[0].Value
}
