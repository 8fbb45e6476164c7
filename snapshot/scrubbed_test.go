package snapshot

import (
	"bytes"
	"context"
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
)

// without scrubs keys that begin with one of the prefixes.
func without(prefixes ...string) func([]byte) bool {
	return func(key []byte) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(key), p) })
	}
}

func writeWith(t testing.TB, s *Snapshot, cfg WriteConfig, changes ...Change) (string, WriteResult) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	res := must(Write(context.Background(), path, s, planned(t, s, changes...), cfg))(t)
	return path, res
}

// scrub writes and fails the test unless the output is, entry by entry, what is to be left of s.
func scrub(t testing.TB, s *Snapshot, cfg WriteConfig, changes ...Change) (string, WriteResult) {
	t.Helper()
	path, res := writeWith(t, s, cfg, changes...)
	again, _ := writeWith(t, s, cfg, changes...)
	require.Equal(t, sumOf(t, path), sumOf(t, again), "the same bytes each time")
	out := open(t, path)
	gone, kept := 0, []entry{}
	for _, e := range entriesOf(t, s) {
		var rec Record
		require.NoError(t, parseRecord([]byte(e.key), []byte(e.value), &rec))
		if len(rec.Key) > 0 && cfg.Scrub(rec.Key) {
			gone++
		} else {
			kept = append(kept, e)
		}
	}
	left := entriesOf(t, out)
	require.Equal(t, gone, res.Scrubbed)
	require.Len(t, left, len(kept)+res.Appended+1)
	require.Equal(t, kept, left[:len(kept)])
	require.Equal(t, entry{key: string(appendRevisionKey(nil, Revision{Main: revision(t, s) + int64(res.Appended) + 1}, false))}, left[len(left)-1])
	require.Equal(t, revision(t, s)+int64(res.Appended)+1, res.Revision)
	require.Equal(t, res.Revision, revision(t, out))
	var stay []Change
	for _, c := range changes {
		if !cfg.Scrub(c.Key) {
			stay = append(stay, c)
		}
	}
	want := modelOf(t, s)
	for key := range want {
		if cfg.Scrub([]byte(key)) {
			delete(want, key)
		}
	}
	require.Equal(t, want.apply(stay...), modelOf(t, out))
	require.Len(t, modelOf(t, out), res.Keys)
	sameBuckets(t, s, out, len(cfg.Leases) > 0)
	wellMade(t, path, res)
	return path, res
}

// wellMade fails the test unless the file at path is sound, has no free page and is what res says.
func wellMade(t testing.TB, path string, res WriteResult) {
	t.Helper()
	out := open(t, path)
	require.Empty(t, findings(t, out))
	require.Empty(t, out.Warnings())
	require.Zero(t, out.Space().FreePages)
	sound(t, path)
	info := must(os.Stat(path))(t)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, []any{info.Size(), fmt.Sprintf("%x", sumOf(t, path))}, []any{res.Bytes, res.SHA256})
	only := must(os.ReadDir(filepath.Dir(path)))(t)
	require.Len(t, only, 1)
}

// sameBuckets compares all buckets but that of records, and that of leases where some were granted,
// entry by entry.
func sameBuckets(t testing.TB, s, out *Snapshot, leases bool) {
	t.Helper()
	content := func(s *Snapshot) map[string][]entry {
		all := map[string][]entry{}
		for _, b := range s.db.Buckets {
			if b.Name == "key" || (leases && b.Name == leaseBucket) {
				continue
			}
			all[b.Name] = []entry{{value: fmt.Sprint(b.Sequence)}}
			require.NoError(t, s.entries(context.Background(), b.Name, func(k, v []byte) error {
				all[b.Name] = append(all[b.Name], entry{string(k), string(v)})
				return nil
			}))
		}
		return all
	}
	require.Equal(t, content(s), content(out))
}

// TestScrubbed scrubs every shape, a third of its keys and all of them, with changes and leases on
// top, and what was scrubbed once more.
func TestScrubbed(t *testing.T) {
	for _, sh := range shapes() {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, copyOf(t, sh.make(t)))
			third := func(key []byte) bool { return len(key)%3 == 1 }
			var changes []Change
			for key := range modelOf(t, s) {
				if len(changes) < 30 {
					if third([]byte(key)) || len(changes)%2 == 0 {
						changes = append(changes, del(key))
					} else {
						changes = append(changes, put(key, "changed"))
					}
				}
			}
			slices.SortFunc(changes, func(a, b Change) int { return bytes.Compare(a.Key, b.Key) })
			changes = append(changes, put("/new/1", strings.Repeat("n", 9000)), put("/new/2", ""))
			path, _ := scrub(t, s, WriteConfig{Scrub: third, Leases: []Lease{{ID: 5, TTL: 60}}}, changes...)
			if sh.serve {
				sameAsRestored(t, path, nil)
			}
			all, _ := scrub(t, open(t, path), WriteConfig{Scrub: func([]byte) bool { return true }})
			require.Empty(t, modelOf(t, open(t, all)))
			if sh.serve {
				sameAsRestored(t, all, nil)
			}
			scrub(t, s, WriteConfig{Scrub: func([]byte) bool { return false }})
		})
	}
}

