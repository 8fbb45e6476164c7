package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// growing is a file in memory.
type growing struct{ b []byte }

func (g *growing) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(g.b) {
		g.b = append(g.b, make([]byte, need-len(g.b))...)
	}
	return copy(g.b[at:], p), nil
}

// TestBranchPages: no branch page gets a single child but the only one, and none is larger than a
// page.
func TestBranchPages(t *testing.T) {
	key := make([]byte, 17)
	for n := 1; n <= 600; n++ {
		out := &growing{}
		w := &Writer{Out: out, PageSize: 4096}
		kids := make([]Element, n)
		for i := range kids {
			kids[i] = Element{Key: key, Child: uint64(i)}
		}
		pages, err := w.branches(kids)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.Len(t, out.b, 4096*len(pages))
		next := uint64(0)
		for _, el := range pages {
			p := Page(out.b[el.Child*4096:])[:4096]
			require.True(t, n == 1 || p.Count() > 1, "%d children", n)
			for i := range p.Count() {
				_, child := p.Branch(i)
				require.Equal(t, next, child)
				next++
			}
		}
		require.Equal(t, uint64(n), next)
	}
}
