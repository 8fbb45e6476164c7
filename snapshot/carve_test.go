package snapshot

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// isZeroedPlain is isZeroed without a memory.
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
		c := &carver{data: append(bytes.Repeat([]byte("x"), 1024-len(end)), end+"\x00"...)}
		require.Equal(t, zeroed, c.isZeroed(0, 1025, new(breaks)), end)
	}
}

// The places that a search remembers change no answer, for any spans from low to high offsets.
func TestBreaks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	zeroed, partial := 0, 0
	for range 400 {
		c := &carver{data: make([]byte, 16*1024), pageSize: 1024}
		for i := range c.data {
			c.data[i] = byte(1 + r.IntN(255))
		}
		for range 1 + r.IntN(6) {
			from, n := r.IntN(len(c.data)), 1+r.IntN(700)
			if r.IntN(2) == 0 {
				from = from / 512 * 512
			}
			if r.IntN(3) == 0 { // ends with a sector
				n = max(1, (from+n)/512*512-from)
			}
			clear(c.data[from:min(len(c.data), from+n)])
		}
		for range r.IntN(3) {
			page := 1 + r.IntN(15)
			h := c.data[page*1024:]
			binary.LittleEndian.PutUint64(h, uint64(page))
			binary.LittleEndian.PutUint16(h[8:], 2) // a leaf
			require.True(t, bolt.Page(h).HasKind())
		}
		var seen breaks
		for from := int64(0); from < int64(len(c.data))-2; from += 1 + r.Int64N(400) {
			to := min(int64(len(c.data)), from+2+r.Int64N(9000))
			z, p := c.isZeroed(from, to, &seen), c.isPartial(from, to, &seen)
			require.Equal(t, isZeroedPlain(c.data, int(from), int(to)), z, "%d to %d", from, to)
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
	c := &carver{data: make([]byte, size), pageSize: 4096, last: 1 << 40}
	for i := range c.data {
		c.data[i] = 1
	}
	for at := 0; at+step < size-(16<<10); at += step {
		b := mvcc.AppendRevisionKey(c.data[at:at:at+step], Revision{Main: 5}, false)
		b = mvcc.AppendKeyValue(b, &Record{Key: []byte("k"), CreateRevision: 5, ModRevision: 5, Version: 1})
		b = append(b, 5<<3|2) // the value
		binary.PutUvarint(b[len(b):len(b)+10:step], uint64(size-at-step))
	}
	clear(c.data[size-(8<<10):])
	require.Empty(t, c.find(bolt.Span{From: 0, To: findBytes}, size, nil))
}
