package snapshot

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// without returns a Scrub function for keys with one of the prefixes.
func without(prefixes ...string) func([]byte) bool {
	return func(key []byte) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(key), p) })
	}
}

// TestScrubbed checks that a real server serves the rest of recordings, random histories and an
// interrupted compaction, at every revision, and continues from there.
func TestScrubbed(t *testing.T) {
	inputs := map[string]func(t testing.TB) *Snapshot{
		"scheduled compaction": func(t testing.TB) *Snapshot {
			return open(t, copyOf(t, rebuilt(t, built(t, pastStory), 4096, func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte(mvcc.ScheduledCompact),
					mvcc.AppendRevisionKey(nil, Revision{Main: 12}, false))
			})))
		},
	}
	for _, name := range append(releases(), "kcp/root-before.db", "calico/before.db") {
		inputs[name] = func(t testing.TB) *Snapshot { return open(t, recorded(t, name)) }
	}
	for seed := range uint64(4) {
		inputs[fmt.Sprint("history ", seed)] = func(t testing.TB) *Snapshot {
			return sameSaved(t,
				newRandom(t, seed, 7, 250).server)
		}
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := input(t)
			cfg := WriteConfig{Scrub: without("/a/b/", "z", "/go/", "/registry/co"), Leases: []Lease{{1 << 40, 3600}}}
			path, res := proved(t, s, cfg, put("/new", "x"))
			require.NotZero(t, res.Scrubbed)
			goesOn(t, path, "", nil)
		})
	}
}

// TestScrubbedServed checks that a server returns the rest, and watches the rest, like a server
// that never had the scrubbed keys.
func TestScrubbedServed(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, pastStory)
	s := sameSaved(t, live)
	path, res := proved(t, s, WriteConfig{Scrub: without("/go/")}, del("/go/a"), put("/stay/new", "n"))
	goesOn(t, path, "/stay/leased", func(server *etcdtest.Server) {
		require.Equal(t, res.Revision, etcdtest.Revision(t, server))
		oldest, _, err := s.Kept(t.Context())
		require.NoError(t, err)
		var want []string
		for _, event := range watched(t, live, oldest+1, revision(t, s)) {
			if !strings.Contains(event, " /go/") {
				want = append(want, event)
			}
		}
		require.Equal(t, append(want, fmt.Sprintf("PUT /stay/new %d", res.Revision-1)),
			watched(t, server, oldest+1, res.Revision))
	})
}

// TestScrubbedCompressed checks that scrubbing a compressed and an expanded file gives the same
// bytes.
func TestScrubbedCompressed(t *testing.T) {
	cfg := WriteConfig{Scrub: without("/registry/core")}
	packed, _ := write(t, open(t, filepath.Join("..", "testdata", "kcp", "cache-before.db.gz")), cfg)
	expanded, _ := write(t, open(t, gunzip(t, "kcp/cache-before.db")), cfg)
	require.Equal(t, sumOf(t, expanded), sumOf(t, packed))
}

// TestScrubbedChanges checks that a scrubbed key cannot be written, and that its deletion must be
// planned for the present record.
func TestScrubbedChanges(t *testing.T) {
	s := open(t, copyOf(t, built(t, "put /a/1 x\nput /a/2 x\nput /b y\ndel /a/2")))
	deleted := func(prior int64) Change { return Change{Key: []byte("/a/1"), Delete: true, Prior: prior} }
	for _, changes := range [][]Change{
		{{Key: []byte("/a/1"), Value: []byte("z"), Prior: 2}}, {put("/a/new", "z")}, {deleted(3)},
		{deleted(2), deleted(2)},
	} {
		path := filepath.Join(t.TempDir(), "out.db")
		_, err := Write(t.Context(), path, s, seq(changes...), WriteConfig{Scrub: without("/a/")})
		require.ErrorIs(t, err, errConflict)
		nothingIn(t, filepath.Dir(path))
	}
	path, res := proved(t, s, WriteConfig{Scrub: without("/a/")}, del("/a/1"), del("/a/2"), del("/a/none"),
		put("/c", "new"))
	require.Equal(t, WriteResult{FileInfo: FileInfo{res.Path, res.SHA256, 7, 2, res.Bytes}, Appended: 1, Scrubbed: 3},
		res)
	require.Equal(t, int64(6), get(t, open(t, path), "/c").ModRevision,
		"a deletion of what is scrubbed takes no revision")
}

