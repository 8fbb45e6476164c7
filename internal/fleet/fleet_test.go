package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// place creates files in a new working directory, each with its name as content and a later time
// than the file before.
func place(t *testing.T, names ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for i, name := range names {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(name), 0o600))
		at := time.Unix(int64(1_700_000_000+i), 0)
		require.NoError(t, os.Chtimes(name, at, at))
	}
}

func listed(f *Fleet) (paths []string) {
	for _, s := range f.Snapshots {
		paths = append(paths, s.Path)
	}
	return paths
}

// TestList checks that a list has the snapshots in path order, and counts all other files.
func TestList(t *testing.T) {
	place(t, "b/c2/new.db", "b/c1/old.db", "b/c1/new.db", "b/c1-x.db", "b/c1/old.db.fleet-x.db",
		"b/c1/old.db.fleet-x.json", "b/notes.txt", "b/.hidden.db", "b/.metadata/a.db", "b/list.json")
	require.NoError(t, os.WriteFile("b/empty.db", nil, 0o600))
	require.NoError(t, os.Symlink("c1/new.db", "b/link.db"))
	tool, warned := transform.Tool{Name: "etcdshift", Version: "v1"}, []string(nil)
	f, err := List(t.Context(), "./b/", Choice{Name: "x", Match: "*.db",
		Warn: func(text string) { warned = append(warned, text) }}, tool)
	require.NoError(t, err)
	require.Equal(t, []string{"b/empty.db: is empty: left out"}, warned)
	require.Equal(t, []string{"b/c1-x.db", "b/c1/new.db", "b/c1/old.db", "b/c2/new.db"}, listed(f))
	require.Equal(t, LeftOut{Results: 2, Unmatched: 1, Other: 5}, f.LeftOut)
	require.Equal(t, "2 results of runs, 1 not matched, 5 hidden, empty, JSON or not regular", f.LeftOut.String())
	require.EqualValues(t, 9, f.Snapshots[0].Bytes)

	newest, err := List(t.Context(), "b", Choice{Name: "x", Match: "*.db", Newest: true}, tool)
	require.NoError(t, err)
	require.Equal(t, []string{"b/c1-x.db", "b/c1/new.db", "b/c2/new.db"}, listed(newest))
	require.Equal(t, 1, newest.LeftOut.Older)

	require.NoError(t, f.Write(t.Context(), "list.json"))
	require.ErrorIs(t, f.Write(t.Context(), "list.json"), fs.ErrExist)
	again, err := Read(t.Context(), "list.json")
	require.NoError(t, err)
	require.Equal(t, f, again)

	_, err = List(t.Context(), "b", Choice{Name: "x", Match: "*.zip"}, tool)
	require.EqualError(t, err, "b: no snapshot is there; left out: 2 results of runs, 6 not matched, 4 hidden, "+
		"empty, JSON or not regular")
	_, err = List(t.Context(), "nowhere", Choice{Name: "x"}, tool)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestPrefix checks that a bucket place may end within a name without hiding files, and that a
// place that begins a folder and other names causes a warning.
func TestPrefix(t *testing.T) {
	for path, takes := range map[string]bool{
		"s3://bkt/etcd/c1/a.db.gz": true, "s3://bkt/etcd/c1/a/.x/b.db": false, "s3://bkt/etcd/c1/a/x.json": false,
		"s3://bkt/etcd/c1/a.db.fleet-x.db": false,
	} {
		got, err := Choice{Name: "x"}.selects(file{Snapshot: Snapshot{Path: path, Bytes: 1}, regular: true},
			"s3://bkt/etcd/c1/a", &LeftOut{})
		require.NoError(t, err)
		require.Equal(t, takes, got, path)
	}
	for _, one := range []struct {
		place, path string
		takes       bool
	}{
		{".", ".a.db", false}, {".", ".x/a.db", false}, {".", "a.db", true}, {"..", "../a.db", true},
		{"..", "../.a.db", false}, {"../b/a.db", "../b/a.db", true}, {"/x/.y", "/x/.y/a.db", true},
		{"s3://bkt/.b", "s3://bkt/.b/a.db", true}, {"s3://bkt/.b/", "s3://bkt/.b/a.db", true},
		{"s3://bkt/.b", "s3://bkt/.b/.a.db", false},
		{"s3://bkt/.b", "s3://bkt/.bc/a.db", false}, {"s3://bkt", "s3://bkt/.a.db", false},
	} {
		got, err := Choice{Name: "x"}.selects(file{Snapshot: Snapshot{Path: one.path, Bytes: 1}, regular: true},
			one.place, &LeftOut{})
		require.NoError(t, err)
		require.Equal(t, one.takes, got, one)
	}
	beside := func(place string, paths ...string) string {
		f := &Fleet{Place: place}
		for _, path := range paths {
			f.Snapshots = append(f.Snapshots, Snapshot{Path: path})
		}
		return f.outsideFolder()
	}
	require.Equal(t, "s3://bkt/etcd-old/a", beside("s3://bkt/etcd", "s3://bkt/etcd-old/a", "s3://bkt/etcd/a"))
	require.Empty(t, beside("s3://bkt/etcd/", "s3://bkt/etcd/a", "s3://bkt/etcd/b/a"))
	require.Empty(t, beside("s3://bkt/etcd/c", "s3://bkt/etcd/c1/a", "s3://bkt/etcd/c2/a"))
	require.Empty(t, beside("s3://bkt", "s3://bkt/a"))
}

// TestListIsRead checks that an invalid name is an error of the list, not of each run.
func TestListIsRead(t *testing.T) {
	place(t, "b/a.db", "b/b\xff.db")
	_, err := List(t.Context(), "b", Choice{Name: "x"}, transform.Tool{})
	require.EqualError(t, err,
		`b: snapshot 1, "b/b\xff.db", cannot be in a list: its name is not UTF-8; rename it, or leave it out by `+
			`--match`)
	_, err = List(t.Context(), "b", Choice{Name: "x", Match: "a*"}, transform.Tool{})
	require.NoError(t, err)
	for path, why := range map[string]string{
		"s3://bkt/a/b/":            "the key ends in a slash",
		"s3://bkt/a?versionId=b":   "its key looks like the version of an object",
		"s3://bkt/a/c?versionId=%": "invalid URL escape",
		"s3://bkt/b.db":            `is not in "s3://bkt/a"`,
		"s3://bkt/a?b=../%2f.db":   "",
	} {
		f := &Fleet{APIVersion: transform.APIVersion, Kind: Kind, Name: "x", Place: "s3://bkt/a",
			Snapshots: []Snapshot{{Path: path, Bytes: 1, ETag: "e"}}}
		if err := f.check(); why != "" {
			require.ErrorContains(t, err, why)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestRead checks that a foreign list is accepted only if each index has its own snapshot in the
// place.
func TestRead(t *testing.T) {
	place(t)
	good :=
		`{"apiVersion":"etcdshift/v1","kind":"Fleet","name":"x","place":"b","snapshots":[{"path":"b/a.db","bytes":1,` +
			`"etag":"e"},{"path":"b/b.db","bytes":1,"etag":"e"}]}`
	for text, why := range map[string]string{
		good: "",
		strings.Replace(good, `"name":"x"`, `"name":"../x"`, 1): `"../x" is no name of a run`,
		strings.Replace(good, "b/b.db", "b/a.db", 1):            `snapshot 1, "b/a.db", is not in order`,
		strings.Replace(good, "b/b.db", "b/../c.db", 1):         `snapshot 1, "b/../c.db", is not in "b"`,
		strings.Replace(good, "b/a.db", "/etc/shadow",
			1): `snapshot 0, "/etc/shadow", is not in "b"`,
		strings.Replace(good, `"etag":"e"`, `"etag":""`, 1):                   `has no size or no etag`,
		strings.Replace(good, `"Fleet"`, `"Report"`, 1):                       `kind "Report"`,
		strings.Replace(good, `[{`, `[[`, 1):                                  `invalid character`,
		good[:len(good)-2]:                                                    `unexpected end`,
		`{"apiVersion":"etcdshift/v1","kind":"Fleet","name":"x","place":"b"}`: "it has 0 snapshots",
		"": "unexpected end",
	} {
		require.NoError(t, os.WriteFile("list.json", []byte(text), 0o600))
		_, err := Read(t.Context(), "list.json")
		if why == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrNotFleet, text)
		require.ErrorContains(t, err, why)
	}
}

// reportOf returns a report about a snapshot.
func reportOf(s Snapshot, outcome transform.Outcome, problems ...string) string {
	r := transform.NewReport("run")
	r.Input, r.ETag, r.Outcome, r.Changes.Created = snapshot.FileInfo{Path: s.Path, Bytes: s.Bytes}, s.ETag, outcome, 3
	for _, code := range problems {
		r.Problems = append(r.Problems, finding.Finding{Code: &finding.Code{Name: code}, Level: finding.Warning})
	}
	text, _ := json.Marshal(r)
	return string(text)
}

// TestTask checks that words are replaced, the report comes from a scratch file, and a task with
// its last result is done.
func TestTask(t *testing.T) {
	place(t, "b/a.db")
	t.Setenv("TMPDIR", t.TempDir())
	f, err := List(t.Context(), "b", Choice{Name: "x"}, transform.Tool{})
	require.NoError(t, err)
	for _, wrong := range []string{"verify {in}", "run plan.yaml {in} out.db --report r.json", "status x {result}.db",
		"run {in} {result}.db --report r.json",
		"run {in} {out}.db --report {result}.json", "run {in} {results}.db --report={result}.json",
		"run plan.yaml {in} out.db --report {result}.json",
		"run plan.yaml {in} out.db --report {result}.json --dry-run=false"} {
		_, err := f.Task(0, strings.Fields(wrong))
		require.ErrorIs(t, err, ErrWords, wrong)
	}
	for _, index := range []int{-1, 1} {
		_, err := f.Task(index, []string{"report", "{in}", "{result}.html"})
		require.ErrorContains(t, err, "the list has 0 to 0")
	}
	task, err := f.Task(0, []string{"report", "{in}", "{result}.html", "{range .items[*]}{.x}{end}"})
	require.NoError(t, err)
	require.Equal(t, "b/a.db.fleet-x.html", task.Last)

	for flags, dry := range map[string]bool{"--report={result}.json": false, "-report={result}.json": false,
		"-report {result}.json":              false,
		"--report {result}.json --dry-run=f": false, "-dry-run --report {result}.json": true,
		"--report={result}.json -dry-run=1": true} {
		task, err = f.Task(0, strings.Fields("run plan.yaml {in} {result}.db "+flags))
		require.NoError(t, err)
		require.Equal(t, "b/a.db.fleet-x.json", task.Last)
		require.Equal(t, []string{"--report", "b/a.db.fleet-x.json"}, task.words[task.report-1:task.report+1])
		require.Equal(t, dry, task.dryRun, flags)
	}
	_, err = f.Task(0, strings.Fields("migrate calico-v3 {in} --dry-run --report {result}.json"))
	require.NoError(t, err)
	task, err = f.Task(0, []string{"run", "--report={result}.json", "plan.yaml", "{in}", "{result}.db"})
	require.NoError(t, err)
	done, _, err := task.Done(t.Context())
	require.NoError(t, err)
	require.False(t, done)
	require.NoError(t, task.Check(t.Context()))
	keep := func(outcome transform.Outcome, _ error) bool { return outcome != transform.Failed }
	for _, outcome := range []transform.Outcome{transform.Failed, transform.Refused} {
		got, err := task.Run(t.Context(), func(words []string) error {
			require.Equal(t, []string{"run", "--report", words[2], "plan.yaml", "b/a.db", "b/a.db.fleet-x.db"}, words)
			require.NoError(t, os.WriteFile(words[2], []byte(reportOf(task.Snapshot, outcome)), 0o600))
			return errors.New("it did")
		}, keep)
		require.EqualError(t, err, "it did")
		require.Equal(t, outcome, got)
		done, _, err = task.Done(t.Context())
		require.NoError(t, err)
		require.Equal(t, outcome == transform.Refused, done)
	}
	require.NoError(t, os.Remove("b/a.db.fleet-x.json"))
	ended := errors.New("refused")
	got, err := task.Run(t.Context(), func(words []string) error {
		require.NoError(t, os.WriteFile(words[2], []byte(reportOf(task.Snapshot, transform.Refused)), 0o600))
		require.NoError(t, os.WriteFile("b/a.db", []byte("another"), 0o600))
		return ended
	}, keep)
	require.ErrorIs(t, err, ErrChanged)
	require.NotErrorIs(t, err, ended) // a retry depends only on the report
	require.ErrorContains(t, err, "; the run: refused")
	require.Empty(t, got)
	require.NoFileExists(t, "b/a.db.fleet-x.json")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)

	require.ErrorIs(t, task.Check(t.Context()), ErrChanged)
	require.NoError(t, os.Remove("b/a.db"))
	require.ErrorIs(t, task.Check(t.Context()), ErrChanged)
}

// TestDone checks that a report counts as done only for its snapshot, while its output exists, and
// the report of a dry run only for dry runs.
func TestDone(t *testing.T) {
	place(t, "b/a.db")
	f, err := List(t.Context(), "b", Choice{Name: "x"}, transform.Tool{})
	require.NoError(t, err)
	command := strings.Fields("run plan.yaml {in} {result}.db --report {result}.json")
	try := func(outcome transform.Outcome, output, etag string, words ...string) error {
		r := transform.NewReport("run")
		r.Outcome, r.Input, r.ETag = outcome, snapshot.FileInfo{Path: "b/a.db", Bytes: 6}, ""
		if output != "" {
			r.Output = &snapshot.FileInfo{Path: output, Bytes: 6}
		}
		text, err := json.Marshal(r)
		require.NoError(t, err)
		task, err := f.Task(0, append(words, command...))
		require.NoError(t, err)
		task.Snapshot.ETag = etag
		require.NoError(t, os.WriteFile("scratch.json", text, 0o600))
		_ = os.Remove(task.Last)
		require.NoError(t, task.publish(t.Context(), "scratch.json"))
		task.Snapshot.ETag = "now"
		done, got, err := task.Done(t.Context())
		require.Equal(t, err == nil, done)
		if done {
			require.Equal(t, outcome, got)
		}
		return err
	}
	require.NoError(t, try(transform.Refused, "", "now"))
	require.NoError(t, try(transform.Written, "elsewhere.db", "now"))
	require.ErrorIs(t, try(transform.Written, "", "before"), ErrOtherInput)
	require.ErrorIs(t, try(transform.Written, "b/a.db.fleet-x.db", "now"), ErrLost)
	require.NoError(t, os.WriteFile("b/a.db.fleet-x.db", []byte("short"), 0o600))
	require.ErrorIs(t, try(transform.Unchanged, "b/a.db.fleet-x.db", "now"), ErrLost)
	require.NoError(t, os.WriteFile("b/a.db.fleet-x.db", []byte("whole."), 0o600))
	require.NoError(t, try(transform.Written, "b/a.db.fleet-x.db", "now"))
	require.ErrorIs(t, try(transform.Planned, "", "now"), ErrDryRun)
	require.ErrorIs(t, try(transform.Planned, "", "now", "dry-run.yaml"), ErrDryRun)
	require.NoError(t, try(transform.Planned, "", "now", "--dry-run"))

	page, err := f.Task(0, strings.Fields("report {in} {result}.html"))
	require.NoError(t, err)
	_, err = page.Run(t.Context(), func([]string) error { return nil }, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("b/a.db.fleet-x.html", nil, 0o600))
	done, _, err := page.Done(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, os.WriteFile("b/a.db", []byte("another"), 0o600))
	done, _, err = page.Done(t.Context())
	require.ErrorIs(t, err, ErrChanged)
	require.False(t, done)
	_, err = page.Run(t.Context(), func([]string) error { return nil }, nil)
	require.ErrorIs(t, err, ErrChanged)
}

// TestSummary checks that a row has the contents of a report, or the reason for its absence.
func TestSummary(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("b/%03d.db", i))
	}
	place(t, names...)
	f, err := List(t.Context(), "b", Choice{Name: "x"}, transform.Tool{})
	require.NoError(t, err)
	for i, s := range f.Snapshots {
		text := reportOf(s, transform.Written, "b", "a", "b")
		switch i {
		case 7:
			continue
		case 8:
			text = text[:50]
		case 9:
			text = reportOf(f.Snapshots[0], transform.Written)
		case 10:
			text = reportOf(s, transform.Refused)
		case 11:
			text = strings.Replace(text, `"input"`, `"output":{"path":"`+f.Results(s)+`.db","bytes":1},"input"`, 1)
		}
		require.NoError(t, os.WriteFile(f.Results(s)+".json", []byte(text), 0o600))
	}
	require.NoError(t, os.WriteFile(f.Snapshots[7].Path, []byte("changed"), 0o600))
	for _, i := range []int{6, 7} {
		require.NoError(t, os.WriteFile(f.Results(f.Snapshots[i])+".html", nil, 0o600))
	}
	next := 0
	for row, err := range f.Summary(t.Context(), ".json") {
		require.NoError(t, err)
		require.Equal(t, next, row.Index)
		switch row.Index {
		case 7:
			require.Equal(t, Missing, row.Outcome)
			require.Contains(t, row.Error, "is not the file of the list any more")
		case 8:
			require.Equal(t, Unreadable, row.Outcome)
			require.Contains(t, row.Error, "is no report, as --report writes it")
		case 9:
			require.Equal(t, Other, row.Outcome)
			require.Contains(t, row.Error, `"b/000.db", the list has "b/009.db"`)
		case 10:
			require.Equal(t, Refused, row.Outcome)
		case 11:
			require.Equal(t, Lost, row.Outcome)
			require.Contains(t, row.Error, `"b/011.db.fleet-x.db" does not exist`)
			require.False(t, row.Done())
		default:
			require.True(t, row.Done())
			require.Equal(t, []Problems{{"a", finding.Warning, 1}, {"b", finding.Warning, 2}}, row.Problems)
			require.Equal(t, transform.Changes{Created: 3}, row.Changes)
		}
		next++
	}
	require.Equal(t, 300, next)
	for row, err := range f.Summary(t.Context(), ".html") {
		require.NoError(t, err)
		want := map[int]Outcome{6: Written, 7: Other}[row.Index]
		require.Equal(t, cmp.Or(want, Missing), row.Outcome)
	}
}

