package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// benchInput returns the file in SNAPSHOT_BENCH_FILE, or a new file of SNAPSHOT_BENCH_KEYS records
// (default 5000) of 2 KB.
func benchInput(b *testing.B) string {
	b.Helper()
	if path := os.Getenv("SNAPSHOT_BENCH_FILE"); path != "" {
		return path
	}
	n := 5000
	if v := os.Getenv("SNAPSHOT_BENCH_KEYS"); v != "" {
		n = must(strconv.Atoi(v))(b)
	}
	return copyOf(b, rebuilt(b, fixture(b), 4096, func(tx *bbolt.Tx) error {
		if err := withKeys(0)(tx); err != nil {
			return err
		}
		bucket := tx.Bucket([]byte("key"))
		bucket.FillPercent = 0.9
		for i := range n {
			key := fmt.Sprintf("/k/%06d", i)
			if err := putRecord(bucket, created(int64(i+30), key, string(etcdtest.Blob(key, 2048)))); err != nil {
				return err
			}
		}
		return nil
	}))
}

// BenchmarkOpenScan opens a file with the digest unchecked, and reads the latest record of each
// key.
func BenchmarkOpenScan(b *testing.B) {
	path := benchInput(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		s := must(Open(ctx, path, Config{SkipDigest: true}))(b)
		n := 0
		for _, err := range s.Live(ctx, nil) {
			require.NoError(b, err)
			n++
		}
		b.SetBytes(s.Size())
		b.ReportMetric(float64(n), "keys")
		require.NoError(b, s.Close())
	}
}

// BenchmarkWrite opens a file and changes every twentieth key, including digest and syncs.
func BenchmarkWrite(b *testing.B) {
	benchWrite(b, WriteConfig{}, func(s *Snapshot) iter.Seq2[Change, error] {
		return func(yield func(Change, error) bool) {
			n := 0
			for rec, err := range s.Live(context.Background(), nil) {
				if n++; n%20 != 0 {
					continue
				}
				if err != nil || !yield(Change{Key: rec.Key, Value: rec.Value, Lease: rec.Lease,
					Prior: rec.ModRevision}, nil) {
					return
				}
			}
		}
	})
}

// BenchmarkScrub opens a file and rewrites it without every twentieth key, including digests and
// syncs. BenchmarkCopy, which copies the file and computes the digest of the copy, is the lower
// limit.
func BenchmarkScrub(b *testing.B) {
	twentieth := func(key []byte) bool { return crc32.ChecksumIEEE(key)%20 == 0 }
	benchWrite(b, WriteConfig{Scrub: twentieth}, func(*Snapshot) iter.Seq2[Change, error] { return seq() })
}

func benchWrite(b *testing.B, cfg WriteConfig, changes func(s *Snapshot) iter.Seq2[Change, error]) {
	path := benchInput(b)
	out := filepath.Join(b.TempDir(), "out.db")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		s := must(Open(ctx, path, Config{}))(b)
		must(Write(ctx, out, s, changes(s), cfg))(b)
		b.SetBytes(s.Size())
		require.NoError(b, s.Close())
		require.NoError(b, os.Remove(out))
	}
}

func BenchmarkCopy(b *testing.B) {
	path := benchInput(b)
	dir := b.TempDir()
	for b.Loop() {
		in := must(os.Open(path))(b)
		out := must(os.Create(filepath.Join(dir, "out.db")))(b)
		n := must(io.Copy(out, in))(b)
		require.NoError(b, out.Sync())
		require.NoError(b, hashRange(context.Background(), sha256.New(), out, 0, n))
		b.SetBytes(n)
		require.NoError(b, errors.Join(in.Close(), out.Close(), os.Remove(out.Name())))
	}
}

// BenchmarkLive and BenchmarkLiveAt read an open file at its last revision, and at a quarter, a
// half and three quarters of the kept revisions.
func BenchmarkLive(b *testing.B) { benchLiveAt(b, 4) }

func BenchmarkLiveAt(b *testing.B) {
	for quarter := range 4 {
		b.Run(strconv.Itoa(25*quarter), func(b *testing.B) { benchLiveAt(b, int64(quarter)) })
	}
}

func benchLiveAt(b *testing.B, quarters int64) {
	ctx := context.Background()
	s := must(Open(ctx, benchInput(b), Config{SkipDigest: true}))(b)
	defer s.Close()
	oldest, newest, err := s.Kept(ctx)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range s.LiveAt(ctx, nil, oldest+(newest-oldest)*quarters/4) {
			require.NoError(b, err)
			n++
		}
		b.ReportMetric(float64(n), "keys")
	}
}
