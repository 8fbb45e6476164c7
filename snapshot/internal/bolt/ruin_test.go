package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeadless: pages without a header that claim too many elements, or together more bytes than
// the file has, are no leaves.
func TestHeadless(t *testing.T) {
	const size = 4096
	element := func(data []byte, page, i, n, length int) { // i of n, each of length bytes, without gaps
		at := page*size + HeaderSize + i*ElementSize
		le.PutUint32(data[at+4:], uint32((n-i)*ElementSize+i*length))
		le.PutUint32(data[at+8:], uint32(length))
	}
	for n, is := range map[int]bool{1: true, 65535: true, 65536: false} {
		r := &Ruin{Data: make([]byte, 600*size), PageSize: size}
		for i := range n {
			element(r.Data, 2, i, n, 1)
		}
		p, _ := r.headless(2)
		require.Equal(t, is, p != nil, n)
		if is {
			require.Equal(t, n, p.Count())
		}
	}
	r := &Ruin{Data: make([]byte, 10*size), PageSize: size}
	found := 0
	for page := 2; page < 10; page++ {
		element(r.Data, page, 0, 1, (10-page)*size-HeaderSize-ElementSize)
		if p, _ := r.headless(uint64(page)); p != nil {
			found++
		}
	}
	require.Equal(t, 1, found) // a second one would overlap the first
}