// TestScrubbedChanges: a key that is scrubbed cannot be written, and its deletion must be planned
// on what is there.
func TestScrubbedChanges(t *testing.T) {
	s := open(t, copyOf(t, built(t, "put /a/1 x\nput /a/2 x\nput /b y\ndel /a/2")))
	refuse := func(want error, changes ...Change) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "out.db")
		_, err := Write(context.Background(), path, s, seq(changes...), WriteConfig{Scrub: without("/a/")})
		require.ErrorIs(t, err, want)
		nothingIn(t, filepath.Dir(path))
	}
	refuse(errConflict, Change{Key: []byte("/a/1"), Value: []byte("z"), Prior: 2})
	refuse(errConflict, put("/a/new", "z"))
	refuse(errConflict, Change{Key: []byte("/a/1"), Delete: true, Prior: 3})
	refuse(errConflict, Change{Key: []byte("/a/1"), Delete: true, Prior: 2}, Change{Key: []byte("/a/1"), Delete: true, Prior: 2})
	path, res := scrub(t, s, WriteConfig{Scrub: without("/a/")}, del("/a/1"), del("/a/2"), del("/a/none"), put("/c", "new"))
	require.Equal(t, WriteResult{FileInfo: FileInfo{res.Path, res.SHA256, 7, 2, res.Bytes}, Appended: 1, Scrubbed: 3}, res)
	rec := must(open(t, path).Get(context.Background(), []byte("/c")))(t)
	require.Equal(t, int64(6), rec.ModRevision, "a deletion of what is scrubbed takes no revision")
}

// TestScrubbedOnAWhim: a function that changes its mind is found out.
func TestScrubbedOnAWhim(t *testing.T) {
	s := open(t, copyOf(t, built(t, "put /a/1 x\nput /a/2 x\nput /b y\ndel /a/2")))
	for _, at := range []int{1, 4, 5, 6, 8} {
		n := 0
		path := filepath.Join(t.TempDir(), "out.db")
		_, err := Write(context.Background(), path, s, seq(), WriteConfig{Scrub: func(key []byte) bool {
			n++
			return (string(key) == "/b") != (n == at)
		}})
		require.ErrorIs(t, err, ErrVerify, "%d", at)
		nothingIn(t, filepath.Dir(path))
	}
}

// TestScrubbedTwice: each leaves its last record, and the revision goes on.
func TestScrubbedTwice(t *testing.T) {
	s := open(t, copyOf(t, built(t, story)))
	first, one := scrub(t, s, WriteConfig{Scrub: without("/gone")})
	second, two := scrub(t, open(t, first), WriteConfig{Scrub: without("/t/")}, put("/new", "x"))
	require.Equal(t, one.Revision+2, two.Revision)
	st := status(t, second)
	require.Equal(t, 2, st.EmptyRecords)
	sameAsRestored(t, second, nil)
	onTop, _ := write(t, open(t, second), planned(t, open(t, second), put("/a", "again"), del("/big")))
	sameAsRestored(t, onTop, nil)
}

// TestNoRevisionLeft: a change needs one, the last record too; and a store at the very end is
// refused.
func TestNoRevisionLeft(t *testing.T) {
	for rev, want := range map[int64]string{maxRevision: "no revision is left", math.MaxInt64: "a server dies of the write behind"} {
		s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
			return putRecord(tx.Bucket([]byte("key")), created(rev, "/last", "x"))
		})))
		require.Equal(t, rev == maxRevision, len(findings(t, s)) == 0)
		path := filepath.Join(t.TempDir(), "out.db")
		for _, cfg := range []WriteConfig{{Scrub: without("/")}, {}} {
			_, err := Write(context.Background(), path, s, seq(put("/new", "x")), cfg)
			require.ErrorContains(t, err, want)
			nothingIn(t, filepath.Dir(path))
		}
	}
}

// stains is a database file all over which lie values of keys below /secret/: in the record that
// lives, in ones it superseded, in records of deleted keys, in pages that are free, and behind the
// high-water mark.
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
			key := fmt.Appendf(secret(24), "/secret/%d", i) // a name of its own, that no other begins like
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
		if i%4 == 0 { // what a compaction does
			update(func(b *bbolt.Bucket) error { return b.Delete(appendRevisionKey(nil, Revision{Main: rev - 1}, false)) })
		}
	}
	require.NoError(t, db.Close())
	raw = must(os.ReadFile(path))(t)
	return append(append(raw, secret(60000)...), make([]byte, 5536)...), values
}

// noneIsLeft looks for every eight bytes of the values, and for their keys, in all of the file.
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

// TestNoByteIsLeft looks for every eight bytes of every key and value that was scrubbed, in all of
// the output.
func TestNoByteIsLeft(t *testing.T) {
	for _, pageSize := range []int{4096, 16 << 10} {
		raw, values := stains(t, pageSize)
		first := values[1]
		require.Contains(t, string(raw), string(first[:64]), "the value was superseded, and is there")
		s := open(t, copyOf(t, raw))
		require.True(t, s.raw)
		whole, _ := write(t, s, seq()) // a snapshot of it
		for _, in := range []*Snapshot{s, open(t, whole)} {
			require.NotZero(t, in.Space().FreePages)
			path, res := scrub(t, in, WriteConfig{Scrub: without("/secret/")}, put("/new", "x"))
			require.Equal(t, 300+1, res.Keys)
			noneIsLeft(t, path, values)
		}
	}
}
