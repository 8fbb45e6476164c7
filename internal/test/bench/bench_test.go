package bench

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

const tiny = 2000 // keys

func sum(t testing.TB, path string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return sha256.Sum256(data)
}

// The generated input is sound, has the promised shares of keys, and is the same each time; custom
// resources are encoded as a real API server stores them.
func TestGenerate(t *testing.T) {
	ctx, path, again := context.Background(), filepath.Join(t.TempDir(), "a.db"), filepath.Join(t.TempDir(), "b.db")
	c := content{keys: tiny, stale: 5, seed: 1, extra: definitions(t)}
	generate(t, path, c)
	generate(t, again, c)
	require.Equal(t, sum(t, path), sum(t, again))

	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	require.Empty(t, slices.Collect(snapshot.Verify(ctx, s)))
	require.Empty(t, slices.Collect(snapshot.Odd(ctx, s)))
	require.Positive(t, s.Space().FreePages)
	records, live, custom, stale := 0, 0, 0, 0
	for _, err := range s.Records(ctx) {
		require.NoError(t, err)
		records++
	}
	for r, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		live++
		if strings.HasPrefix(string(r.Key), "/registry/"+group+"/") {
			custom++
			if strings.Contains(string(r.Value), group+"/v1alpha1") {
				stale++
			}
		}
	}
	require.Equal(t, tiny+len(c.extra), live)
	require.InDelta(t, 1.25*tiny+float64(len(c.extra)), records, tiny/100)
	require.InDelta(t, 0.25*tiny, custom, tiny/20)
	require.InDelta(t, 0.05*tiny, stale, tiny/100)
	served(t, etcdtest.Start(t, etcdtest.Restore(t, path)))
}

// served updates each custom resource of a namespace without changes: only stale objects are
// stored.
func served(t *testing.T, etcd *etcdtest.Server) {
	t.Helper()
	ctx, api := context.Background(), apitest.Start(t, etcd.URL)
	stored, kept := 0, 0
	for _, kind := range customKinds() {
		apitest.WaitEstablished(t, api, plural(kind)+"."+group)
		client := api.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural(kind)})
		list, err := client.List(ctx, metav1.ListOptions{Limit: 40})
		require.NoError(t, err)
		require.NotEmpty(t, list.Items)
		for _, o := range list.Items {
			r, err := etcd.Client.Get(ctx, "/registry/"+group+"/"+plural(kind)+"/"+o.GetNamespace()+"/"+o.GetName())
			require.NoError(t, err)
			require.Len(t, r.Kvs, 1)
			after, err := client.Namespace(o.GetNamespace()).Update(ctx, &o, metav1.UpdateOptions{})
			require.NoError(t, err)
			stale := strings.HasPrefix(string(r.Kvs[0].Value), `{"apiVersion":"`+group+`/v1alpha1"`)
			require.Equal(t, stale, after.GetResourceVersion() != o.GetResourceVersion(), "%s\nbecame\n%v",
				r.Kvs[0].Value, after.Object)
			if stale {
				stored++
			} else {
				kept++
			}
		}
	}
	require.Positive(t, stored)
	require.Positive(t, kept)
}
