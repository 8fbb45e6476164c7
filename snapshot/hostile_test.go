package snapshot

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// image is a snapshot to damage: 3000 keys below one branch page, the other buckets inline in the
// root leaf.
type image struct {
	b      []byte
	meta   bolt.Meta
	branch uint64   // root of the key bucket
	leaves []uint64 // of the key bucket
}

// intact returns a function that returns a new copy to damage.
func intact(t testing.TB) func() *image {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(3000))))
	b := append([]byte(nil), s.db.Image...)
	return func() *image {
		return &image{append([]byte(nil), b...), s.db.Meta, s.db.Bucket("key").Root, s.db.Bucket("key").Leaves}
	}
}

func (m *image) page(id uint64) []byte { return m.b[id*4096:] }

// element returns the 16 bytes of element i of page id.
func (m *image) element(id uint64, i int) []byte {
	return m.page(id)[bolt.HeaderSize+i*bolt.ElementSize:]
}

// key returns the key of element i of leaf id.
func (m *image) key(id uint64, i int) []byte { _, k, _ := bolt.Page(m.page(id)).Leaf(i); return k }

// value returns the value of element i of leaf id.
func (m *image) value(id uint64, i int) []byte { _, _, v := bolt.Page(m.page(id)).Leaf(i); return v }

// bucket returns the index of the named bucket in the root leaf.
func (m *image) bucket(name string) int {
	for i := range bolt.Page(m.page(m.meta.Root)).Count() {
		if string(m.key(m.meta.Root, i)) == name {
			return i
		}
	}
	panic(name)
}

// remeta rewrites both metas with right checksums.
func (m *image) remeta(edit func(*bolt.Meta)) {
	c := m.meta
	edit(&c)
	c.Put(m.b[:4096], 0)
	c.TxID--
	c.Put(m.b[4096:8192], 1)
}

// le is the byte order of a database file.
var le = binary.LittleEndian

func put16(b []byte, v uint16) { le.PutUint16(b, v) }
func put32(b []byte, v uint32) { le.PutUint32(b, v) }
func put64(b []byte, v uint64) { le.PutUint64(b, v) }

type hostile struct {
	name string
	edit func(m *image)
	want error
	text string
}

func hostileMetas() []hostile {
	metas := func(edit func(*bolt.Meta)) func(*image) { return func(m *image) { m.remeta(edit) } }
	return []hostile{
		{"high-water mark huge", metas(func(m *bolt.Meta) { m.HighWater = 1 << 60 }), ErrTruncated,
			"metadata says 1152921504606846976 pages"},
		{"high-water mark overflows", metas(func(m *bolt.Meta) { m.HighWater = 1<<52 + 1 }), ErrTruncated,
			"metadata says"},
		{"high-water mark small", func(m *image) { m.b = append(m.b, make([]byte, 4096)...) }, ErrDamaged,
			"4128 bytes follow the image"},
		{"high-water mark zero", metas(func(m *bolt.Meta) { m.HighWater = 0 }), ErrDamaged, "root page"},
		{"root outside", metas(func(m *bolt.Meta) { m.Root = m.HighWater }), ErrDamaged, "root page"},
		{"root is a meta", metas(func(m *bolt.Meta) { m.Root = 1 }), ErrDamaged, "root page"},
		{"root is a leaf of records", func(m *image) { m.remeta(func(n *bolt.Meta) { n.Root = m.leaves[3] }) },
			ErrDamaged, "is not a bucket"},
		{"root is a branch of records", func(m *image) { m.remeta(func(n *bolt.Meta) { n.Root = m.branch }) },
			ErrDamaged, "is not a bucket"},
		{"page size odd", metas(func(m *bolt.Meta) { m.PageSize = 3000 }), ErrDamaged, "page size 3000"},
		{"page size zero", metas(func(m *bolt.Meta) { m.PageSize = 0 }), ErrDamaged, "page size 0"},
		{"page size huge", metas(func(m *bolt.Meta) { m.PageSize = 1 << 30 }), ErrDamaged, "page size 1073741824"},
		{"checksum of the first", func(m *image) { m.b[bolt.HeaderSize+56] ^= 1 }, ErrDamaged,
			"file is damaged: meta page 0: meta checksum"},
		{"checksum of the second", func(m *image) { m.b[4096+bolt.HeaderSize+56] ^= 1 }, ErrDamaged,
			"file is damaged: meta page 1: meta checksum"},
		{"transaction", metas(func(m *bolt.Meta) { m.TxID = 1<<64 - 1 }), ErrDamaged,
			"transaction 18446744073709551615"},
		{"version", func(m *image) { m.b[bolt.HeaderSize+4] = 3 }, ErrDamaged,
			"file is damaged: meta page 0: bbolt format version 3"},
		{"magic", func(m *image) { m.b[4096+bolt.HeaderSize] ^= 1 }, ErrDamaged,
			"file is damaged: meta page 1: no bbolt magic number"},
	}
}

