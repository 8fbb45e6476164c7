package apiservers

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// counting returns the URL of a listener that counts connections.
func counting(t testing.TB) (url string, dialled *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	dialled = &atomic.Int64{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			_ = conn.Close()
		}
	}()
	return "https://" + l.Addr().String(), dialled
}

// converting starts a webhook that converts only by changing apiVersion.
func converting(t testing.TB) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review struct {
			APIVersion, Kind string
			Request          struct {
				UID, DesiredAPIVersion string
				Objects                []map[string]any
			}
		}
		_ = json.NewDecoder(req.Body).Decode(&review)
		for _, object := range review.Request.Objects {
			object["apiVersion"] = review.Request.DesiredAPIVersion
			object["by"] = req.URL.Path
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind,
			"response": map[string]any{
				"uid": review.Request.UID, "convertedObjects": review.Request.Objects,
				"result": map[string]any{"status": "Success"},
			}})
	}))
	t.Cleanup(s.Close)
	return s
}

func webhookAt(url string) map[string]any {
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"clientConfig": map[string]any{"url": url + "/convert"}, "conversionReviewVersions": []any{"v1"},
	}}
}

// Conversion webhooks in the snapshot are never dialed. Lists that need them are not checked, even
// with encrypted CRDs; with the user's converter the lists work.
func TestWebhooksAreNotDialled(t *testing.T) {
	url, dialled := counting(t)
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	store := Store{Prefix: "/registry", Encryption: encryptionConfig(t)}
	start(t, etcd, store).createWidgets(t, webhookAt(url), "one")
	transformers, err := encryption.Load(t.Context(), store.Encryption)
	require.NoError(t, err)
	defer transformers.Close()

	relay, err := NewRelay(t.Context(), nil)
	require.NoError(t, err)
	done, err := Isolate(t.Context(), etcd.Client, store.Prefix, transformers, relay)
	require.NoError(t, err)
	require.Equal(t, Isolation{Webhooks: []Webhook{{CRD: "widgets.demo.example.com"}}}, done)
	r := start(t, etcd, store)
	require.Len(t, r.serving.Versions, 2)
	_, err = r.Resource(widgets("v1")).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = r.Resource(widgets("v2")).List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "conversion webhook for demo.example.com/v1, Kind=Widget failed: "+NotChecked)

	hook := converting(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	converter, err := conversion.Webhook(conversion.WebhookOptions{URL: hook.URL, CA: ca})
	require.NoError(t, err)
	relay, err = NewRelay(t.Context(), map[string]*conversion.Converter{"demo.example.com": converter})
	require.NoError(t, err)
	done, err = Isolate(t.Context(), etcd.Client, store.Prefix, transformers, relay)
	require.NoError(t, err)
	require.Equal(t, []Webhook{{CRD: "widgets.demo.example.com", Asked: true}}, done.Webhooks)
	list, err := start(t, etcd, store).Resource(widgets("v2")).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Zero(t, dialled.Load())
}

