package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

func measured(t testing.TB, path string, top int) *Sizes {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	got, err := Measure(ctx, NewReader(s, nil), top)
	require.NoError(t, err)
	consistent(t, got)
	return got
}

// consistent checks that every byte is counted once.
func consistent(t testing.TB, got *Sizes) {
	t.Helper()
	require.Equal(t, got.Image, got.Live.Bytes+got.Superseded.Bytes+got.Tombstones.Bytes+got.FreePages+got.Overhead)
	require.Positive(t, got.Overhead)
	sum := func(shares []Share) (live, history int64) {
		for _, s := range shares {
			live, history = live+s.Live, history+s.History
		}
		return live, history
	}
	for _, shares := range [][]Share{got.Resources, got.Namespaces} {
		live, history := sum(shares)
		require.Equal(t, got.Live.Bytes, live)
		require.Equal(t, got.Superseded.Bytes+got.Tombstones.Bytes, history)
	}
	for _, shares := range [][]Share{got.Resources, got.Namespaces, got.Owners, got.Fields} {
		require.True(t, slices.IsSortedFunc(shares, func(a, b Share) int {
			return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(b.History, a.History), cmp.Compare(a.Name, b.Name))
		}), "%v", shares)
	}
	require.True(t, slices.IsSortedFunc(got.Largest, func(a, b Largest) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key))
	}), "%v", got.Largest)
	for _, shares := range [][]Share{got.Owners, got.Fields} {
		live, _ := sum(shares)
		require.Equal(t, got.Live.Bytes, live)
	}
}

func share(t testing.TB, shares []Share, name string) Share {
	t.Helper()
	for _, s := range shares {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "no such share", name)
	return Share{}
}

func TestMeasure(t *testing.T) {
	object := func(kind, ns, name, rest string) string {
		return fmt.Sprintf("%q", fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q%s`,
			kind, name, ns, rest))
	}
	got := measured(t, etcdtest.Build(t, strings.Join([]string{
		"put /registry/namespaces/default " + object("Namespace", "", "default", `},"spec":{}}`),
		"put /registry/pods/a/one " + object("Pod", "a", "one",
			`,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u",`+
				`"controller":true}]},"spec":{"x":1},"status":{"y":2}}`),
		"put /registry/pods/a/one " + object("Pod", "a", "one",
			`,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u",`+
				`"controller":true}]},"spec":{"x":2},"status":{"y":2}}`),
		"put /registry/pods/b/two " + object("Pod", "b", "two", `,"managedFields":[1]},"spec":{}}`),
		"put /registry/configmaps/b/big " + object("ConfigMap", "b", "big",
			`},"data":{"x":"`+strings.Repeat("y", 9000)+`"}}`),
		"put /registry/secrets/b/s k8s:enc:aescbc:v1:key1:0123456789",
		"put /registry/pods/b/gone 1", "del /registry/pods/b/gone", "put compact_rev_key 7",
	}, "\n")), 2)
	require.Equal(t, 6, got.Live.Records)
	require.Equal(t, 2, got.Superseded.Records)
	require.Equal(t, 1, got.Tombstones.Records)
	require.Equal(t, []string{"/registry/configmaps/b/big", "/registry/pods/a/one"},
		[]string{got.Largest[0].Key, got.Largest[1].Key})
	require.Equal(t, "configmaps", got.Largest[0].Resource)
	require.Equal(t, "configmaps", got.Resources[0].Name)
	pods := share(t, got.Resources, "pods")
	require.Equal(t, 2, pods.Objects)
	require.Greater(t, pods.History, int64(200))
	require.Equal(t, 3, share(t, got.Namespaces, "b").Objects)
	require.Equal(t, 1, share(t, got.Resources, "(other keys)").Objects)
	require.Equal(t, 1, share(t, got.Owners, "ReplicaSet.apps").Objects)
	require.Equal(t, 5, share(t, got.Owners, "").Objects)
	require.Equal(t, int64(len(`"managedFields":[1]`)), share(t, got.Fields, fieldNames()[fieldManaged]).Live)
	require.Equal(t, int64(len(`"status":{"y":2}`)), share(t, got.Fields, fieldNames()[fieldStatus]).Live)
	require.Equal(t, int64(len(`"data":{"x":""}`)+9000), share(t, got.Fields, fieldNames()[fieldData]).Live)
	require.Equal(t, 1, share(t, got.Fields, fieldNames()[fieldEncrypted]).Objects)
	require.Equal(t, 1, share(t, got.Fields, fieldNames()[fieldNoObject]).Objects)
	require.Empty(t, measured(t, etcdtest.Build(t, "put a b"), 0).Largest)
}