func hostilePages() []hostile {
	return []hostile{
		{"leaf calls itself another", func(m *image) { put64(m.page(m.leaves[3]), 77) }, ErrDamaged,
			"calls itself page 77"},
		{"leaf of zeros", func(m *image) { clear(m.page(m.leaves[3])[:4096]) }, ErrDamaged, "calls itself page 0"},
		{"leaf is a free-list page", func(m *image) { put16(m.page(m.leaves[3])[8:], 0x10) }, ErrDamaged, "flags 0x10"},
		{"leaf is a meta page", func(m *image) { put16(m.page(m.leaves[3])[8:], 4) }, ErrDamaged, "flags 0x4"},
		{"leaf is a branch", func(m *image) { put16(m.page(m.leaves[3])[8:], 1) }, ErrDamaged, "page"},
		{"65535 elements", func(m *image) { put16(m.page(m.leaves[3])[10:], 65535) }, ErrDamaged,
			"65535 elements do not fit"},
		{"overflow beyond the file", func(m *image) { put32(m.page(m.leaves[3])[12:], 1<<32-1) }, ErrDamaged,
			"4294967295 overflow pages"},
		{"overflow over the next page", func(m *image) { put32(m.page(m.leaves[3])[12:], 1) }, ErrDamaged,
			"is used twice"},
		{"offset beyond the page", func(m *image) { put32(m.element(m.leaves[3], 2)[4:], 1<<32-1) }, ErrDamaged,
			"element 2 ends beyond the page"},
		{"offset in the table", func(m *image) { put32(m.element(m.leaves[3], 2)[4:], 0) }, ErrDamaged,
			"the page's own table"},
		{"key of 4 GiB", func(m *image) { put32(m.element(m.leaves[3], 2)[8:], 1<<32-1) }, ErrDamaged,
			"element 2 ends beyond"},
		{"value of 4 GiB", func(m *image) { put32(m.element(m.leaves[3], 2)[12:], 1<<32-1) }, ErrDamaged,
			"element 2 ends beyond"},
		{"key and value of 4 GiB", func(m *image) {
			put32(m.element(m.leaves[3], 2)[8:], 1<<32-1)
			put32(m.element(m.leaves[3], 2)[12:], 1<<32-1)
		}, ErrDamaged, "element 2 ends beyond"},
		{"elements share bytes", func(m *image) {
			for i := range 20 {
				e := m.element(m.leaves[3], i)
				put32(e[4:], 2000-uint32(i)*bolt.ElementSize)
				put32(e[12:], 1000)
			}
		}, ErrDamaged, "shares bytes"},
		{"child is itself", func(m *image) { put64(m.element(m.branch, 1)[8:], m.branch) }, ErrDamaged,
			"is used twice"},
		{"child is the root", func(m *image) { put64(m.element(m.branch, 1)[8:], m.meta.Root) }, ErrDamaged,
			"is used twice"},
		{"child is a sibling", func(m *image) { put64(m.element(m.branch, 1)[8:], m.leaves[0]) }, ErrDamaged,
			"is used twice"},
		{"child is a meta", func(m *image) { put64(m.element(m.branch, 1)[8:], 1) }, ErrDamaged, "page 1 lies outside"},
		{"child outside", func(m *image) { put64(m.element(m.branch, 1)[8:], m.meta.HighWater) }, ErrDamaged,
			"lies outside"},
		{"child far outside", func(m *image) { put64(m.element(m.branch, 1)[8:], 1<<63) }, ErrDamaged, "lies outside"},
		{"branch without elements", func(m *image) { put16(m.page(m.branch)[10:], 0) }, ErrDamaged,
			"branch without elements"},
		{"branch keys descend", func(m *image) { m.branchKey(1)[7] = 0xff }, ErrDamaged, "does not sort after"},
		{"branch key after its child's first", func(m *image) { m.branchKey(2)[7]++ }, ErrDamaged, "does not lead to"},
		{"last branch key after all keys", func(m *image) { m.branchKey(len(m.leaves) - 1)[0] = 0x7f }, ErrDamaged,
			"does not lead to"},
		{"branch key before the child before it", func(m *image) { m.branchKey(2)[7]-- }, ErrDamaged,
			"does not lead to"},
	}
}

