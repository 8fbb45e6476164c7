package snapshot

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// shape is a snapshot with unusual pages, and a check of its properties.
type shape struct {
	name  string
	make  func(t testing.TB) []byte
	check func(t testing.TB, s *Snapshot)
	serve bool // test with a real server too: slow
}

func shapes() []shape {
	return []shape{
		{"empty store", func(t testing.TB) []byte { return built(t, "") }, func(t testing.TB, s *Snapshot) {
			require.Zero(t, s.db.Bucket("key").Inline.Count())
			require.Zero(t, s.db.Bucket("key").Root)
		}, true},
		{"one inline key", func(t testing.TB) []byte { return built(t, "put /a one") },
			func(t testing.TB, s *Snapshot) {
				require.Zero(t, s.db.Bucket("key").Root)
				require.Equal(t, 1, s.db.Bucket("key").Inline.Count())
			}, true},
		{"recorded", func(t testing.TB) []byte { return fixture(t) }, func(t testing.TB, s *Snapshot) {}, true},
		{"16 KiB pages", func(t testing.TB) []byte { return rebuilt(t, fixture(t), 16<<10, nil) },
			pagesOf(16 << 10), true},
		{"64 KiB pages", func(t testing.TB) []byte { return rebuilt(t, fixture(t), 64<<10, nil) },
			pagesOf(64 << 10), true},
		{"1 KiB pages", func(t testing.TB) []byte { return rebuilt(t, fixture(t), 1<<10, nil) },
			pagesOf(1 << 10), false},
		{"deep key bucket", deepKeys, func(t testing.TB, s *Snapshot) {
			require.GreaterOrEqual(t, levels(t, s, s.db.Bucket("key").Root), 3)
		}, true},
		{"deep root bucket", deepRoot, func(t testing.TB, s *Snapshot) {
			require.GreaterOrEqual(t, levels(t, s, s.db.Root), 3)
		}, true},
		{"root bucket with overflow pages", overflowRoot, func(t testing.TB, s *Snapshot) {
			p := must(s.db.Page(s.db.Root))(t)
			require.True(t, p.IsLeaf())
			require.NotZero(t, p.Overflow())
		}, true},
		{"users and roles", edited(manyUsers), func(t testing.TB, s *Snapshot) {
			require.Greater(t, len(s.db.Bucket("authUsers").Leaves), 100)
		}, false},
		{"key bucket with an empty root leaf", emptyKeys, func(t testing.TB, s *Snapshot) {
			require.NotZero(t, s.db.Bucket("key").Root)
			require.Empty(t, modelOf(t, s))
		}, true},
		{"huge value, long key, tombstones", huge, func(t testing.TB, s *Snapshot) {
			require.Len(t, modelOf(t, s)["/huge"], 3<<20)
		}, true},
		{"inline leases", edited(withLeases(1)), func(testing.TB, *Snapshot) {}, false},
		{"a leaf of leases", edited(withLeases(30)), func(testing.TB, *Snapshot) {}, false},
		{"a tree of leases", edited(withLeases(50_000)), func(testing.TB, *Snapshot) {}, true},
		{"no lease bucket", edited(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(mvcc.LeaseBucket)) }),
			func(testing.TB, *Snapshot) {}, true},
	}
}

func pagesOf(size int) func(testing.TB, *Snapshot) {
	return func(t testing.TB, s *Snapshot) { require.Equal(t, size, s.db.PageSize) }
}

// edited returns a function that makes the recorded snapshot with an edit.
func edited(edit func(tx *bbolt.Tx) error) func(t testing.TB) []byte {
	return func(t testing.TB) []byte { return rebuilt(t, fixture(t), 4096, edit) }
}

