package render

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/compare"
)

func TestPage(t *testing.T) {
	path := func(fields ...string) (p compare.Path) {
		for _, f := range fields {
			p = append(p, compare.Path{{Field: f}}...)
		}
		return p
	}
	changes := []compare.Change{
		{Path: path("a"), Op: compare.Changed, Old: "1", New: int64(1)},
		{Path: path("b"), Op: compare.Added, New: map[string]any{"long": strings.Repeat("x", 70)}},
		{Path: path("c"), Op: compare.Removed, Old: []any{"x"}},
		{Path: path("d"), Op: compare.Reordered, Old: []any{"x", "y"}, New: []any{"y", "x"}},
		{Path: path("e"), Op: compare.Changed, Old: "<redacted 1 bytes>", New: "<redacted 1 bytes>", Redacted: true},
		{Path: path("f"), Op: compare.Changed, Old: "a\tb\n\x1b[1m\n", New: "a\tb\nc\n"},
		{Path: path("g\x1b"), Op: compare.Added, New: nil},
		{Op: compare.Changed, Old: "x", New: "y"},
	}
	print := func(colour bool) string {
		var out bytes.Buffer
		p := &Page{bufio.NewWriter(&out), colour}
		p.Changes(" ", changes)
		require.NoError(t, p.Flush())
		return out.String()
	}
	require.Equal(t, ` - a: "1"
 + a: 1
 + b:
 +   long: `+strings.Repeat("x", 70)+`
 - c: ["x"]
 ~ d: in another order: ["y","x"]
 ~ e: <redacted 1 bytes>, but another value
 @ f:
     a	b
" -   \x1b[1m"
 +   c
 + ["g\x1b"]: null
 - x
 + y
`, print(false))
	coloured := print(true)
	require.Contains(t, coloured, "\x1b[31m - x\x1b[m\n\x1b[32m + y\x1b[m\n")
	require.NotContains(t, coloured, "\x1b[1m\"", "no colour but ours")
}