// TestNeeds checks that a pod's resources grow with the file, and with the expanded size of a
// compressed file.
func TestNeeds(t *testing.T) {
	needs := func(path string, bytes int64) Needs {
		return (&Fleet{Snapshots: []Snapshot{{Path: "a", Bytes: 1}, {Path: path, Bytes: bytes}}}).Needs()
	}
	require.Equal(t, Needs{Memory: 256 << 20, Scratch: 320 << 20}, needs("b.db", 2))
	require.Greater(t, needs("b.db.gz", 1<<30).Scratch, 5*needs("b.db", 1<<30).Scratch)
	mixed := &Fleet{Snapshots: []Snapshot{{Path: "a.db", Bytes: 1 << 30}, {Path: "b.db.gz", Bytes: 1 << 29}}}
	require.Equal(t, "b.db.gz", mixed.Largest().Path)
	require.Equal(t, needs("b.db.gz", 1<<29), mixed.Needs())
	small := &Fleet{Snapshots: []Snapshot{{Path: "a.db", Bytes: 1 << 20}, {Path: "b.db", Bytes: 20 << 20}}}
	require.Equal(t, "b.db", small.Largest().Path)
	compressed := &Fleet{Snapshots: []Snapshot{{Path: "a.db.gz", Bytes: 1 << 30}, {Path: "b.db", Bytes: 10_400 << 20}}}
	require.Equal(t, Needs{needs("b.db", 10_400<<20).Memory, needs("b.db.gz", 1<<30).Scratch}, compressed.Needs())
}
