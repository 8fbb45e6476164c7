package snapshot

import (
	"bytes"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
)

// siftIsLive compares the file at path without and with an index. Of a file whose records are
// damaged, Sift says nothing.
func siftIsLive(t testing.TB, path string) (sifted bool) {
	t.Helper()
	s, err := Open(t.Context(), path, Config{})
	if err != nil {
		return false
	}
	defer s.Close()
	want := func(key []byte) bool { return len(key)%3 != 0 }
	live, ok := s.Sift(t.Context(), want)
	if !ok {
		return false
	}
	newest := must(s.newest(t.Context(), 7))(t)
	clones := func(all iter.Seq2[*Record, error], want func(key []byte) bool) (out []*Record) {
		for rec, err := range all {
			require.NoError(t, err, "after a sift")
			if want(rec.Key) {
				out = append(out, new(*rec))
			}
		}
		return out
	}
	indexed := clones(s.Live(t.Context(), nil), want)
	require.Equal(t, len(indexed), len(live))
	for i := range live {
		require.Equal(t, indexed[i], live[i])
	}
	all := clones(s.Live(t.Context(), nil), func([]byte) bool { return true })
	require.Equal(t, all[max(0, len(all)-7):], newest)
	return true
}

func TestSift(t *testing.T) {
	for _, name := range []string{"calico/before.db", "kcp/root-before.db", "storage/before.db", "kubectl/all.db"} {
		require.True(t, siftIsLive(t, gunzip(t, name)), name)
	}
}

// BenchmarkSift finds one key without an index.
func BenchmarkSift(b *testing.B) {
	s := must(Open(b.Context(), benchInput(b), Config{SkipDigest: true}))(b)
	defer s.Close()
	for b.Loop() {
		_, ok := s.Sift(b.Context(), func(key []byte) bool { return bytes.HasSuffix(key, []byte("/000007")) })
		require.True(b, ok)
	}
}
