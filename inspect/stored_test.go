package inspect

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

func stored(t *testing.T, r *Reader, prefix string, history bool) (out []Stored) {
	t.Helper()
	for s, err := range StoredRecords(context.Background(), r, []byte(prefix), history) {
		require.NoError(t, err)
		out = append(out, *s)
	}
	return out
}

// TestStored checks records with their states, and keys of no layout.
func TestStored(t *testing.T) {
	s, err := snapshot.Open(context.Background(), etcdtest.Build(t, `
put /registry/namespaces/default {}
put /registry/pods/ns/p {}
grant 74565 100
put /registry/pods/ns/p {"a":1} lease=74565
put /registry/pods/ns/gone {}
del /registry/pods/ns/gone
put /registry/pods/too/many/segments x
put "\xff/x" x
`), snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := NewReader(s, nil)
	prefix := "/registry"
	p := Stored{Key: "/registry/pods/ns/p", Prefix: &prefix, Resource: "pods", Namespace: "ns", Name: "p",
		State: StateLive, Revision: 4, CreateRevision: 3, Version: 2, Lease: "12345", Bytes: 7, Encoding: "JSON"}
	require.Equal(t, []Stored{p}, stored(t, r, "/registry/pods/ns/", false))

	all := stored(t, r, "/registry/pods/ns/", true)
	old := p
	old.State, old.Revision, old.Version, old.Lease, old.Bytes = StateSuperseded, 3, 1, "", 2
	gone := Stored{Key: "/registry/pods/ns/gone", Prefix: &prefix, Resource: "pods", Namespace: "ns", Name: "gone",
		State: StateSuperseded, Revision: 5, CreateRevision: 5, Version: 1, Bytes: 2, Encoding: "JSON"}
	tombstone := gone
	tombstone.State, tombstone.Revision, tombstone.CreateRevision = StateDeletion, 6, 0
	tombstone.Version, tombstone.Bytes, tombstone.Encoding = 0, 0, ""
	require.Equal(t, []Stored{old, p, gone, tombstone}, all)

	rest := stored(t, r, "", false)
	require.Len(t, rest, 4)
	require.Equal(t, Stored{Key: "/registry/pods/too/many/segments",
		Unknown: "wrong number of segments for pods, which is namespaced", Prefix: &prefix,
		State: StateLive, Revision: 7, CreateRevision: 7, Version: 1, Bytes: 1, Encoding: "unknown"}, rest[2])
	require.Equal(t, Stored{Key: "\xff/x", KeyBytes: []byte("\xff/x"), Unknown: "under no storage prefix",
		State: StateLive, Revision: 8, CreateRevision: 8, Version: 1, Bytes: 1, Encoding: "unknown"}, rest[3])
}

// TestStoredEncrypted checks the provider of an encrypted value, and the encoding of a decryptable
// value.
func TestStoredEncrypted(t *testing.T) {
	a := transformers(t, "a")
	s := written(t, record{marker, "{}"}, encrypted(t, a, "/registry/secrets/ns/a", "k8s\x00..."))
	for encoding, decrypter := range map[string]Decrypter{"protobuf": a, "encrypted": transformers(t, "b")} {
		got := stored(t, NewReader(s, decrypter), "/registry/secrets/", true)
		require.Len(t, got, 1)
		require.Equal(t, []any{encoding, "aesgcm:v1:a", StateLive},
			[]any{got[0].Encoding, got[0].Encryption, got[0].State})
	}
	for _, err := range StoredRecords(context.Background(), NewReader(s, failing{}), nil, false) {
		require.ErrorContains(t, err, "socket is gone")
	}
}

// alone counts calls, and calls that begin before the previous call has ended.
type alone struct{ running, calls, overlaps atomic.Int32 }

func (a *alone) Decrypt(_ context.Context, _ schema.GroupResource, _, stored []byte) ([]byte, bool, error) {
	a.calls.Add(1)
	if a.running.Add(1) > 1 {
		a.overlaps.Add(1)
	}
	time.Sleep(time.Millisecond) // time for a second call to begin
	a.running.Add(-1)
	return stored, false, nil
}

// TestStoredDecryptsOneByOne checks that a plugin decrypts each value once, and one value after the
// other.
func TestStoredDecryptsOneByOne(t *testing.T) {
	records := []record{{marker, "{}"}}
	for i := range 100 {
		records = append(records, record{fmt.Sprintf("/registry/secrets/ns/s%d", i), "{}"})
	}
	s := written(t, records...)
	for _, history := range []bool{false, true} {
		plugin := &alone{}
		require.Len(t, stored(t, NewReader(s, plugin), "/registry/secrets/", history), 100)
		require.Equal(t, []int32{100, 0}, []int32{plugin.calls.Load(), plugin.overlaps.Load()})
	}
}

// TestStoredKCP reads a recorded kcp.
func TestStoredKCP(t *testing.T) {
	got := stored(t, NewReader(recordedKCP(t, "root-before"), nil), "/registry/pods/", false)
	require.Len(t, got, 3)
	for _, s := range got {
		require.Empty(t, s.Unknown)
		require.Equal(t, "pods", s.Resource)
		require.Len(t, s.Identity, 64)
		require.NotEmpty(t, s.Cluster)
	}
	got = stored(t, NewReader(recordedKCP(t, "cache-before"), nil), "/cache/rbac", false)
	require.Len(t, got, 19)
	for _, s := range got {
		require.True(t, s.Custom)
		require.Contains(t, []string{"root", "shard-1"}, s.Shard)
	}
}