// TestScrubbedTwice checks that each scrub leaves a last record, and that the revision increases.
func TestScrubbedTwice(t *testing.T) {
	first, one := proved(t, open(t, copyOf(t, built(t, story))), WriteConfig{Scrub: without("/gone")})
	second, two := proved(t, open(t, first), WriteConfig{Scrub: without("/t/")}, put("/new", "x"))
	require.Equal(t, one.Revision+2, two.Revision)
	require.Equal(t, 2, status(t, second).EmptyRecords)
	sameAsRestored(t, second, nil)
	onTop, _ := proved(t, open(t, second), WriteConfig{}, put("/a", "again"), del("/big"))
	sameAsRestored(t, onTop, nil)
}

// TestNoRevisionLeft checks that changes and the last record need a free revision, and that a store
// at the last revision is an error.
func TestNoRevisionLeft(t *testing.T) {
	for rev, want := range map[int64]string{mvcc.MaxRevision: "no revision is left",
		math.MaxInt64: "a server dies of the write behind"} {
		s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
			return putRecord(tx.Bucket([]byte("key")), created(rev, "/last", "x"))
		})))
		require.Equal(t, rev == mvcc.MaxRevision, len(findings(t, s)) == 0)
		path := filepath.Join(t.TempDir(), "out.db")
		for _, cfg := range []WriteConfig{{Scrub: without("/")}, {}} {
			_, err := Write(t.Context(), path, s, seq(put("/new", "x")), cfg)
			require.ErrorContains(t, err, want)
			nothingIn(t, filepath.Dir(path))
		}
	}
}

// stains returns a database file with values of keys below /secret/ in all parts: live records,
// superseded records, records of deleted keys, free pages, and after the high-water mark.
func stains(t testing.TB, pageSize int) (raw []byte, values [][]byte) {
	r := rand.NewChaCha8([32]byte{1})
	secret := func(n int) []byte {
		b := make([]byte, n)
		_, _ = r.Read(b)
		values = append(values, b)
		return b
	}
	path := filepath.Join(t.TempDir(), "raw.db")
	rebuildInto(t, path, fixture(t), pageSize, withKeys(300))
	db := must(bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true, PageSize: pageSize}))(t)
	rev := int64(1000)
	update := func(edit func(b *bbolt.Bucket) error) {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return edit(tx.Bucket([]byte("key"))) }))
	}
	for i := range 40 {
		update(func(b *bbolt.Bucket) error {
			rev++
			key := fmt.Appendf(secret(24), "/secret/%d", i) // a unique name, without a common prefix
			key = append([]byte("/secret/"), key...)
			rec := created(rev, string(key), string(secret(200+i*150)))
			if err := putRecord(b, rec); err != nil {
				return err
			}
			rev++
			rec.Revision, rec.ModRevision, rec.Version, rec.Value = Revision{Main: rev}, rev, 2, secret(300)
			if err := putRecord(b, rec); err != nil || i%3 != 0 {
				return err
			}
			rev++
			return putRecord(b, Record{Revision: Revision{Main: rev}, Key: key, Tombstone: true})
		})
		if i%4 == 0 { // like a compaction
			update(func(b *bbolt.Bucket) error {
				return b.Delete(mvcc.AppendRevisionKey(nil,
					Revision{Main: rev - 1}, false))
			})
		}
	}
	require.NoError(t, db.Close())
	raw = must(os.ReadFile(path))(t)
	return append(append(raw, secret(60000)...), make([]byte, 5536)...), values
}

// noneIsLeft searches the whole file for every eight bytes of the values, and for their keys.
func noneIsLeft(t testing.TB, path string, values [][]byte) {
	t.Helper()
	out := must(os.ReadFile(path))(t)
	seen := make(map[uint64]struct{}, len(out))
	for i := range len(out) - 8 {
		seen[binary.BigEndian.Uint64(out[i:])] = struct{}{}
	}
	for _, v := range values {
		for i := range len(v) - 8 {
			_, found := seen[binary.BigEndian.Uint64(v[i:])]
			require.False(t, found)
		}
	}
	require.NotContains(t, string(out), "/secret")
}

// TestNoByteIsLeft searches the whole output for every eight bytes of every scrubbed key and value.
func TestNoByteIsLeft(t *testing.T) {
	for _, pageSize := range []int{4096, 16 << 10} {
		raw, values := stains(t, pageSize)
		require.Contains(t, string(raw), string(values[1][:64]), "the value was superseded, and is there")
		s := open(t, copyOf(t, raw))
		require.True(t, s.raw)
		whole, _ := write(t, s, WriteConfig{}) // a snapshot of s
		for _, in := range []*Snapshot{s, open(t, whole)} {
			require.NotZero(t, in.Space().FreePages)
			path, res := proved(t, in, WriteConfig{Scrub: without("/secret/")}, put("/new", "x"))
			require.Equal(t, 300+1, res.Keys)
			noneIsLeft(t, path, values)
		}
	}
}
