package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

func build(t testing.TB, c Content) (string, WriteResult) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	res := must(Build(context.Background(), path, c, nil))(t)
	again := filepath.Join(t.TempDir(), "again.db")
	must(Build(context.Background(), again, c, nil))(t)
	require.Equal(t, sumOf(t, path), sumOf(t, again), "the same bytes each time")
	wellMade(t, path, res)
	require.Zero(t, open(t, path).Space().FreePages)
	return path, res
}

// these returns records in the form of Content.
func these(records ...Record) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for i := range records {
			if !yield(&records[i], nil) {
				return
			}
		}
	}
}

// contentOf returns the Content of s below a prefix, with the leases.
func contentOf(t testing.TB, s *Snapshot, prefix string) Content {
	t.Helper()
	c := Content{Records: s.Live(context.Background(), []byte(prefix)), Revision: revision(t, s),
		Notes: map[string][]byte{}}
	leases := must(s.Leases(context.Background()))(t)
	for id, ttl := range leases {
		c.Leases = append(c.Leases, Lease{id, ttl})
	}
	for i := range 20 {
		c.Notes[fmt.Sprintf("note-%d", i)] = []byte(strings.Repeat("n", i*i*100))
	}
	return c
}

// TestBuilt checks that a real server serves the records of a built file, with all their numbers,
// and continues from there.
func TestBuilt(t *testing.T) {
	s := open(t, copyOf(t, built(t, pastStory)))
	path, res := build(t, contentOf(t, s, "/stay/"))
	require.Equal(t, WriteResult{FileInfo: FileInfo{res.Path, res.SHA256, revision(t, s), 5, res.Bytes}, Appended: 5},
		res)
	out := open(t, path)
	require.Equal(t, builtPageSize, out.db.PageSize)
	oldest, newest, err := out.Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{revision(t, s), revision(t, s)}, []int64{oldest, newest})
	for rec, err := range out.Live(t.Context(), nil) {
		require.NoError(t, err)
		require.Equal(t, get(t, s, string(rec.Key)), rec)
	}
	for i := range 20 {
		note := must(out.Note(t.Context(), fmt.Sprintf("note-%d", i)))(t)
		require.Equal(t, strings.Repeat("n", i*i*100), string(note))
	}
	goesOn(t, path, "/stay/leased", nil)
}

// TestBuiltSizes checks an empty store, a record that fits the root leaf, deep trees, records
// larger than pages, and the content of real clusters of all releases and of kcp.
func TestBuiltSizes(t *testing.T) {
	many := func(n, size int) func(testing.TB) Content {
		c := Content{Revision: 1_000_000}
		var records []Record
		for i := range n {
			records = append(records, created(int64(i+5), fmt.Sprintf("/k/%06d", i), strings.Repeat("v", size)))
		}
		if n > 0 {
			c.Records = these(records...)
		}
		return func(testing.TB) Content { return c }
	}
	contents := map[string]func(t testing.TB) Content{
		"none": many(0, 0), "one": many(1, 0), "small": many(30_000, 1), "large": many(300, 9000),
		"huge": many(3, 2<<20),
	}
	for _, name := range []string{"3.4", "3.7", "kcp/shard1-before.db"} {
		contents[name] = func(t testing.TB) Content { return contentOf(t, open(t, recorded(t, name)), "") }
	}
	for name, content := range contents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := content(t)
			path, res := build(t, c)
			out, want := open(t, path), model{}
			if c.Records != nil {
				for rec, err := range c.Records {
					require.NoError(t, err)
					want[string(rec.Key)] = string(rec.Value)
				}
			}
			require.True(t, maps.Equal(want, modelOf(t, out)))
			require.Equal(t, []int{len(want), len(want)}, []int{res.Keys, status(t, path).Keys})
			require.Equal(t, len(c.Notes) == 0, out.db.Bucket(noteBucket) == nil)
			require.Nil(t, must(out.Note(t.Context(), "note"))(t))
			sameAsRestored(t, path, nil)
			proved(t, out, WriteConfig{}, mixed(t, out, nil)...)
			proved(t, out, WriteConfig{Scrub: without("/k/00000")})
		})
	}
}