// All addresses that an API server would dial are edited or removed in every stored form; other
// records stay.
func TestIsolate(t *testing.T) {
	const crds, services = "/registry/apiextensions.k8s.io/customresourcedefinitions/",
		"/registry/apiregistration.k8s.io/apiservices/"
	const v1beta1 = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",` +
		`"spec":{"group":"g.example.com",`
	stay := map[string]string{
		crds + "none":         v1beta1 + `"conversion":{"strategy":"None"}}}`,
		crds + "damaged":      `{"spec":`,
		crds + "encrypted":    "k8s:enc:aescbc:v1:a:xxxxxxxx",
		services + "v1.":      `{"kind":"APIService","spec":{"service":null,"version":"v1"}}`,
		"/registry/pods/a/b":  `{"spec":{"service":{}}}`,
		"/elsewhere/x":        "y",
		services + "v1.apps":  `{"kind":"APIService","spec":{}}`,
		crds + "no-strategy":  v1beta1 + `"names":{}}}`,
		crds + "not-a-string": `{"spec":{"conversion":{"strategy":5}}}`,
	}
	gone := map[string]string{
		services + "v1.a":  `{"kind":"APIService","spec":{"service":{"namespace":"a","name":"b"}}}`,
		services + "v1.b":  `{"spec":{"service":{"namespace":"a","name":"b"}},"spec":{}}`,
		services + "v1.pb": "k8s\x00\n\x00",
		crds + "pb":        "k8s\x00\n\x00",
		crds + "yaml":      "kind: CustomResourceDefinition",
		crds + "twice": v1beta1 + `"conversion":{"strategy":"Webhook","webhookClientConfig":{"service":{"name":"a"}}},
			"conversion":{"strategy":"Webhook"}}}`,
	}
	edited := map[string]string{
		crds + "old": v1beta1 +
			`"conversion":{"strategy":"Webhook","webhookClientConfig":{"service":{"name":"a","namespace":"b"},` +
			`"caBundle":"eA=="}}}}`,
		crds +
			"v1": `{"apiVersion":"apiextensions.k8s.io/v1","spec":{"conversion":{"strategy":"Webhook",` +
			`"webhook":{"clientConfig":{"url":"https://example.com"}}}}}`,
		crds + "{x}": v1beta1 + `"conversion":{"strategy":"Webhook"}}}`,
	}
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	for _, some := range []map[string]string{stay, gone, edited} {
		for key, value := range some {
			_, err := etcd.Client.Put(t.Context(), key, value)
			require.NoError(t, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	relay, err := NewRelay(ctx, nil)
	require.NoError(t, err)
	done, err := Isolate(ctx, etcd.Client, "/registry", nil, relay)
	require.NoError(t, err)

	after := make(map[string]string)
	for _, kv := range etcdtest.Dump(t, etcd, 0) {
		after[string(kv.Key)] = string(kv.Value)
	}
	require.Len(t, after, len(stay)+len(edited))
	for key, value := range stay {
		require.Equal(t, value, after[key], key)
	}
	for key := range edited {
		require.Contains(t, after[key], `"url":"https://127.0.0.1:`, key)
		require.NotContains(t, after[key], "service", key)
		require.NotContains(t, after[key], "example.com\"}", key)
	}
	require.Equal(t, []Webhook{{CRD: "old"}, {CRD: "v1"}, {CRD: "{x}"}}, done.Webhooks)
	require.Equal(t, []string{"v1.a", "v1.b"}, done.Aggregated)
	unreadable := make(map[string]bool)
	for _, u := range done.Unreadable {
		require.Error(t, u.Reason, u.Key)
		unreadable[u.Key] = u.Removed
	}
	require.Equal(t, map[string]bool{
		crds + "damaged": false, crds + "encrypted": false, crds + "not-a-string": false,
		crds + "pb": true, crds + "yaml": true, crds + "twice": true, services + "v1.pb": true,
	}, unreadable)
}

// The Service range is the recorded cluster's range; older releases store it elsewhere, in two
// records for two IP families.
func TestServiceRange(t *testing.T) {
	require.Equal(t, "10.0.0.0/24", ServiceRange(t.Context(), restored(t, "calico/before.db.gz").Client,
		"/registry", nil))

	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	at := func() string { return ServiceRange(t.Context(), etcd.Client, "/registry", nil) }
	require.Empty(t, at())
	etcdtest.Run(t, etcd, "put /registry/ranges/serviceips "+
		"`{\"kind\":\"RangeAllocation\",\"apiVersion\":\"v1\",\"range\":\"10.0.0.0/24\"}`")
	require.Equal(t, "10.0.0.0/24", at())
	etcdtest.Run(t, etcd, "put /registry/ranges/secondaryserviceips "+
		"`{\"kind\":\"RangeAllocation\",\"apiVersion\":\"v1\",\"range\":\"fd00::/112\"}`")
	require.Equal(t, "10.0.0.0/24,fd00::/112", at())
	etcdtest.Run(t, etcd, "put /registry/servicecidrs/kubernetes damaged")
	require.Equal(t, "10.0.0.0/24,fd00::/112", at())
}
