package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// TestVerifiedBeforePublished changes the written file before the check, like a bug or a bad disk.
func TestVerifiedBeforePublished(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(3000))))
	changes := []Change{put("/k/000007", "changed"), put("/new", "x"), del("/k/000008")}
	plan := planned(t, s, changes...)
	whole, _ := write(t, s, WriteConfig{}, changes...)
	b := must(os.ReadFile(whole))(t)
	good := open(t, whole)
	fresh := func() *image {
		key := good.db.Bucket("key")
		return &image{append([]byte(nil), good.db.Image...), good.db.Meta, key.Root, key.Leaves}
	}
	last := func(m *image) uint64 { return m.leaves[len(m.leaves)-1] }
	tests := []struct {
		name   string
		tamper func(m *image)
		text   string
	}{
		{"a new value", func(m *image) { v := m.value(last(m), 0); v[len(v)-1] ^= 1 }, "entry 0 differs"},
		{"a new revision", func(m *image) { m.key(last(m), 2)[16]++ }, "entry 2 differs"},
		{"a new record's kind", func(m *image) { put32(m.element(last(m), 1), 1) }, "entry 1 differs"},
		{"a record fewer", func(m *image) { put16(m.page(last(m))[10:], 2) }, "only 2 of the entries"},
		{"no new leaf", func(m *image) { put16(m.page(m.branch)[10:], uint16(len(m.leaves)-1)) },
			"only 0 of the entries"},
		{"an old leaf for a new one", func(m *image) { put64(m.element(m.branch, len(m.leaves)-1)[8:], m.leaves[0]) },
			"used twice"},
		{"old leaves that changed places", func(m *image) {
			put64(m.element(m.branch, 3)[8:], m.leaves[4])
			put64(m.element(m.branch, 4)[8:], m.leaves[3])
		}, "does not lead to"},
		{"a lost old leaf", func(m *image) {
			n := bolt.Page(m.page(m.branch)).Count()
			for i := 3; i < n-1; i++ { // offsets are relative to the element
				copy(m.element(m.branch, i)[:16], m.element(m.branch, i+1)[:16])
				put32(m.element(m.branch, i), le.Uint32(m.element(m.branch, i))+bolt.ElementSize)
			}
			put16(m.page(m.branch)[10:], uint16(n-1))
		}, "the old leaves are not where they were"},
		{"another bucket", func(m *image) { m.inMeta("term")[7]++ }, `bucket "meta" is not as it was`},
		{"a bucket's name", func(m *image) { m.key(m.meta.Root, m.bucket("alarm"))[0] = 'A' }, "is not as it was"},
		{"a bucket fewer", func(m *image) {
			put16(m.page(m.meta.Root)[10:],
				uint16(bolt.Page(m.page(m.meta.Root)).Count()-1))
		}, "buckets, want"},
		{"branch keys", func(m *image) { m.branchKey(len(m.leaves) - 1)[7]-- }, "does not lead to"},
		{"metas", func(m *image) { m.b[20] ^= 1 }, "meta page 0"},
		{"length", func(m *image) { m.b = m.b[:len(m.b)-32] }, "its size is not that of a snapshot"},
	}
	check := func(b []byte) error { return s.checkBytes(t, b, 3, plan) }
	require.NoError(t, check(b))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := fresh()
			tt.tamper(m)
			err := check(append(m.b, make([]byte, 32)...))
			require.ErrorIs(t, err, ErrVerify)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// checkBytes compares a file of these bytes with the records of s, the changes and the grants.
func (s *Snapshot) checkBytes(
	t testing.TB, b []byte, appended int, changes iter.Seq2[Change, error], grants ...bolt.Element,
) error {
	t.Helper()
	f := must(os.Open(copyOf(t, b)))(t)
	defer f.Close()
	d := &Draft{file: f, path: "out.db", src: s, changes: changes, grants: grants}
	d.x = must(s.index(t.Context()))(t)
	if err := d.open(t.Context(), nil, knownDigest(Digest{})); err != nil {
		return d.blame(t.Context(), err)
	}
	defer d.out.Close()
	return d.compare(t.Context(), appended)
}

