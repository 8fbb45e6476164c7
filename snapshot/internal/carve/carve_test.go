package carve

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// isZeroedPlain is IsZeroed without a memory.
func isZeroedPlain(b []byte, from, to int) bool {
	for at := (from/512 + 1) * 512; at < to; at += 512 {
		if b[at] != 0 && b[at-1] != 0 {
			continue
		}
		before, behind := at, at
		for before > from && b[before-1] == 0 {
			before--
		}
		for behind < to && b[behind] == 0 {
			behind++
		}
		begins, ends := before == at, behind == at
		if begins && (behind == to && (to-at > 1 || b[at-1] == '}') || behind-at >= 128) || ends && at-before >= 128 {
			return true
		}
		at = max(at, behind/512*512)
	}
	return false
}

// A zeroed line break behind a value in JSON is found; a value in protobuf ends with a zero.
func TestZeroedEnd(t *testing.T) {
	for end, zeroed := range map[string]bool{`"}`: true, "\"": false} {
		c := &Carver{Data: append(bytes.Repeat([]byte("x"), 1024-len(end)), end+"\x00"...)}
		require.Equal(t, zeroed, c.IsZeroed(0, 1025), end)
	}
}

// The places that a search remembers change no answer, for any spans from low to high offsets.
func TestBreaks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	zeroed, partial := 0, 0
	for range 400 {
		c := &Carver{Data: make([]byte, 16*1024), PageSize: 1024}
		for i := range c.Data {
			c.Data[i] = byte(1 + r.IntN(255))
		}
		for range 1 + r.IntN(6) {
			from, n := r.IntN(len(c.Data)), 1+r.IntN(700)
			if r.IntN(2) == 0 {
				from = from / 512 * 512
			}
			if r.IntN(3) == 0 { // ends with a sector
				n = max(1, (from+n)/512*512-from)
			}
			clear(c.Data[from:min(len(c.Data), from+n)])
		}
		for range r.IntN(3) {
			page := 1 + r.IntN(15)
			h := c.Data[page*1024:]
			binary.LittleEndian.PutUint64(h, uint64(page))
			binary.LittleEndian.PutUint16(h[8:], 2) // a leaf
			require.True(t, bolt.Page(h).HasKind())
		}
		var seen breaks
		for from := int64(0); from < int64(len(c.Data))-2; from += 1 + r.Int64N(400) {
			to := min(int64(len(c.Data)), from+2+r.Int64N(9000))
			z, p := c.isZeroedAfter(from, to, &seen), c.isPartial(from, to, &seen)
			require.Equal(t, isZeroedPlain(c.Data, int(from), int(to)), z, "%d to %d", from, to)
			require.Equal(t, c.isPartial(from, to, new(breaks)), p, "%d to %d", from, to)
			if z {
				zeroed++
			}
			if p {
				partial++
			}
		}
	}
	require.Greater(t, zeroed, 1000)
	require.Greater(t, partial, 1000)
}

// A file of candidates that all claim to end behind the same zeros takes time for each of them only
// once: it took minutes before.
func TestManyCandidates(t *testing.T) {
	const size, step = 32 << 20, 64
	c := &Carver{Data: make([]byte, size), PageSize: 4096, Last: 1 << 40}
	for i := range c.Data {
		c.Data[i] = 1
	}
	for at := 0; at+step < size-(16<<10); at += step {
		b := mvcc.AppendRevisionKey(c.Data[at:at:at+step], mvcc.Revision{Main: 5}, false)
		b = mvcc.AppendKeyValue(b, &mvcc.Record{Key: []byte("k"), CreateRevision: 5, ModRevision: 5, Version: 1})
		b = append(b, 5<<3|2) // the value
		binary.PutUvarint(b[len(b):len(b)+10:step], uint64(size-at-step))
	}
	clear(c.Data[size-(8<<10):])
	require.Empty(t, c.find(bolt.Span{From: 0, To: findBytes}, size, nil))
}

