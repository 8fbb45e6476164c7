package fleet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/transform"
)

// longest is the maximum length of an error with file and field names.
const longest = mostReason + 600

// requireShort fails if an error quotes an unbounded value.
func requireShort(t *testing.T, err error) {
	t.Helper()
	require.LessOrEqual(t, len(err.Error()), longest, "%.300s", err)
}

// inside reports whether a path is in a place, independent of within.
func inside(place, path string) bool {
	if s3.Is(place) {
		return strings.HasPrefix(path, place)
	}
	deep := "/" + strings.Repeat("d/", 1+strings.Count(place+path, "..")) // no ".." leads above the root
	return place != "" && strings.HasPrefix(filepath.Join(deep, path),
		strings.TrimSuffix(filepath.Join(deep, place), "/")+"/")
}

// listOf returns a list of two snapshots; pairs are replacements in its text.
func listOf(place, in string, pairs ...string) []byte {
	text := `{"apiVersion":"etcdshift/v1","kind":"Fleet","name":"x","place":"` + place + `","snapshots":[{"path":"` +
		in + `a.db","bytes":1,"etag":"e"},{"path":"` + in + `b.db","bytes":2,"etag":"e"}]}`
	return []byte(strings.NewReplacer(pairs...).Replace(text))
}

// FuzzRead checks that an error about a list is short and names the file, snapshots and results are
// in the place, and a list that is written and read again is the same.
func FuzzRead(f *testing.F) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			f.Setenv(name, "") // independent of this shell's settings
		}
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_REGION": "us-east-1", "HOME": f.TempDir()} {
		f.Setenv(name, value) // for lists of a bucket; no request is sent
	}
	f.Add(listOf("b", "b/"))
	f.Add(listOf(".", ""))
	f.Add(listOf("/b", "/b/"))
	f.Add(listOf("s3://bkt/b", "s3://bkt/b/"))
	f.Add(listOf("b", "b/", "b/a.db", "b/../a.db"))
	f.Add(listOf("b", "b/", "b/b.db", "c/b.db"))
	f.Add(listOf("..", "../"))
	f.Add(listOf("..", "../../"))
	f.Add(listOf("", "/"))
	f.Add(listOf("/", "/"))
	f.Add(listOf("b", "b/", `"bytes":1`, `"bytes":`+strings.Repeat("7", 5000)))
	f.Add(listOf("s3://bkt/b", "s3://bkt/b/", "b.db", strings.Repeat("b", 5000)+"/"))
	f.Add(listOf("s3://bkt/b", "s3://bkt/b/", "b.db", "b.db?versionId=7"))
	f.Add(listOf("b", "b/", `"bytes":1`, `"bytes":-1`))
	f.Add(listOf("b", "b/", `"etag":"e"`, `"etag":""`))
	f.Add(listOf("b", "b/", `"name":"x"`, `"name":"`+strings.Repeat("x", 5000)+`"`))
	f.Add(listOf("b", "b/", "b/b.db", "c/"+strings.Repeat("x", 5000)))
	f.Add(listOf(strings.Repeat("x", 5000), "b/"))
	f.Add(listOf("b", "b/", `"kind":"Fleet"`, `"kind":"`+strings.Repeat("x", 5000)+`"`))
	path := filepath.Join(f.TempDir(), "list.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		list, err := Read(t.Context(), path)
		if err != nil {
			require.ErrorIs(t, err, ErrNotFleet)
			require.ErrorContains(t, err, path)
			requireShort(t, err)
			return
		}
		for i, s := range list.Snapshots {
			task, err := list.Task(i, []string{"report", WordIn, WordResult + ".html"})
			require.NoError(t, err)
			require.True(t, inside(list.Place, s.Path), "%q in %q", s.Path, list.Place)
			require.True(t, inside(list.Place, task.Last), "%q in %q", task.Last, list.Place)
			require.GreaterOrEqual(t, s.Bytes, int64(0))
			require.NotEmpty(t, s.ETag)
			if s3.Is(s.Path) {
				at, err := s3.Parse(s.Path)
				require.NoError(t, err)
				require.Empty(t, at.Version)
			}
		}
		var written bytes.Buffer
		require.NoError(t, render.JSON(&written, list))
		require.NoError(t, os.WriteFile(path, written.Bytes(), 0o600))
		again, err := Read(t.Context(), path)
		require.NoError(t, err, "%s", written.Bytes())
		list.files, again.files = files{}, files{}
		require.Equal(t, list, again)
	})
}

// FuzzReport checks that a report is JSON, reading byte by byte gives the same result, the kept
// error is short, and each problem code is counted once.
func FuzzReport(f *testing.F) {
	s := Snapshot{Path: "a.db", Bytes: 1}
	for _, outcome := range []transform.Outcome{transform.Written, transform.Unchanged, transform.Planned,
		transform.Refused, transform.Failed} {
		f.Add([]byte(reportOf(s, outcome, "b", "a", "b")))
	}
	f.Add(
		[]byte(
			`{"apiVersion":"etcdshift/v1","kind":"Report","outcome":"failed","error":"password: hunter2",` +
				`"problems":[{"level":"error"}],"x":[{"y":[1,null,"z"]}],"output":null}`))
	f.Add([]byte(`{"input":{"bytes":` + strings.Repeat("7", 5000) + `}}`))
	long := strings.Repeat("x", 5000)
	for _, pair := range [][2]string{
		{`"outcome":"written"`, `"outcome":"` + long + `"`},
		{`"kind":"Report"`, `"kind":"` + long + `"`},
		{`"kind":"Report"`, `"` + long + `":[}`},
		{`"outcome":"written"`, `"outcome":"failed","error":"` + long[:3000] + `"`},
	} {
		text := strings.Replace(reportOf(s, transform.Written), pair[0], pair[1], 1)
		require.Contains(f, text, pair[1])
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseReport(bytes.NewReader(text))
		slow, other := parseReport(iotest.OneByteReader(bytes.NewReader(text)))
		require.Equal(t, err == nil, other == nil, "%v beside %v", err, other)
		if err != nil {
			require.ErrorIs(t, err, ErrNotReport)
			requireShort(t, err)
			return
		}
		require.Equal(t, r, slow)
		require.True(t, json.Valid(text))
		require.LessOrEqual(t, len(r.Error), mostError)
		for i, p := range r.Problems {
			require.Positive(t, p.Count)
			require.True(t, i == 0 || r.Problems[i-1].Code < p.Code)
		}
	})
}
