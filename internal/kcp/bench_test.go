package kcp_test

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// BenchmarkShard is each job on a shard of 2,000 logical clusters, in bytes of its file, beside one
// copy of that file with its SHA-256. The names of what is written are new in each run.
func BenchmarkShard(b *testing.B) {
	const name = "bench00000000777"
	shard, small := kcptest.Many(b, 2000), kcptest.Recorded(b, kcptest.Shard1)
	archived := extractOf(b, shard, extraction{Name: name})
	purged := purgeOf(b, name, shard)
	imported := importInto(b, archived, small, carry.Import{}, transform.Options{}).written().out
	out := func() string { return filepath.Join(b.TempDir(), "out.db") }
	for _, job := range []struct {
		name string
		run  func(b *testing.B)
	}{
		{"copy", func(b *testing.B) { copyHashed(b, shard, out()) }},
		{"list", func(b *testing.B) { list(b, shard) }},
		{"extract", func(b *testing.B) { extractOf(b, shard, extraction{Name: name}) }},
		{"purge", func(b *testing.B) { purgeOf(b, name, shard) }},
		{"import", func(b *testing.B) {
			importInto(b, archived, purged, carry.Import{}, transform.Options{}).written()
		}},
		{"verify", func(b *testing.B) {
			v, err := moveFiles{archive: archived, origin: shard, originOut: purged, destination: small, destinationOut: imported}.verify(b)
			require.NoError(b, err)
			require.True(b, v.Sound())
		}},
	} {
		b.Run(job.name, func(b *testing.B) {
			info, err := os.Stat(shard)
			require.NoError(b, err)
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				job.run(b)
			}
		})
	}
}

// list is what kcp list does.
func list(b *testing.B, path string) {
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(b, err)
	f, err := clusters.ReadChecked(context.Background(), inspect.NewReader(s, nil))
	require.NoError(b, err)
	clusters.Survey([]clusters.Named{{Path: path, File: f}}, nil)
	_, err = s.Digest(context.Background())
	require.NoError(b, err)
	require.NoError(b, s.Close())
}

func copyHashed(b *testing.B, from, to string) {
	in, err := os.Open(from)
	require.NoError(b, err)
	out, err := os.Create(to)
	require.NoError(b, err)
	_, err = io.Copy(io.MultiWriter(out, sha256.New()), in)
	require.NoError(b, err)
	require.NoError(b, in.Close())
	require.NoError(b, out.Sync())
	require.NoError(b, out.Close())
}
