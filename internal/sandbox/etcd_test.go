package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// restoreAndStart restores and starts a snapshot, and stops the cluster when the test ends.
func restoreAndStart(t *testing.T, snapshot string, o RestoreOptions) (*Cluster, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Restore(ctx, newSandbox(t), snapshot, o)
	if err == nil {
		err = c.Start(ctx)
		t.Cleanup(func() { c.Stop(context.Background()) })
	}
	return c, err
}

const recorded = "../../testdata/etcd/"

// Snapshots of each etcd version have their recorded hash after a restore.
func TestRestored(t *testing.T) {
	for _, version := range []string{"3.4", "3.5", "3.6", "3.7"} {
		text, err := os.ReadFile(recorded + "etcd-" + version + ".hashkv.json")
		require.NoError(t, err)
		var want []struct{ HashKV struct{ Hash uint32 } }
		require.NoError(t, json.Unmarshal(text, &want), string(text))
		before, err := os.ReadFile(recorded + "etcd-" + version + ".db")
		require.NoError(t, err)

		c, err := restoreAndStart(t, recorded+"etcd-"+version+".db", RestoreOptions{})
		require.NoError(t, err)
		got, err := c.Client().HashKV(t.Context(), c.Members[0].Endpoint, 0)
		require.NoError(t, err)
		require.Equal(t, want[0].HashKV.Hash, got.Hash, version)

		after, err := os.ReadFile(recorded + "etcd-" + version + ".db")
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

func TestBumped(t *testing.T) {
	c, err := restoreAndStart(t, recorded+"etcd-3.7.db", RestoreOptions{Bump: 1000})
	require.NoError(t, err)
	r, err := c.Client().Get(t.Context(), "\x00", clientv3.WithFromKey())
	require.NoError(t, err)
	require.Equal(t, int64(1033), r.Header.Revision)
	require.NotEmpty(t, r.Kvs)
	_, err = c.Client().Get(t.Context(), "a", clientv3.WithRev(1032))
	require.ErrorContains(t, err, "compacted")
}

// Three members form a cluster over unix sockets, with equal data before and after a write.
func TestMembers(t *testing.T) {
	c, err := restoreAndStart(t, recorded+"etcd-3.7.db", RestoreOptions{Members: 3, Bump: 10})
	require.NoError(t, err)
	require.Len(t, c.Members, 3)
	_, err = c.Client().Put(t.Context(), "new", "value")
	require.NoError(t, err)
	hashes := map[uint32]int{}
	for _, m := range c.Members {
		r, err := m.Client.Get(t.Context(), "new") // waits for the write
		require.NoError(t, err)
		require.Len(t, r.Kvs, 1)
		require.Equal(t, int64(44), r.Header.Revision)
		hash, err := m.Client.HashKV(t.Context(), m.Endpoint, 0)
		require.NoError(t, err)
		hashes[hash.Hash]++
	}
	require.Len(t, hashes, 1)
	list, err := c.Client().MemberList(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Members, 3)
}

// The error names a killed member, and the other members continue.
func TestMemberDies(t *testing.T) {
	c, err := restoreAndStart(t, recorded+"etcd-3.7.db", RestoreOptions{Members: 3})
	require.NoError(t, err)
	c.Members[2].Process.Stop(t.Context())
	_, err = c.Client().Put(t.Context(), "new", "value")
	require.NoError(t, err)
	require.Equal(t, os.ErrClosed, Explain(os.ErrClosed, c.Members[0].Process))
	require.EqualError(t, c.Explain(os.ErrClosed), "etcd-m3 has ended")
}

// If two of three members do not start, Start does not wait for the third.
func TestMembersDoNotStart(t *testing.T) {
	c, err := Restore(t.Context(), newSandbox(t), recorded+"etcd-3.7.db", RestoreOptions{Members: 3})
	require.NoError(t, err)
	for _, name := range []string{"m2", "m3"} {
		require.NoError(t, os.Truncate(filepath.Join(c.sandbox.Path(), name, "member/snap/db"), 5000))
	}
	err = c.Start(t.Context())
	require.ErrorContains(t, err, "failed to open database: file size too small")
}

// For records that etcdutl restores but etcd cannot load, the error has etcd's words.
func TestUnsound(t *testing.T) {
	revision := string(mvcc.RevToBytes(mvcc.Revision{Main: 34}, mvcc.NewRevBytes()))
	value, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte("/x"), CreateRevision: 34, ModRevision: 34, Version: 1})
	require.NoError(t, err)
	for _, tc := range []struct {
		name    string
		bucket  backend.Bucket
		records map[string]string
		want    string
	}{
		{"tombstone and put", schema.Key, map[string]string{revision: string(value), revision + "t": "\n\x02/x"},
			"etcd-m1 ended: exit status 2: 'put' with an unexpected smaller revision"},
		{"no protobuf", schema.Key, map[string]string{revision: "{}"},
			"etcd-m1 ended: exit status 1: failed to unmarshal mvccpb.KeyValue: proto"},
		{"short revision", schema.Key, map[string]string{revision[:16]: string(value)},
			"etcd-m1 ended: exit status 2: panic: invalid revision length: 16"},
		{"newer storage", schema.Meta, map[string]string{"storageVersion": "3.8.0"},
			`etcd-m1 ended: exit status 1: version "3.8.0" is not supported`},
		{"newer cluster", schema.Cluster, map[string]string{"clusterVersion": "3.8.0"},
			"etcd-m1 ended: exit status 2: invalid downgrade; server version is lower than determined cluster version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := restoreAndStart(t, edited(t, tc.bucket, tc.records), RestoreOptions{SkipHashCheck: true})
			t.Log(err)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// A snapshot with etcd users needs no password.
func TestAuth(t *testing.T) {
	path := edited(t, schema.Auth, map[string]string{"authEnabled": "\x01"})
	c, err := restoreAndStart(t, path, RestoreOptions{SkipHashCheck: true})
	require.NoError(t, err)
	status, err := c.Client().AuthStatus(t.Context())
	require.NoError(t, err)
	require.False(t, status.Enabled)
}

// Alarms survive a restore: etcd starts and refuses writes.
func TestAlarms(t *testing.T) {
	for alarm, want := range map[etcdserverpb.AlarmType]string{
		etcdserverpb.AlarmType_NOSPACE: "database space exceeded",
		etcdserverpb.AlarmType_CORRUPT: "corrupt cluster",
	} {
		key, err := proto.Marshal(&etcdserverpb.AlarmMember{MemberID: 1, Alarm: alarm})
		require.NoError(t, err)
		path := edited(t, schema.Alarm, map[string]string{string(key): ""})
		c, err := restoreAndStart(t, path, RestoreOptions{SkipHashCheck: true})
		require.NoError(t, err)
		_, err = c.Client().Put(t.Context(), "new", "value")
		require.ErrorContains(t, err, want)
	}
}

// edited returns a recorded snapshot with additional records in a bucket, and without a digest.
func edited(t *testing.T, bucket backend.Bucket, records map[string]string) (path string) {
	t.Helper()
	data, err := os.ReadFile(recorded + "etcd-3.7.db")
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "edited.db")
	require.NoError(t, os.WriteFile(path, data[:len(data)-32], 0o600))
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	tx := b.BatchTx()
	tx.LockOutsideApply()
	for key, value := range records {
		tx.UnsafePut(bucket, []byte(key), []byte(value))
	}
	tx.Unlock()
	require.NoError(t, b.Close())
	return path
}

// The error for a snapshot refused by etcdutl, or a crash of etcdutl, has etcdutl's words.
func TestRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("this is no snapshot, but it is longer than the digest of one"),
		0o600))
	_, err := restoreAndStart(t, text, RestoreOptions{})
	require.ErrorContains(t, err, "restore-1 ended: exit status 1: snapshot missing hash but --skip-hash-check=false")
	_, err = restoreAndStart(t, text, RestoreOptions{SkipHashCheck: true})
	t.Log(err)
	require.ErrorContains(t, err, "invalid database")
	_, err = restoreAndStart(t, "absent", RestoreOptions{})
	require.ErrorContains(t, err, "absent: no such file or directory")
}
