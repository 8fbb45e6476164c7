package fleet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// FuzzRead: an error about a list names the file, and is not much longer than the list. Snapshots
// and results of a list are in its place. A list that is written and read again is the same.
func FuzzRead(f *testing.F) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "HOME": f.TempDir()} {
		f.Setenv(name, value) // of lists of a bucket; nothing asks it
	}
	for _, place := range []string{"b", ".", "/b", "s3://bkt/b"} {
		in := place + "/"
		if place == "." {
			in = ""
		}
		f.Add([]byte(`{"apiVersion":"etcdshift/v1","kind":"Fleet","name":"x","place":"` + place + `","snapshots":[{"path":"` + in + `a.db","bytes":1,"etag":"e"},{"path":"` + in + `b.db","bytes":2,"etag":"e"}]}`))
	}
	f.Add([]byte(`{"apiVersion":"etcdshift/v1","kind":"Fleet","name":"x","place":"b","snapshots":[{"path":"b/../c.db","bytes":-1,"etag":""}]}`))
	path := filepath.Join(f.TempDir(), "list.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		list, err := Read(t.Context(), path)
		if err != nil {
			require.ErrorIs(t, err, ErrNotFleet)
			require.ErrorContains(t, err, path)
			require.Less(t, len(err.Error()), 1000+20*len(text))
			return
		}
		for i, s := range list.Snapshots {
			task, err := list.Task(i, []string{"report", WordIn, WordResult + ".html"})
			require.NoError(t, err)
			require.True(t, within(list.Place, s.Path), "%q in %q", s.Path, list.Place)
			require.True(t, within(list.Place, task.Last), "%q in %q", task.Last, list.Place)
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

// FuzzReport: a report is JSON, and reading it byte by byte gives the same. The error that is kept
// is short. Each code of its problems is counted once.
func FuzzReport(f *testing.F) {
	s := Snapshot{Path: "a.db", Bytes: 1}
	for _, outcome := range []transform.Outcome{transform.Written, transform.Unchanged, transform.Planned, transform.Refused, transform.Failed} {
		f.Add([]byte(reportOf(s, outcome, "b", "a", "b")))
	}
	f.Add([]byte(`{"apiVersion":"etcdshift/v1","kind":"Report","outcome":"failed","error":"password: hunter2","problems":[{"level":"error"}],"x":[{"y":[1,null,"z"]}],"output":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseReport(bytes.NewReader(text))
		slow, other := parseReport(iotest.OneByteReader(bytes.NewReader(text)))
		require.Equal(t, err == nil, other == nil, "%v beside %v", err, other)
		if err != nil {
			require.ErrorIs(t, err, ErrNotReport)
			require.Less(t, len(err.Error()), 1000+20*len(text))
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