func (m *image) branchKey(i int) []byte { k, _ := bolt.Page(m.page(m.branch)).Branch(i); return k }

func hostileRecords() []hostile {
	return []hostile{
		{"nested bucket", func(m *image) { put32(m.element(m.leaves[3], 2), 1) }, ErrDamaged, "element 2 is a bucket"},
		{"revision key too short", func(m *image) { put32(m.element(m.leaves[3], 2)[8:], 16) }, ErrDamaged,
			"revision key of 16 bytes"},
		{"revision key too long", func(m *image) { put32(m.element(m.leaves[3], 2)[8:], 18) }, ErrDamaged,
			"revision key of 18 bytes"},
		{"revision key empty", func(m *image) { put32(m.element(m.leaves[3], 2)[8:], 0) }, ErrDamaged,
			"revision key of 0 bytes"},
		{"no separator", func(m *image) { m.key(m.leaves[3], 2)[8] = '-' }, ErrDamaged, "without separator"},
		{"negative main", func(m *image) { m.key(m.leaves[3], 2)[0] = 0x80 }, ErrDamaged, "negative revision"},
		{"negative sub", func(m *image) { m.key(m.leaves[3], 2)[9] = 0x80 }, ErrDamaged, "negative revision"},
		{"same revision twice", func(m *image) { copy(m.key(m.leaves[3], 3), m.key(m.leaves[3], 2)) },
			ErrDamaged, "after"},
		{"revision goes back", func(m *image) { m.key(m.leaves[3], 3)[7]-- }, ErrDamaged, "element 3: revision"},
		{"revision goes back over a page", func(m *image) { copy(m.key(m.leaves[3], 0), m.key(m.leaves[1], 0)) },
			ErrDamaged, "element 0: revision"},
		{"value cut short", func(m *image) { m.value(m.leaves[3], 2)[1] = 100 }, ErrDamaged,
			"is not a KeyValue (field 1)"},
		{"value with field 0", func(m *image) { m.value(m.leaves[3], 2)[0] = 0 }, ErrDamaged, "is not a KeyValue"},
		{"value with an open group", func(m *image) { m.value(m.leaves[3], 2)[0] = 1<<3 | 3 }, ErrDamaged,
			"is not a KeyValue"},
		{"value with a length of 2^63", func(m *image) {
			copy(m.value(m.leaves[3], 2)[1:],
				"\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
		}, ErrDamaged, "is not a KeyValue"},
		{"value of 0xff", func(m *image) {
			for v, i := m.value(m.leaves[3], 2), 0; i < len(v); i++ {
				v[i] = 0xff
			}
		}, ErrDamaged, "is not a KeyValue"},
		{"mod_revision of another", func(m *image) { m.value(m.leaves[3], 2)[15]++ }, ErrDamaged, "mod_revision is"},
	}
}

func hostileBuckets() []hostile {
	return []hostile{
		{"not a bucket", func(m *image) { put32(m.element(m.meta.Root, 0), 0) }, ErrDamaged, `"alarm" is not a bucket`},
		{"short header", func(m *image) { put32(m.element(m.meta.Root, 0)[12:], 8) }, ErrDamaged,
			"has a header of 8 bytes"},
		{"inline page cut", func(m *image) { put32(m.element(m.meta.Root, 0)[12:], 20) }, ErrDamaged,
			"page of 4 bytes has no header"},
		{"inline page with 65535 elements", func(m *image) {
			put16(m.value(m.meta.Root, 0)[bolt.BucketHeaderSize+10:],
				65535)
		}, ErrDamaged, "inline bucket"},
		{"inline page is a branch", func(m *image) {
			v := m.value(m.meta.Root, m.bucket("meta"))
			put16(v[bolt.BucketHeaderSize+8:], 1)
		}, ErrDamaged, `inline bucket "meta"`},
		{"bucket outside", func(m *image) { put64(m.value(m.meta.Root, 0), 1<<40) }, ErrDamaged,
			`bucket "alarm": file is damaged: page 1099511627776 lies outside`},
		{"two buckets with one tree", func(m *image) { put64(m.value(m.meta.Root, 0), m.branch) }, ErrDamaged,
			"is used twice"},
		{"no key bucket", func(m *image) { copy(m.key(m.meta.Root, m.bucket("key")), "kex") }, ErrNotSnapshot,
			"without etcd's key bucket"},
		{"no meta bucket", func(m *image) { copy(m.key(m.meta.Root, m.bucket("meta")), "mete") }, ErrDamaged,
			"no meta bucket"},
		{"buckets unsorted", func(m *image) { copy(m.key(m.meta.Root, 0), "zlarm") }, ErrDamaged,
			"does not sort after"},
		{"negative compact revision", func(m *image) { m.inMeta("finishedCompactRev")[0] = 0xff }, ErrDamaged,
			"finishedCompactRev is not a revision"},
	}
}

// inMeta returns the value of a key of the meta bucket.
func (m *image) inMeta(key string) []byte {
	p := bolt.Page(m.value(m.meta.Root, m.bucket("meta"))[bolt.BucketHeaderSize:])
	for i := range p.Count() {
		if _, k, v := p.Leaf(i); string(k) == key {
			return v
		}
	}
	panic(key)
}

// TestReachablePagesSound checks single faults in a file with a right digest.
func TestReachablePagesSound(t *testing.T) {
	fresh := intact(t)
	for kind, tests := range map[string][]hostile{
		"meta": hostileMetas(), "page": hostilePages(), "record": hostileRecords(), "bucket": hostileBuckets(),
	} {
		for _, tt := range tests {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				m := fresh()
				tt.edit(m)
				refused(t, copyOf(t, withDigest(m.b)), tt.want, tt.text)
			})
		}
	}
}

