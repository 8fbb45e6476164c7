package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlow checks that columns grow for later rows, but that one hostile key does not widen all
// rows after it.
func TestFlow(t *testing.T) {
	var out bytes.Buffer
	f := NewFlow(&out, "RESOURCE", "NAMESPACE", "NAME", "REVISION")
	row := func(name string) { require.NoError(t, f.Row("pods", "", name, "1")) }
	for i := range firstRows + 1 {
		row(fmt.Sprint("p", i))
	}
	long := strings.Repeat("x", 10*mostWidth)
	row("a-name-that-is-longer")
	row(long)
	row("last")
	require.NoError(t, f.Flush())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 1+firstRows+1+3)
	require.Equal(t, "RESOURCE  NAMESPACE  NAME  REVISION", lines[0])
	require.Equal(t, "pods      -          p0    1", lines[1])
	tail := lines[len(lines)-3:]
	require.Contains(t, tail[0], "a-name-that-is-longer  1")
	require.Contains(t, tail[1], long+"  1")
	require.Contains(t, tail[2], "last"+strings.Repeat(" ", mostWidth-len("last")+2)+"1")
}

// TestFlowWaits checks that rows are held back for their widths only if few and small.
func TestFlowWaits(t *testing.T) {
	f := NewFlow(&bytes.Buffer{}, "KEY", "NAME")
	key := strings.Repeat("k", firstBytes/4)
	for range 3 {
		require.NoError(t, f.Row(key, key))
	}
	require.True(t, f.sized)
	require.Empty(t, f.waiting)
}
