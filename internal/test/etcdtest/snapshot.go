package etcdtest

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.uber.org/zap"
)

const (
	memberName = "default"
	peerURL    = "http://127.0.0.1:2380" // recorded by a restore; no server listens there
)

// RestoreOption changes the configuration of Restore.
type RestoreOption func(*snapshot.RestoreConfig)

// BumpRevision sets etcdutl's --bump-revision N --mark-compacted.
func BumpRevision(n uint64) RestoreOption {
	return func(c *snapshot.RestoreConfig) { c.RevisionBump, c.MarkCompacted = n, true }
}

// SkipHashCheck sets etcdutl's --skip-hash-check, for a database file without a digest.
func SkipHashCheck(c *snapshot.RestoreConfig) { c.SkipHashCheck = true }

// Restore runs etcdutl snapshot restore with the digest check, and returns a data directory.
func Restore(t testing.TB, snapshotPath string, opts ...RestoreOption) (dataDir string) {
	t.Helper()
	dataDir, err := TryRestore(t, snapshotPath, opts...)
	require.NoError(t, err, "etcdutl snapshot restore %s", snapshotPath)
	return dataDir
}

// TryRestore is Restore for snapshots that etcdutl may refuse.
func TryRestore(t testing.TB, snapshotPath string, opts ...RestoreOption) (dataDir string, err error) {
	t.Helper()
	dataDir = filepath.Join(t.TempDir(), "restored.etcd")
	cfg := snapshot.RestoreConfig{
		SnapshotPath:        snapshotPath,
		Name:                memberName,
		OutputDataDir:       dataDir,
		PeerURLs:            []string{peerURL},
		InitialCluster:      memberName + "=" + peerURL,
		InitialClusterToken: "etcdtest",
	}
	for _, o := range opts {
		o(&cfg)
	}
	return dataDir, snapshot.NewV3(zap.NewNop()).Restore(cfg)
}

// Unpack expands a recorded snapshot (gzip) into a read-only file.
func Unpack(t testing.TB, packed string) (path string) {
	t.Helper()
	f, err := os.Open(packed)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(packed), ".gz"))
	WriteNew(t, path, z)
	require.NoError(t, os.Chmod(path, 0o444))
	return path
}

// UnpackMember unpacks a recorded data directory (tar, zstd) into dir, as the folder "data".
func UnpackMember(packed, dir string) error {
	f, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	for r := tar.NewReader(z); err == nil; {
		var h *tar.Header
		if h, err = r.Next(); err == nil {
			err = unpackOne(filepath.Join(dir, h.Name), h, r)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func unpackOne(path string, h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, 0o700)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close(), os.Chtimes(path, h.ModTime, h.ModTime))
}

// Edit changes the database of a data directory directly, without etcd.
func Edit(t testing.TB, dataDir string, edit func(tx backend.UnsafeReadWriter)) {
	t.Helper()
	b := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(dataDir, "member", "snap", "db"))
	defer func() { require.NoError(t, b.Close()) }()
	tx := b.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	edit(tx)
}

// StatusOf runs etcdutl snapshot status on a copy of the file.
func StatusOf(t testing.TB, path string) snapshot.Status {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "status.db")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, data, 0o600))
	status, err := snapshot.NewV3(zap.NewNop()).Status(copied)
	require.NoError(t, err, "etcdutl snapshot status %s", path)
	return status
}

// Save writes the bytes of etcdctl snapshot save, including the digest, to a new file.
func Save(t testing.TB, s *Server, path string) {
	t.Helper()
	stream, err := s.Client.Snapshot(context.Background())
	require.NoError(t, err)
	defer stream.Close()
	WriteNew(t, path, stream)
}

// WriteNew writes the bytes of r to a new file.
func WriteNew(t testing.TB, path string, r io.Reader) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err)
	_, err = io.Copy(f, r)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// HashKV returns the server's hash over all records up to rev (0: the current revision), with that
// revision and the compact revision; the hash excludes history below the compact revision.
func HashKV(t testing.TB, s *Server, rev int64) (hash uint32, hashRevision, compactRevision int64) {
	t.Helper()
	r, err := s.Client.HashKV(context.Background(), s.URL, rev)
	require.NoError(t, err)
	return r.Hash, r.HashRevision, r.CompactRevision
}

// KV is a live key as read by a client.
type KV struct {
	Key, Value                  []byte
	CreateRevision, ModRevision int64
	Version                     int64
	Lease                       int64
}

// Dump returns all live keys at rev (0: the current revision), in key order.
func Dump(t testing.TB, s *Server, rev int64) []KV {
	t.Helper()
	kvs, err := Range(context.Background(), s, "\x00", clientv3.WithFromKey(), clientv3.WithRev(rev))
	require.NoError(t, err)
	return kvs
}

// Range reads keys like a client, and returns nil for none.
func Range(ctx context.Context, s *Server, key string, opts ...clientv3.OpOption) (kvs []KV, err error) {
	r, err := s.Client.Get(ctx, key, opts...)
	if err != nil {
		return nil, err
	}
	for _, kv := range r.Kvs {
		kvs = append(kvs, KV{
			Key: kv.Key, Value: kv.Value,
			CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
			Version: kv.Version, Lease: kv.Lease,
		})
	}
	return kvs, nil
}

// Revision returns the server's current revision.
func Revision(t testing.TB, s *Server) int64 {
	t.Helper()
	r, err := s.Client.Get(context.Background(), "\x00", clientv3.WithCountOnly())
	require.NoError(t, err)
	return r.Header.Revision
}