// TestVerifiedDigest checks that a lost write of the digest is found.
func TestVerifiedDigest(t *testing.T) {
	lost, err := os.OpenFile("/dev/zero", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer lost.Close()
	d := &Draft{file: lost, out: open(t, copyOf(t, fixture(t)))}
	require.ErrorIs(t, d.check(t.Context(), &WriteResult{}), ErrVerify)
}

// TestVerifiedGrants changes a new lease bucket, in its own tree and inline.
func TestVerifiedGrants(t *testing.T) {
	for _, n := range []int{0, 5000} {
		s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withLeases(n))))
		leases := []Lease{{15, 60}, {1_000_001, 60}}
		grants := must(grantEntries(leases))(t)
		path, _ := write(t, s, WriteConfig{Leases: leases})
		b := must(os.ReadFile(path))(t)
		require.NoError(t, s.checkBytes(t, b, 0, seq(), grants...))
		for _, el := range grants {
			for _, part := range [][]byte{el.Key, el.Value} {
				c := append([]byte(nil), imageOf(b)...)
				at := bytes.LastIndex(c, append(el.Key, el.Value...))
				require.Positive(t, at)
				c[at+bytes.Index(append(el.Key, el.Value...), part)+len(part)-1] ^= 1
				require.ErrorIs(t, s.checkBytes(t, withDigest(c), 0, seq(), grants...), ErrVerify)
			}
		}
		if n > 0 { // a misleading branch
			c := append([]byte(nil), imageOf(b)...)
			k, _ := bolt.Page(c[open(t, path).db.Bucket(mvcc.LeaseBucket).Root*4096:]).Branch(1)
			k[7]++
			require.ErrorContains(t, s.checkBytes(t, withDigest(c), 0, seq(), grants...), "does not lead to")
		}
		for _, other := range [][]bolt.Element{grants[:1], append(grants[:2:2], grants[1])} {
			require.ErrorIs(t, s.checkBytes(t, b, 0, seq(), other...), ErrVerify)
		}
	}
}