// TestBuiltRefusals checks that content that no server could have stored, or would not serve
// unchanged, leaves no file.
func TestBuiltRefusals(t *testing.T) {
	a := created(5, "/a", "x")
	edited := func(edit func(r *Record)) Record {
		r := created(7, "/b", "x")
		edit(&r)
		return r
	}
	later := edited(func(r *Record) { r.Key, r.Version, r.CreateRevision = []byte("/a"), 2, 5 })
	broken := errors.New("the source broke")
	for name, tt := range map[string]struct {
		c    Content
		want error
		text string
	}{
		"no revision":       {Content{}, nil, "revision 0 is none"},
		"the last revision": {Content{Revision: math.MaxInt64}, nil, "is none that a store can be at"},
		"revision before": {Content{Revision: 6, Records: these(a, edited(func(*Record) {}))}, nil,
			`record 7.0 of key "/b": the store is at 6`},
		"no key": {Content{Revision: 9, Records: these(a, edited(func(r *Record) { r.Key = nil }))}, nil,
			"it has no key"},
		"a deletion": {Content{Revision: 9, Records: these(a,
			Record{Revision: Revision{Main: 7, Sub: 0}, Key: []byte("/a"), Tombstone: true})}, nil, "it is a deletion"},
		"order": {Content{Revision: 9, Records: these(edited(func(*Record) {}), a)}, nil,
			"does not come after 7.0"},
		"the same revision": {Content{Revision: 9, Records: these(a, a)}, nil, "does not come after 5.0"},
		"revision 0": {Content{Revision: 9, Records: these(Record{Key: []byte("/a")})}, nil,
			"does not come after 0.0"},
		"negative sub": {Content{Revision: 9, Records: these(edited(func(r *Record) { r.Revision.Sub = -1 }))},
			nil, "does not come after"},
		"mod_revision": {Content{Revision: 9, Records: these(edited(func(r *Record) { r.ModRevision = 6 }))},
			nil, "mod_revision is 6"},
		"create_revision": {Content{Revision: 9, Records: these(edited(func(r *Record) { r.CreateRevision = 8 }))},
			nil, "create_revision 8"},
		"version": {Content{Revision: 9, Records: these(edited(func(r *Record) { r.Version = 0 }))},
			nil, "version 0"},
		"a key twice": {Content{Revision: 9, Records: these(a, later)}, nil, "two records of one key"},
		"a lease twice": {Content{Revision: 9, Leases: []Lease{{5, 60}, {6, 60}, {5, 60}}}, errConflict,
			"lease 5 is granted twice"},
		"lease 0":             {Content{Revision: 9, Leases: []Lease{{0, 60}}}, errConflict, "is not positive"},
		"a lease of no time":  {Content{Revision: 9, Leases: []Lease{{5, 0}}}, nil, "a time to live of 0 seconds"},
		"a note without name": {Content{Revision: 9, Notes: map[string][]byte{"": nil}}, nil, `note ""`},
		"a note's long name": {Content{Revision: 9,
			Notes: map[string][]byte{strings.Repeat("n", maxNoteName+1): nil}}, nil, "a name has 1 to"},
		"a note that is large": {Content{Revision: 9, Notes: map[string][]byte{"n": make([]byte, maxNote+1)}}, nil,
			"a note has at most"},
		"a broken source": {Content{Revision: 9, Records: func(yield func(*Record, error) bool) {
			if yield(&a, nil) {
				yield(nil, broken)
			}
		}}, broken, "the source broke"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.db")
			_, err := Build(context.Background(), path, tt.c, nil)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, tt.text)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
			nothingIn(t, filepath.Dir(path))
		})
	}
}

// TestBuiltPages checks that small buckets are inline, up to the size limit of bbolt, and that
// larger buckets have their own pages.
func TestBuiltPages(t *testing.T) {
	var leases []Lease
	for n := range int64(60) {
		path, _ := build(t, Content{Revision: 5, Leases: leases})
		out := open(t, path)
		require.Equal(t, bolt.HeaderSize+len(leases)*(bolt.ElementSize+12) > builtPageSize/4,
			out.db.Bucket(mvcc.LeaseBucket).Root != 0, "%d leases", n)
		require.NotZero(t, out.db.Bucket("key").Root)
		require.Equal(t, uint64(1), out.db.TxID)
		leases = append(leases, Lease{n + 1, 60})
	}
}

