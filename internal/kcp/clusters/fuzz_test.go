package clusters

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
)

// FuzzValues: whatever lies under a key that tells of logical clusters, reading it ends, and what
// cannot be read leaves nothing. A value agrees with its key only if decoding it says so.
func FuzzValues(f *testing.F) {
	for e, err := range reader(f, kcptest.Recorded(f, kcptest.Root), nil).Live(context.Background(), nil) {
		require.NoError(f, err)
		switch key, _ := (keys.KCPShard{Prefix: "/registry"}).Parse(e.Key); key.Resource.Resource {
		case "logicalclusters", "apibindings", "apiexports", "workspaces", "shards":
			f.Add(append([]byte{}, e.Value...))
		}
	}
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"version":"v1"}}`))
	f.Add([]byte("\xd9\xd9\xf7\xa1\x44kind\x49Workspace"))
	f.Add([]byte("k8s\x00\x0a\x00"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"\u003c","kcp.io/cluster":"c"},"name":"n"}}`))
	f.Add(inProtobuf(f, "n", "", map[string]string{"a": "b", "kcp.io/cluster": "c", "kcp.io/shard": "s"}))
	f.Fuzz(func(t *testing.T, value []byte) {
		var c Cluster
		var w Workspace
		var d Definition
		var exports []Export
		var registered []RegisteredShard
		key := keys.Key{Cluster: "c", Name: "n"}
		x := examination{pass: &pass{}, key: key, entry: inspect.Entry{Value: value}}
		if m, err := metadataOf(value); x.agrees() {
			require.NoError(t, err)
			require.Empty(t, m.differs(key))
		}
		said := map[string]any{}
		for kind, read := range map[string]reading{
			"LogicalCluster": c.reading(), "APIBinding": c.readBinding(key, names{}), "APIExport": readExport(key, &exports),
			"Workspace": readWorkspace(func() *Workspace { return &w }), "Shard": readShard(key, &registered), "CustomResourceDefinition": d.reading(),
		} {
			if m, err := read.decode(value); err == nil {
				read.take()
				said[kind] = m.differs(key)
			}
		}
		require.LessOrEqual(t, len(said), 1, "a value is of one kind")
		switch {
		case said["LogicalCluster"] != nil:
			c = Cluster{}
		case said["APIBinding"] != nil:
			require.Len(t, c.Bindings, 1)
			c.Bindings = nil
		case said["Workspace"] != nil:
			w = Workspace{}
		case said["CustomResourceDefinition"] != nil:
			d = Definition{}
		}
		d.Problem = ""
		require.Equal(t, []any{Cluster{}, Workspace{}, Definition{}}, []any{c, w, d})
		require.Equal(t, []bool{said["APIExport"] != nil, said["Shard"] != nil}, []bool{len(exports) == 1, len(registered) == 1})
	})
}

// BenchmarkRead reads a shard with 2,000 logical clusters of 40 keys, once as Read and once as
// ReadChecked does.
func BenchmarkRead(b *testing.B) {
	path := kcptest.Many(b, 2000)
	for name, read := range map[string]func(context.Context, *inspect.Reader) (*File, error){"few": Read, "all": ReadChecked} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := read(context.Background(), reader(b, path, nil))
				require.NoError(b, err)
				require.Len(b, f.Shards[0].Clusters, 2000+9)
			}
		})
	}
}
