package move_test

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// BenchmarkShard runs each command on a shard of 2,000 logical clusters, in bytes of its file, and
// for comparison a copy of that file with its SHA-256. Each run writes under new names.
func BenchmarkShard(b *testing.B) {
	const name = "bench00000000777"
	shard, small, x := kcptest.Many(b, 2000), shard1(b), move.Extract{Name: name}
	m := moveOf(b, name, shard, small)
	for job, run := range map[string]func(b *testing.B){
		"copy":    func(b *testing.B) { copyHashed(b, shard, filepath.Join(b.TempDir(), "out.db")) },
		"list":    func(b *testing.B) { list(b, shard) },
		"extract": func(b *testing.B) { extract(b, shard, x).written() },
		"purge":   func(b *testing.B) { purgeOf(b, name, shard) },
		"import":  func(b *testing.B) { importInto(b, m.archive, m.originOut, move.Import{}).written() },
		"verify":  func(b *testing.B) { require.True(b, m.verdict(b).Sound()) },
	} {
		b.Run(job, func(b *testing.B) {
			info, err := os.Stat(shard)
			require.NoError(b, err)
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				run(b)
			}
		})
	}
}

// list does the work of kcp list.
func list(b *testing.B, path string) {
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(b, err)
	f, err := kcp.ReadChecked(context.Background(), inspect.NewReader(s, nil))
	require.NoError(b, err)
	kcp.Survey([]kcp.Named{{Path: path, File: f}}, nil)
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