// TestEmptyLeaves checks that an empty leaf below a branch is read like in bbolt, which writes
// none.
func TestEmptyLeaves(t *testing.T) {
	m := intact(t)()
	for _, i := range []int{2, len(m.leaves) - 1} {
		put16(m.page(m.leaves[i])[10:], 0)
	}
	s := open(t, copyOf(t, withDigest(m.b)))
	require.Empty(t, findings(t, s))
	proved(t, s, WriteConfig{}, mixed(t, s, nil)...)
}

// TestFreePagesProveNothing checks that free pages may hold anything.
func TestFreePagesProveNothing(t *testing.T) {
	m := intact(t)()
	s := open(t, copyOf(t, withDigest(m.b)))
	used := reachable(t, s)
	free := 0
	for id := uint64(2); id < m.meta.HighWater; id++ {
		if !used[id] {
			free++
			copy(m.page(id)[:4096], strings.Repeat("\xff", 4096))
		}
	}
	require.NotZero(t, free)
	after := open(t, copyOf(t, withDigest(m.b)))
	require.Empty(t, findings(t, after))
	require.Equal(t, modelOf(t, s), modelOf(t, after))
}

// reachable returns the pages below the root, including the metas.
func reachable(t testing.TB, s *Snapshot) map[uint64]bool {
	t.Helper()
	used := map[uint64]bool{0: true, 1: true}
	var visit func(id uint64)
	visit = func(id uint64) {
		p := must(s.db.Page(id))(t)
		for i := range p.Overflow() + 1 {
			used[id+uint64(i)] = true
		}
		for i := range p.Count() {
			if p.IsBranch() {
				_, child := p.Branch(i)
				visit(child)
			}
		}
	}
	visit(s.db.Root)
	for i := range s.db.Buckets {
		if s.db.Buckets[i].Root != 0 {
			visit(s.db.Buckets[i].Root)
		}
	}
	require.Equal(t, s.db.HighWater-uint64(len(used)), s.db.Free)
	return used
}