// The same records are found for any parts of the search.
func TestFindInParts(t *testing.T) {
	path := etcdtest.Unpack(t, filepath.Join("..", "..", "..", "testdata", "wal", "kube37.snapshot.db.gz"))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	c, size := &Carver{Data: b, PageSize: 4096, Last: mvcc.MaxRevision}, int64(len(b))
	whole := c.find(bolt.Span{To: size}, size, nil)
	require.Greater(t, len(whole), 1000)
	for _, part := range []int64{100, 4096, findBytes} {
		var all []Found
		for from := int64(0); from < size; from += part {
			for _, one := range c.find(bolt.Span{From: from, To: min(from+part, size)}, size, nil) {
				if n := len(all); n == 0 || one.At >= all[n-1].At+int64(all[n-1].Size) {
					all = append(all, one)
				}
			}
		}
		require.Equal(t, whole, all, "parts of %d bytes", part)
	}
}

// TestNoPartOfARecord checks that a value of several pages is not found once one of them is used
// again.
func TestNoPartOfARecord(t *testing.T) {
	const size, page = 20000, 4096
	key := mvcc.AppendRevisionKey(make([]byte, page), mvcc.Revision{Main: 5}, false)
	rec := mvcc.Record{Key: []byte("/k"), Value: bytes.Repeat([]byte("v"), size),
		CreateRevision: 5, ModRevision: 5, Version: 1}
	b := append(mvcc.AppendKeyValue(key, &rec), make([]byte, page)...)
	c := Carver{Data: b, PageSize: page, Last: 5}
	whole := bolt.Span{To: int64(len(b))}
	require.Len(t, c.find(whole, whole.To, nil), 1)
	binary.LittleEndian.PutUint64(b[3*page:], 3)
	copy(b[3*page+8:], []byte{bolt.FlagLeaf, 0})
	require.Empty(t, c.find(whole, whole.To, nil))
	b[3*page+8] = 3
	require.Len(t, c.find(whole, whole.To, nil), 1, "no kind of page")
	binary.LittleEndian.PutUint64(b[3*page:], 4)
	b[3*page+8] = bolt.FlagLeaf
	require.Len(t, c.find(whole, whole.To, nil), 1, "another number")
	require.Empty(t, c.find(whole, int64(page+size), nil), "cut off")
	c.Last = 4
	require.Empty(t, c.find(whole, whole.To, nil), "a later revision")
}

// FuzzFind checks for any bytes that each found record is one, and that they do not overlap.
func FuzzFind(f *testing.F) {
	rec := mvcc.Record{Key: []byte("/k"), Value: []byte("v"), CreateRevision: 3, ModRevision: 5, Version: 2, Lease: 77}
	f.Add(mvcc.AppendKeyValue(mvcc.AppendRevisionKey(nil, mvcc.Revision{Main: 5, Sub: 1}, false), &rec), uint16(0))
	gone := &mvcc.Record{Revision: mvcc.Revision{Main: 5}, Key: []byte("/k"), Tombstone: true}
	f.Add(mvcc.AppendKeyValue(mvcc.AppendRevisionKey(nil, gone.Revision, true), gone),
		uint16(4000))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		b = append(make([]byte, at), b...)
		c := Carver{Data: b, PageSize: 4096, Last: mvcc.MaxRevision}
		end := int64(0)
		var enc mvcc.Encoder
		for _, one := range c.find(bolt.Span{To: int64(len(b))}, int64(len(b)), nil) {
			require.GreaterOrEqual(t, one.At, end)
			end = one.At + int64(one.Size)
			require.LessOrEqual(t, end, int64(len(b)))
			var rec mvcc.Record
			require.NoError(t, c.Parse(one, &rec))
			require.NoError(t, mvcc.Follows(nil, &rec))
			require.Equal(t, one.Main, rec.Revision.Main)
			el := enc.Element(&rec)
			require.LessOrEqual(t, len(el.Key)+len(el.Value), int(one.Size), "a varint may be longer than needed")
		}
	})
}
