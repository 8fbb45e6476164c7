package main

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// TestKeyTable: columns grow with what later rows need, but one hostile key does not widen all rows behind it.
func TestKeyTable(t *testing.T) {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	p := newKeyTable(w, keys.Layouts{}, false, false)
	for i := range firstRows + 1 {
		require.NoError(t, p.print(&inspect.Stored{Resource: "pods", Name: fmt.Sprint("p", i), Revision: 1}))
	}
	long := strings.Repeat("x", 10*mostWidth)
	require.NoError(t, p.print(&inspect.Stored{Resource: "pods", Name: "a-name-that-is-longer", Revision: 1}))
	require.NoError(t, p.print(&inspect.Stored{Resource: "pods", Name: long, Revision: 1}))
	require.NoError(t, p.print(&inspect.Stored{Resource: "pods", Name: "last", Revision: 1}))
	require.NoError(t, p.end())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 1+firstRows+1+3)
	require.True(t, strings.HasPrefix(lines[0], "RESOURCE  NAMESPACE  NAME  REVISION"))
	require.True(t, strings.HasPrefix(lines[1], "pods      -          p0    1 "), lines[1])
	tail := lines[len(lines)-3:]
	require.Contains(t, tail[0], "a-name-that-is-longer  1 ")
	require.Contains(t, tail[1], long+"  1 ")
	require.Contains(t, tail[2], "last"+strings.Repeat(" ", mostWidth-len("last")+2)+"1 ")
}

// TestKeyTableWaits: rows are held back for their widths only while they are few and small.
func TestKeyTableWaits(t *testing.T) {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	p := newKeyTable(w, keys.Layouts{}, true, true)
	key := strings.Repeat("k", firstBytes/4)
	for range 3 {
		require.NoError(t, p.print(&inspect.Stored{Key: key, Unknown: "none"}))
	}
	require.True(t, p.sized)
	require.Empty(t, p.waiting)
}