// TestVerifiedNew changes a file of new pages, like a bug or a bad disk: its content, and bytes
// outside its content.
func TestVerifiedNew(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(3000))))
	f := must(os.Create(filepath.Join(t.TempDir(), "new.db")))(t)
	defer f.Close()
	d := Begin("new.db", opened{f}, s)
	sources := d.sources(t.Context())
	must(d.create(t.Context(), s.db.Meta, sources))(t)
	out := d.out
	defer out.Close()
	key := out.db.Bucket("key")
	last := key.Leaves[len(key.Leaves)-1]
	for name, tt := range map[string]struct {
		tamper func(m *image)
		text   string
	}{
		"a value": {func(m *image) { v := m.value(m.leaves[2], 0); v[len(v)-1] ^= 1 }, `bucket "key": entry`},
		"a revision": {func(m *image) { m.key(last, bolt.Page(m.page(last)).Count()-1)[7]++ },
			"entry 2999 differs"},
		"a record fewer": {func(m *image) { put16(m.page(last)[10:], le.Uint16(m.page(last)[10:])-1) },
			"only 2999 of the entries"},
		"another bucket": {func(m *image) { m.inMeta("term")[7]++ }, `bucket "meta": entry`},
		"a sequence": {func(m *image) { m.value(m.meta.Root, m.bucket("lease"))[8]++ },
			`bucket "lease" differs`},
		"a bucket's name": {func(m *image) { m.key(m.meta.Root, m.bucket("alarm"))[0] = 'A' },
			"differs from the planned one"},
		"a bucket fewer": {func(m *image) { put16(m.page(m.meta.Root)[10:], le.Uint16(m.page(m.meta.Root)[10:])-1) },
			"buckets, want"},
		"a free page": {func(m *image) {
			m.b = append(m.b, make([]byte, 4096)...)
			m.remeta(func(n *bolt.Meta) { n.HighWater++ })
		}, "1 pages are not in use"},
		"behind a record": {func(m *image) { p := m.page(last); p[(bolt.Page(p).Overflow()+1)*4096-1] = 1 },
			"holds more than its elements"},
		"behind a branch":      {func(m *image) { m.page(m.branch)[4095] = 1 }, "holds more than its elements"},
		"behind the buckets":   {func(m *image) { m.page(m.meta.Root)[4095] = 1 }, "holds more than its elements"},
		"behind a meta":        {func(m *image) { m.b[4095] = 1 }, "the meta pages hold more"},
		"behind the other one": {func(m *image) { m.b[8191] = 1 }, "the meta pages hold more"},
		"between two buckets":  {func(m *image) { m.gap() }, "holds more than its elements"},
		"in an inline bucket": {func(m *image) {
			e := m.element(m.meta.Root, bolt.Page(m.page(m.meta.Root)).Count()-1)
			put32(e[12:], le.Uint32(e[12:])+8)
			m.value(m.meta.Root, bolt.Page(m.page(m.meta.Root)).Count()-1)[le.Uint32(e[12:])-1] = 1
		}, "inline bucket"},
		"a way": {func(m *image) { m.branchKey(1)[7]-- }, "does not lead to"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &image{append([]byte(nil), out.db.Image...), out.db.Meta, key.Root, key.Leaves}
			tt.tamper(m)
			tampered := must(Open(context.Background(), copyOf(t, withDigest(m.b)), Config{}))(t)
			defer tampered.Close()
			err := checkNew(context.Background(), tampered, sources)
			require.ErrorIs(t, err, ErrVerify)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// gap moves the last bucket of the root leaf by 8 bytes and leaves a stray byte in the gap.
func (m *image) gap() {
	p := m.page(m.meta.Root)
	n := bolt.Page(p).Count() - 1
	start, size := bolt.Page(p).Extent(n)
	copy(p[start+8:], append([]byte(nil), p[start:start+size]...))
	clear(p[start : start+8])
	p[start] = 1
	e := m.element(m.meta.Root, n)
	put32(e[4:], le.Uint32(e[4:])+8)
}

// TestEmptyStore checks that the first write of a store has revision 2, as in a server.
func TestEmptyStore(t *testing.T) {
	s := open(t, copyOf(t, built(t, "")))
	require.Equal(t, int64(1), revision(t, s))
	path, res := write(t, s, WriteConfig{}, put("/a", "x"))
	require.Equal(t, int64(2), res.Revision)
	require.Equal(t, entriesOf(t, open(t, copyOf(t, built(t, "put /a x")))), entriesOf(t, open(t, path)))
}

// TestCopyIsCompared checks that a wrong byte in the copy is found, with and without changes: a
// byte of the mapped file differs from the file that is copied.
func TestCopyIsCompared(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(60_000))))
	must(s.Digest(t.Context()))(t)
	must(s.Keys(t.Context()))(t)
	image, mapped := s.db.Bytes(), s.data
	require.Greater(t, image, int64(3*cacheBlock))
	for _, changes := range []iter.Seq2[Change, error]{seq(), seq(put("/new", "x"))} {
		for _, at := range []int64{0, 2 * 4096, cacheBlock - 1, cacheBlock, image/2 + 1, image - 1} {
			path := filepath.Join(t.TempDir(), "out.db")
			s.data = bytes.Clone(mapped)
			s.data[at] ^= 1
			_, err := begin(t, path, s).Write(t.Context(), changes, WriteConfig{})
			s.data = mapped
			require.ErrorIs(t, err, ErrVerify, "%d", at)
			nothingIn(t, filepath.Dir(path))
		}
	}
	path, res := write(t, s, WriteConfig{})
	require.Equal(t, sumOf(t, s.path), sumOf(t, path))
	require.Equal(t, fmt.Sprintf("%x", sumOf(t, path)), res.SHA256)
}

// TestPublishedName checks that the result of Write describes the output.
func TestPublishedName(t *testing.T) {
	s := open(t, copyOf(t, fixture(t)))
	path, res := write(t, s, WriteConfig{}, put("/new", "x"))
	st := must(open(t, path).Status(context.Background()))(t)
	require.Equal(t, []any{st.SHA256, st.Bytes, st.Revision, st.Keys, "ok"},
		[]any{res.SHA256, res.Bytes, res.Revision, res.Keys, st.Digest})
	t.Chdir(filepath.Dir(path))
	must(Write(context.Background(), "here.db", s, seq(put("/new", "x")), WriteConfig{}))(t)
	require.Equal(t, sumOf(t, path), sumOf(t, "here.db"), "the same input and changes make the same bytes")
}