// withLeases stores n leases, inline or in a tree, depending on n.
func withLeases(n int) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		for i := range n {
			granted, err := grantEntries([]Lease{{int64(i+1) * 10, 3600}})
			if err == nil {
				err = tx.Bucket([]byte(mvcc.LeaseBucket)).Put(granted[0].Key, granted[0].Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// putRecord stores a record under its revision with the server's own database library.
func putRecord(b *bbolt.Bucket, rec Record) error {
	return b.Put(mvcc.AppendRevisionKey(nil, rec.Revision, rec.Tombstone), mvcc.AppendKeyValue(nil, &rec))
}

// created returns the record of a key's first Put at main revision rev.
func created(rev int64, key, value string) Record {
	return Record{Revision: Revision{Main: rev}, Key: []byte(key), Value: []byte(value), CreateRevision: rev,
		ModRevision: rev, Version: 1}
}

// withKeys replaces the key bucket by n small records, each at its own revision.
func withKeys(n int) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket([]byte("key")); err != nil {
			return err
		}
		b, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		for i := range n {
			if err := putRecord(b, created(int64(i+30), fmt.Sprintf("/k/%06d", i), "v")); err != nil {
				return err
			}
		}
		return nil
	}
}

func deepKeys(t testing.TB) []byte { return edited(withKeys(40_000))(t) }

func deepRoot(t testing.TB) []byte {
	return edited(func(tx *bbolt.Tx) error {
		for i := range 1000 { // before and after "key"
			b, err := tx.CreateBucket([]byte(fmt.Sprintf("%c%03d", "az"[i%2], i) + strings.Repeat("x", 200)))
			if err != nil {
				return err
			}
			if err := b.Put([]byte("name"), make([]byte, 300)); err != nil {
				return err
			}
		}
		return nil
	})(t)
}

// TestPlaceInRoot writes with the key bucket at every position in the leaf of the root bucket,
// including first and last.
func TestPlaceInRoot(t *testing.T) {
	s := open(t, copyOf(t, fixture(t)))
	root := must(s.db.Page(s.db.Root))(t)
	elems := root.Elements()
	for i := 1; i < len(elems); i++ {
		out := &growing{b: append([]byte(nil), s.db.Image...)}
		w := &bolt.Writer{Out: out, PageSize: s.db.PageSize, Next: s.db.HighWater}
		left, right := emit(t, w, bolt.FlagLeaf, elems[:i]), emit(t, w, bolt.FlagLeaf, elems[i:])
		m := s.db.Meta
		m.Root = emit(t, w, bolt.FlagBranch, []bolt.Element{{Key: elems[0].Key, Child: left},
			{Key: elems[i].Key, Child: right}})
		m.HighWater = w.Next
		require.NoError(t, w.Flush())
		copy(out.b, m.Pages())
		in := open(t, copyOf(t, withDigest(out.b)))
		proved(t, in, WriteConfig{}, mixed(t, in, nil)...)
	}
}

// TestWayToBucket checks that a misleading branch of the root bucket is found, although a read in
// order finds all buckets.
func TestWayToBucket(t *testing.T) {
	b := deepRoot(t)
	s := open(t, copyOf(t, b))
	spine := must(spine(s.db, s.db.Root))(t)
	m := &image{b: append([]byte(nil), s.db.Image...)}
	k, _ := bolt.Page(m.page(spine[1].ID())).Branch(1)
	k[len(k)-1]++
	refused(t, copyOf(t, withDigest(m.b)), ErrDamaged, "does not lead to")
	require.Len(t, findings(t, open(t, copyOf(t, withDigest(m.b)))), 1)
}

// overflowRoot puts all buckets into one root leaf, larger than a page.
func overflowRoot(t testing.TB) []byte {
	b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		for i := range 40 {
			if _, err := tx.CreateBucket([]byte(fmt.Sprintf("x%02d", i) + strings.Repeat("x", 300))); err != nil {
				return err
			}
		}
		return nil
	})
	s := open(t, copyOf(t, b))
	var elems []bolt.Element
	root := must(s.db.Page(s.db.Root))(t)
	for _, branch := range root.Elements() {
		leaf := must(s.db.Page(branch.Child))(t)
		elems = append(elems, leaf.Elements()...)
	}
	return withPage(s.db, s.db.HighWater, bolt.FlagLeaf, elems, func(m *bolt.Meta, id uint64) { m.Root = id })
}

// withPage returns the snapshot with a new page id, and metas changed by edit.
func withPage(db *bolt.DB, id uint64, kind uint16, elems []bolt.Element, edit func(m *bolt.Meta, id uint64)) []byte {
	out := &growing{b: append([]byte(nil), db.Image...)}
	w := &bolt.Writer{Out: out, PageSize: db.PageSize, Next: id}
	if _, err := w.Page(kind, elems); err != nil {
		panic(err)
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	m := db.Meta
	m.HighWater = max(m.HighWater, w.Next)
	edit(&m, id)
	copy(out.b, m.Pages())
	return withDigest(out.b)
}

// growing is a file in memory.
type growing struct{ b []byte }

func (g *growing) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(g.b) {
		g.b = append(g.b, make([]byte, need-len(g.b))...)
	}
	return copy(g.b[at:], p), nil
}

func manyUsers(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte("authUsers"))
	for i := range 2000 {
		if err := b.Put(fmt.Appendf(nil, "user-%05d", i), mvcc.AppendBytes(nil, 1, make([]byte, 300))); err != nil {
			return err
		}
	}
	return nil
}

