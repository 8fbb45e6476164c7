package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/differ"
)

func TestPage(t *testing.T) {
	path := func(fields ...string) (p differ.Path) {
		for _, f := range fields {
			p = append(p, differ.Step{Field: f})
		}
		return p
	}
	changes := []differ.Change{
		{Path: path("a"), Op: differ.Changed, Old: "1", New: int64(1)},
		{Path: path("b"), Op: differ.Added, New: map[string]any{"long": strings.Repeat("x", 70)}},
		{Path: path("c"), Op: differ.Removed, Old: []any{"x"}},
		{Path: path("d"), Op: differ.Reordered, Old: []any{"x", "y"}, New: []any{"y", "x"}},
		{Path: path("e"), Op: differ.Changed, Old: "<redacted 1 bytes>", New: "<redacted 1 bytes>", Redacted: true},
		{Path: path("f"), Op: differ.Changed, Old: "a\tb\n\x1b[1m\n", New: "a\tb\nc\n"},
		{Path: path("g\x1b"), Op: differ.Added, New: nil},
		{Op: differ.Changed, Old: "x", New: "y"},
	}
	print := func(colour bool) string {
		var out bytes.Buffer
		p := &page{bufio.NewWriter(&out), colour}
		p.changes(" ", changes)
		require.NoError(t, p.flush())
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

// TestJSONStream: what is written piece by piece is the document that would be written whole.
func TestJSONStream(t *testing.T) {
	for _, list := range [][]any{nil, {1}, {"<x>", map[string]any{"a": []int{1}}}} {
		var out bytes.Buffer
		s := newJSONStream(&out)
		require.NoError(t, s.begin(struct {
			A string `json:"a"`
		}{"<"}, "list"))
		for _, v := range list {
			require.NoError(t, s.element(v))
		}
		require.NoError(t, s.end(struct {
			N int `json:"n"`
		}{len(list)}))
		if list == nil {
			list = []any{}
		}
		var whole bytes.Buffer
		require.NoError(t, printJSON(&whole, struct {
			A    string `json:"a"`
			List []any  `json:"list"`
			N    int    `json:"n"`
		}{"<", list, len(list)}))
		require.Equal(t, whole.String(), out.String())
		require.True(t, json.Valid(out.Bytes()))
	}
}

// TestComparingFails: what could not be printed, and what was interrupted, is neither "no difference" nor "differences".
func TestComparingFails(t *testing.T) {
	old, new := fixtureFile(t), filepath.Join("..", "..", "testdata", "etcd", "etcd-3.7.db")
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"diff", old, new}, exitCannotJudge},
		{[]string{"diff", "-o", "json", old, new}, exitCannotJudge},
		{[]string{"diff", "-o", "jsonl", old, new}, exitCannotJudge},
		{[]string{"history", new, "cm/updated"}, exitFailed},
		{[]string{"history", "-o", "json", new, "cm/updated"}, exitFailed},
		{[]string{"history", "-o", "jsonl", new, "cm/updated"}, exitFailed},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"etcdshift"}, c.args...)
		require.Equal(t, c.status, run(context.Background(), args, nil, broken{}, &stderr), args)
		require.Contains(t, stderr.String(), "no pipe", args)

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		stderr.Reset()
		require.Equal(t, exitInterrupted, run(ctx, args, nil, &stdout, &stderr), args)
	}
}