// TestSavings compares the estimates with the sizes of a real etcd after compaction and
// defragmentation: within two percent and four pages.
func TestSavings(t *testing.T) {
	for name, size := range map[string]func(*rand.Rand) int{
		"small": func(r *rand.Rand) int { return 50 + r.IntN(400) },
		"mixed": func(r *rand.Rand) int { return 1 << (4 + r.IntN(11)) },
		"pages": func(r *rand.Rand) int { return 3000 + r.IntN(3000) },
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			var script strings.Builder
			for range 40 {
				script.WriteString("txn {\n")
				seen := map[int]bool{}
				for range 60 {
					n := random.IntN(1500)
					if seen[n] {
						continue
					}
					seen[n] = true
					if key := fmt.Sprintf("/registry/pods/ns/pod-%d", n); random.IntN(6) == 0 {
						fmt.Fprintf(&script, "del %s\n", key)
					} else {
						fmt.Fprintf(&script, "put %s size=%d\n", key, size(random))
					}
				}
				script.WriteString("}\n")
			}
			path := etcdtest.Build(t, script.String())
			before := measured(t, path, 0)
			require.Positive(t, before.Superseded.Records)
			require.Positive(t, before.Tombstones.Records)

			server := etcdtest.Start(t, etcdtest.Restore(t, path))
			upkeep := func(name string, compact bool) *Sizes {
				ctx := context.Background()
				if compact {
					_, err := server.Client.Compact(ctx, etcdtest.Revision(t, server), clientv3.WithCompactPhysical())
					require.NoError(t, err)
				}
				_, err := server.Client.Defragment(ctx, server.URL)
				require.NoError(t, err)
				out := filepath.Join(t.TempDir(), name)
				etcdtest.Save(t, server, out)
				return measured(t, out, 0)
			}
			near := func(want, got int64) {
				t.Logf("estimated %d, real %d", want, got)
				require.InDelta(t, got, want, float64(got)*0.02+4*float64(before.PageSize))
			}
			near(before.Savings.Defragmented, upkeep("defragmented.db", false).Image)
			after := upkeep("compacted.db", true)
			near(before.Savings.Compacted, after.Image)
			require.Zero(t, after.Superseded.Records)
			require.Equal(t, before.Live, after.Live)
			near(after.Savings.Defragmented, after.Image)
		})
	}
}

// TestMeasureOrder checks the order by live bytes: a resource with much history and few live values
// is not first.
func TestMeasureOrder(t *testing.T) {
	got := measured(t, etcdtest.Build(t, strings.Join([]string{
		"put /registry/namespaces/default n",
		"put /registry/leases/a/one " + strings.Repeat("x", 9000), "put /registry/leases/a/one x",
		"put /registry/configmaps/b/two " + strings.Repeat("x", 100),
		"put /registry/pods/b/two " + strings.Repeat("x", 150),
		"put /registry/secrets/b/two " + strings.Repeat("x", 102),
		"put /registry/secrets/b/one " + strings.Repeat("x", 102),
		"put /registry/pods/b/gone 1", "del /registry/pods/b/gone",
	}, "\n")), 5)
	var names []string
	for _, s := range got.Resources {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"secrets", "pods", "configmaps", "namespaces", "leases.coordination.k8s.io"}, names)
	require.Equal(t, []string{"/registry/pods/b/two", "/registry/secrets/b/one", "/registry/secrets/b/two",
		"/registry/configmaps/b/two", "/registry/leases/a/one"},
		[]string{got.Largest[0].Key, got.Largest[1].Key, got.Largest[2].Key, got.Largest[3].Key, got.Largest[4].Key})
}