// emptyKeys returns a store without records: bbolt leaves a root page for the empty bucket.
func emptyKeys(t testing.TB) []byte {
	b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		m := tx.Bucket([]byte("meta"))
		for _, name := range []string{"scheduledCompactRev", "finishedCompactRev"} {
			if err := m.Put([]byte(name), mvcc.AppendRevisionKey(nil, Revision{Main: 100}, false)); err != nil {
				return err
			}
		}
		return nil
	})
	s := open(t, copyOf(t, b))
	p := must(s.db.Page(s.db.Root))(t)
	elems := p.Elements()
	for i := range elems {
		if string(elems[i].Key) == "key" {
			elems[i].Value = append(le.AppendUint64(nil, s.db.HighWater+1), make([]byte, 8)...)
		}
	}
	b = withPage(s.db, s.db.HighWater, bolt.FlagLeaf, elems, func(m *bolt.Meta, id uint64) { m.Root = id })
	return withPage(&bolt.DB{Image: imageOf(b), Meta: mustMeta(b)}, s.db.HighWater+1, bolt.FlagLeaf, nil,
		func(*bolt.Meta, uint64) {})
}

func mustMeta(b []byte) bolt.Meta {
	m, err := bolt.ParseMeta(b)
	if err != nil {
		panic(err)
	}
	return m
}

func huge(t testing.TB) []byte {
	script := "put /huge size=3145728\nput /" + strings.Repeat("k", 4095) + " long\n"
	for i := range 300 {
		script += fmt.Sprintf("put /t/%d x\n", i)
	}
	return built(t, script+"delprefix /t/\nput /t/7 again\n")
}

// levels counts the pages from page id down to a leaf.
func levels(t testing.TB, s *Snapshot, id uint64) int {
	t.Helper()
	spine := must(spine(s.db, id))(t)
	return len(spine)
}

// spine returns the pages on the right edge of a tree, from its root down to the last leaf.
func spine(db *bolt.DB, id uint64) (pages []bolt.Page, err error) {
	for {
		p, err := db.Page(id)
		if pages = append(pages, p); err != nil || p.IsLeaf() {
			return pages, err
		}
		_, id = p.Branch(p.Count() - 1)
	}
}

// mixed returns changes of all kinds: new keys, including a long key and a huge value, updates, and
// deletions, also of scrubbed keys.
func mixed(t testing.TB, s *Snapshot, scrub func(key []byte) bool) []Change {
	t.Helper()
	changes := []Change{
		put("/new/"+strings.Repeat("n", 4000), "long"), put("/new/empty", ""),
		put("/new/huge", strings.Repeat("h", 3<<20)),
	}
	for _, key := range slices.Sorted(maps.Keys(modelOf(t, s))) {
		switch scrubbed := scrub != nil && scrub([]byte(key)); {
		case len(changes) == 60:
			return changes
		case scrubbed || len(changes)%3 == 0:
			changes = append(changes, del(key))
		default:
			changes = append(changes, put(key, "changed "+key))
		}
	}
	return changes
}

// TestOldPagesKept writes every shape in every way except a compaction, and checks the outputs with
// bbolt's check, etcdutl and a real server.
func TestOldPagesKept(t *testing.T) {
	third := func(key []byte) bool { return crc32.ChecksumIEEE(key)%3 == 1 && !without("/new/")(key) }
	few, many := []Lease{{math.MaxInt64 - 1, 60}, {15, 61}}, []Lease(nil)
	for i := range 3000 {
		many = append(many, Lease{int64(i)*10 + 7, 3600})
	}
	for _, sh := range shapes() {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			in := copyOf(t, sh.make(t))
			sound(t, in)
			s := open(t, in)
			require.Empty(t, findings(t, s))
			sh.check(t, s)
			same, res := proved(t, s, WriteConfig{})
			require.Equal(t, sumOf(t, in), sumOf(t, same))
			require.Zero(t, res.Appended)
			for _, way := range []struct {
				cfg     WriteConfig
				changes []Change
				serve   bool
			}{
				{WriteConfig{}, mixed(t, s, nil), true},
				{WriteConfig{Leases: few}, nil, false},
				{WriteConfig{Leases: few}, []Change{put("/new", "x")}, true},
				{WriteConfig{Leases: many}, []Change{put("/new", "x")}, false},
				{WriteConfig{Scrub: third, Leases: few}, mixed(t, s, third), true},
				{WriteConfig{Scrub: func([]byte) bool { return false }}, nil, false},
				{WriteConfig{Scrub: func([]byte) bool { return true }}, nil, true},
			} {
				path, res := proved(t, s, way.cfg, way.changes...)
				if way.cfg.Scrub == nil {
					require.Equal(t, len(way.changes), res.Appended)
				}
				if sh.serve && way.serve {
					sameAsRestored(t, path, nil)
				}
			}
		})
	}
}