// noted returns a snapshot with a bucket for notes, filled by edit.
func noted(t testing.TB, edit func(b *bbolt.Bucket) error) []byte {
	t.Helper()
	return rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(noteBucket))
		if err != nil {
			return err
		}
		return edit(b)
	})
}

// TestHostileNotes checks that a bucket for notes not written by Build causes an error that names
// the file.
func TestHostileNotes(t *testing.T) {
	large := func(b *bbolt.Bucket) error { return b.Put([]byte("n"), []byte(strings.Repeat("x", 9000))) }
	whole := noted(t, large)
	s := open(t, copyOf(t, whole))
	leaf := s.db.Bucket(noteBucket).Leaves[0] * 4096
	damaged := func(edit func(p []byte)) []byte {
		b := append([]byte(nil), imageOf(whole)...)
		edit(b[leaf:])
		return withDigest(b)
	}
	for name, tt := range map[string]struct {
		b    []byte
		text string
	}{
		"huge": {noted(t, func(b *bbolt.Bucket) error { return b.Put([]byte("n"), make([]byte, maxNote+1)) }),
			`note "n" has 67108865 bytes`},
		"nested": {noted(t, func(b *bbolt.Bucket) error {
			_, err := b.CreateBucket([]byte("n"))
			return err
		}), "holds a bucket of its own"},
		"nested behind it": {noted(t, func(b *bbolt.Bucket) error {
			_, err := b.CreateBucket([]byte("z"))
			return errors.Join(err, b.Put([]byte("n"), nil))
		}), "holds a bucket of its own"},
		"page of another": {damaged(func(p []byte) { put64(p, 3) }), "calls itself page 3"},
		"key of 4 GiB":    {damaged(func(p []byte) { put32(p[bolt.HeaderSize+8:], 1<<32-1) }), "ends beyond the page"},
		"65535 notes":     {damaged(func(p []byte) { put16(p[10:], 65535) }), "65535 elements do not fit"},
		"a branch":        {damaged(func(p []byte) { put16(p[8:], bolt.FlagBranch) }), "page"},
		"pages behind it": {damaged(func(p []byte) { put32(p[12:], 1<<31) }), "overflow pages"},
		"notes that share": {damaged(func(p []byte) {
			put16(p[10:], 2)
			copy(p[bolt.HeaderSize+16:],
				p[bolt.HeaderSize:bolt.HeaderSize+16])
		}), "element"},
	} {
		t.Run(name, func(t *testing.T) {
			in := copyOf(t, tt.b)
			s, err := Open(context.Background(), in, Config{})
			if err == nil {
				defer s.Close()
				bounded(t, func() { _, err = s.Note(context.Background(), "n") })
			}
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, in)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// TestNotes checks that a note is a copy, that an empty note exists, and that notes stay in files
// of a server and in appended files.
func TestNotes(t *testing.T) {
	ctx := context.Background()
	s := open(t, copyOf(t, fixture(t)))
	note := must(s.Note(ctx, "n"))(t)
	require.Nil(t, note)
	path, _ := build(t, Content{Revision: 7, Notes: map[string][]byte{"empty": nil, "n": []byte("note"),
		"nn": []byte("other")}})
	onTop, _ := write(t, open(t, path), WriteConfig{}, put("/a", "x"))
	scrubbed, _ := proved(t, open(t, onTop), WriteConfig{Scrub: without("/a")})
	for _, path := range []string{path, onTop, scrubbed} {
		f := must(Open(ctx, path, Config{}))(t)
		note := must(f.Note(ctx, "n"))(t)
		empty := must(f.Note(ctx, "empty"))(t)
		none := must(f.Note(ctx, "none"))(t)
		require.NoError(t, f.Close())
		require.Equal(t, []byte("note"), note, "it outlives the file")
		require.NotNil(t, empty)
		require.Empty(t, empty)
		require.Nil(t, none)
	}
}
