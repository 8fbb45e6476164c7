package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

func customKinds() []string { return []string{"Widget", "Route", "Backup"} }

// definitions returns the CRDs, the Namespaces of all objects, and a Pod with a known name.
func definitions(t testing.TB) (out []pair) {
	t.Helper()
	out = tenants(t)
	for _, kind := range customKinds() {
		key := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + plural(kind) + "." + group
		out = append(out, pair{[]byte(key), definition(t, kind)})
	}
	m := maker{t, rand.New(rand.NewPCG(1, 1))}
	pod := m.pod()
	pod.Name, pod.Namespace = "needle", "tenant-000"
	return append(out, pair{[]byte("/registry/pods/tenant-000/needle"), m.encode(pod)})
}

// makeInput writes the input of a variant for a number of keys.
func makeInput(t testing.TB, variant string, keys int, path string) {
	t.Helper()
	c := content{keys: keys, seed: 1, extra: definitions(t)}
	switch variant {
	case "stale5":
		c.stale = 5
	case "stale25":
		c.stale = 25
	case "calico":
		c.extra = append(c.extra, recordedCalico(t)...)
	case "ipam":
		recorded := recordedCalico(t)
		c.extra = append(append(c.extra, recorded...), manyCalico(t, recorded, keys*3/2)...)
	case "events": // half of the keys
		c.extra = append(c.extra, moreEvents(t, keys/4)...)
	case "kcp":
		copyTo(t, kcptest.Many(t, keys/100), path, 0)
		return
	case "member": // with a log of 10,000 requests after the database
		full := path + ".full"
		generate(t, full, c)
		makeMember(t, full, path)
		require.NoError(t, os.Remove(full))
		return
	case "ruin": // without a meta page
		generate(t, path, c)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(make([]byte, 2*etcdtest.PageSize), 0)
		require.NoError(t, errors.Join(err, f.Close()))
		return
	case "raw": // without a digest, so that commands do not check it
		full := path + ".full"
		generate(t, full, c)
		copyTo(t, full, path, 32)
		require.NoError(t, os.Remove(full))
		return
	}
	generate(t, path, c)
}

// makeMember makes the data directory of a member whose database is 10,000 requests behind its log:
// such as a restored one that an etcd served, and that got its database of before back.
func makeMember(t testing.TB, full, path string) {
	t.Helper()
	require.NoError(t, os.CopyFS(path, os.DirFS(etcdtest.Restore(t, full))))
	db, before := filepath.Join(path, "member", "snap", "db"), path+".before"
	etcdtest.Start(t, path).Stop()
	copyTo(t, db, before, 0)
	server := etcdtest.Start(t, path)
	for i := range 10_000 {
		key, value := fmt.Sprintf("/registry/configmaps/bench/late-%d", i%1000), strings.Repeat("x", 2000)
		_, err := server.Client.Put(t.Context(), key, value)
		require.NoError(t, err)
	}
	server.Stop()
	require.NoError(t, os.Rename(before, db))
}

// moreEvents returns n Events, in addition to the quarter of keys that are Events.
func moreEvents(t testing.TB, n int) (out []pair) {
	t.Helper()
	m := maker{t, rand.New(rand.NewPCG(2, 1))}
	events := m.builtIn(100, "events", func() runtime.Object { return m.event() })
	for i := range n {
		namespace, name := fmt.Sprintf("tenant-%03d", i%namespaces), fmt.Sprintf("warning--%08d-%05d", i, i%99999)
		value := events.current[i%variants].fill(name, namespace, fmt.Sprintf("%08x-0000-4000-8000-0000000000ee", i))
		out = append(out, pair{[]byte("/registry/events/" + namespace + "/" + name), value})
	}
	return out
}

// tenants returns the Namespaces of all objects.
func tenants(t testing.TB) (out []pair) {
	t.Helper()
	m := maker{t, rand.New(rand.NewPCG(3, 1))}
	for i := range namespaces {
		name := fmt.Sprintf("tenant-%03d", i)
		ns := &corev1.Namespace{ObjectMeta: m.meta("kubectl"),
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
		ns.Name, ns.Namespace, ns.UID = name, "", types.UID(fmt.Sprintf("%08x-0000-4000-8000-00000000009a", i))
		ns.Labels["kubernetes.io/metadata.name"] = name
		out = append(out, pair{[]byte("/registry/namespaces/" + name), m.encode(ns)})
	}
	return out
}

// copyTo copies a file without its last bytes.
func copyTo(t testing.TB, from, to string, without int64) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	info, err := in.Stat()
	require.NoError(t, err)
	out, err := os.Create(to)
	require.NoError(t, err)
	_, err = io.CopyN(out, in, info.Size()-without)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// recordedCalico returns the live keys of a recorded cluster, including 63 v1 records.
func recordedCalico(t testing.TB) (out []pair) {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, filepath.Join("..", "..", "..", "testdata", "calico", "before.db.gz"),
		snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for r, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		out = append(out, pair{bytes.Clone(r.Key), bytes.Clone(r.Value)})
	}
	return out
}
