package transform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// planFunc is a transform in a function.
type planFunc func(ctx context.Context, v *View) error

func (f planFunc) Plan(ctx context.Context, v *View) error { return f(ctx, v) }

const story = "put /a `{\"metadata\":{\"creationTimestamp\":\"2026-01-02T03:04:05Z\"}}`" + `
put /b two
put /c three
grant 9 600
put /leased x lease=9
`

type files struct{ in, out string }

// input builds a snapshot and fails the test if the file changes.
func input(t testing.TB) files {
	t.Helper()
	in := etcdtest.Build(t, story)
	before, err := os.ReadFile(in)
	require.NoError(t, err)
	t.Cleanup(func() {
		after, err := os.ReadFile(in)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after), "the input changed")
	})
	return files{in, filepath.Join(t.TempDir(), "out.db")}
}

// run runs a plan that succeeds.
func (f files) run(t testing.TB, o Options, plan func(ctx context.Context, v *View)) *Report {
	t.Helper()
	o.In, o.Out = f.in, f.out
	r, err := Run(t.Context(), o, planFunc(func(ctx context.Context, v *View) error {
		plan(ctx, v)
		return nil
	}))
	require.NoError(t, err, "%v", r.Problems)
	return r
}

func live(t testing.TB, path string) map[string]string {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	got := map[string]string{}
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		got[string(rec.Key)] = string(rec.Value)
	}
	return got
}

func noOutput(t testing.TB, f files) {
	t.Helper()
	left, err := os.ReadDir(filepath.Dir(f.out))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestRunWrites checks that staged changes compose, keep their order and leases, and are written to
// the file.
func TestRunWrites(t *testing.T) {
	f := input(t)
	big := bytes.Repeat([]byte("x"), memoryLimit)
	r, err := Run(context.Background(), Options{Command: "test", In: f.in, Out: f.out},
		planFunc(func(ctx context.Context, v *View) error {
			require.NoError(t, v.Put(ctx, []byte("/new"), []byte("first")))
			require.NoError(t, v.Put(ctx, []byte("/leased"), []byte("y")))
			require.NoError(t, v.Put(ctx, []byte("/new"), []byte("second")))
			require.NoError(t, v.Put(ctx, []byte("/big"), big))
			require.NoError(t, v.Put(ctx, []byte("/b"), []byte("two")))
			require.NoError(t, v.Delete(ctx, []byte("/c")))
			require.NoError(t, v.Delete(ctx, []byte("/absent")))
			seen := map[string]string{}
			for e, err := range v.Live(ctx, []byte("/")) {
				require.NoError(t, err)
				seen[string(e.Key)] = string(e.Value)
			}
			require.Len(t, seen, 5)
			require.Equal(t, "second", seen["/new"])
			require.NotContains(t, seen, "/c")
			e, err := v.Get(ctx, []byte("/c"))
			require.NoError(t, err)
			require.Nil(t, e)
			when, err := v.Time(ctx)
			require.NoError(t, err)
			require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), when.UTC())
			return nil
		}))
	require.NoError(t, err)
	require.Equal(t, Written, r.Outcome)
	require.Equal(t, Changes{Created: 2, Updated: 1, Deleted: 1}, r.Changes)
	require.Equal(t, r.Input.Revision+4, r.Output.Revision)
	require.Equal(t, 5, r.Output.Keys)
	got := live(t, f.out)
	require.Len(t, got, 5)
	require.Equal(t, []string{"y", "second", string(big)}, []string{got["/leased"], got["/new"], got["/big"]})
	b, err := os.ReadFile(f.out)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(b)), r.Output.SHA256)
	require.Len(t, r.Restore, 1)
	require.Contains(t, r.Restore[0], "--bump-revision 1000000000 --mark-compacted")

	server := etcdtest.Start(t, etcdtest.Restore(t, f.out))
	for _, kv := range etcdtest.Dump(t, server, 0) {
		require.Equal(t, got[string(kv.Key)], string(kv.Value))
		if string(kv.Key) == "/leased" {
			require.Equal(t, int64(9), kv.Lease)
		}
	}
}

var (
	invalid = &finding.Code{Name: "invalid", Level: finding.Error, Allowed: finding.Skipped}
	general = &finding.Code{Name: "general", Level: finding.Warning}
)

// TestRunWritesNothing checks that every failure leaves the folder of the output unchanged.
func TestRunWritesNothing(t *testing.T) {
	broken := errors.New("broken")
	change := func(ctx context.Context, v *View) error { return v.Delete(ctx, []byte("/a")) }
	tests := []struct {
		name    string
		dryRun  bool
		plan    planFunc
		outcome Outcome
		err     error
	}{
		{"dry run", true, change, Planned, nil},
		{"refused", false, func(ctx context.Context, v *View) error {
			require.False(t, v.Raise("/a", invalid.Because("it is")))
			return change(ctx, v)
		}, Refused, ErrRefused},
		{"failed", false, func(ctx context.Context, v *View) error {
			return errors.Join(change(ctx, v), broken)
		}, Failed, broken},
		{"interrupted", false, func(context.Context, *View) error { return context.Canceled }, Failed,
			context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := input(t)
			r, err := Run(context.Background(), Options{In: f.in, Out: f.out, DryRun: tt.dryRun}, tt.plan)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.outcome, r.Outcome)
			require.Nil(t, r.Output)
			noOutput(t, f)
		})
	}
}

// TestRunAllowed checks that a run with an allowed problem continues and reports the outcome for
// the record.
func TestRunAllowed(t *testing.T) {
	f := input(t)
	r := f.run(t, Options{Allow: []string{"invalid"}}, func(ctx context.Context, v *View) {
		require.True(t, v.Raise("/a", invalid.Because("it is")))
		v.Raise("/b", general.Because("it is"))
		require.NoError(t, v.Delete(ctx, []byte("/b")))
	})
	all, refusing := r.Errors()
	require.Equal(t, []int{1, 0}, []int{all, refusing})
	require.Equal(t, finding.Skipped, r.Problems[0].Outcome)
}

// TestProblemsOnce checks that findings about one record from two places become one problem with
// both reasons.
func TestProblemsOnce(t *testing.T) {
	f := input(t)
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out}, planFunc(func(_ context.Context, v *View) error {
		v.Raise("/a", finding.Encrypted.Because("no key"))
		v.Raise("/a", finding.Encrypted.Because("owners cannot be seen"))
		v.Raise("/a", finding.Encrypted.Because("no key"))
		v.Raise("/a", invalid.Because("it is"))
		v.Raise("/a", finding.Encrypted.Because("a warning is another thing").Decided(finding.Noted))
		v.Raise("", general.Because("one"))
		v.Raise("", general.Because("two"))
		return nil
	}))
	require.ErrorIs(t, err, ErrRefused)
	var got []string
	for _, p := range r.Problems {
		got = append(got, fmt.Sprintf("%s %s %s: %s", p.Level, p.Key, p.Code.Name, p.Reason))
	}
	require.Equal(t, []string{
		"error /a encrypted: no key; owners cannot be seen", "error /a invalid: it is",
		"warning /a encrypted: a warning is another thing", "warning  general: one", "warning  general: two",
	}, got)
}

// TestRunPaths checks that an existing output is refused before the input is read, and a wrong
// digest is refused regardless of the plan.
func TestRunPaths(t *testing.T) {
	f := input(t)
	nothing := planFunc(func(context.Context, *View) error { return nil })
	_, err := Run(context.Background(), Options{In: f.in, Out: f.in}, nothing)
	require.ErrorIs(t, err, ErrOutIsIn)
	_, err = Run(context.Background(), Options{In: "absent.db", Out: filepath.Dir(f.out)}, nothing)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = Run(context.Background(), Options{In: f.in, Out: filepath.Join(f.out, "deeper")}, nothing)
	require.ErrorIs(t, err, fs.ErrNotExist)

	b, err := os.ReadFile(f.in)
	require.NoError(t, err)
	b[len(b)-1] ^= 1
	bad := filepath.Join(t.TempDir(), "bad.db")
	require.NoError(t, os.WriteFile(bad, b, 0o600))
	r, err := Run(context.Background(), Options{In: bad, Out: f.out},
		planFunc(func(context.Context, *View) error { return errors.New("cannot decode") }))
	require.ErrorIs(t, err, snapshot.ErrDigest)
	require.Equal(t, Failed, r.Outcome)
	noOutput(t, f)
}

// TestDeterministic checks that the same input and plan give the same bytes.
func TestDeterministic(t *testing.T) {
	f := input(t)
	again := filepath.Join(t.TempDir(), "again.db")
	var sums []string
	for _, out := range []string{f.out, again} {
		r, err := Run(context.Background(), Options{In: f.in, Out: out},
			planFunc(func(ctx context.Context, v *View) error {
				lease, err := v.Grant(ctx, 9, 5)
				return errors.Join(err, v.Put(ctx, []byte("/z"), []byte("1")),
					v.Create(ctx, []byte("/y"), []byte("2"), lease))
			}))
		require.NoError(t, err)
		sums = append(sums, r.Output.SHA256)
	}
	require.Equal(t, sums[0], sums[1])
}

func TestRestoreCommands(t *testing.T) {
	got, _ := restoreCommands("my out.db", []snapshot.Member{
		{Name: "n'2", PeerURLs: []string{"https://10.0.0.2:2380"}},
		{Name: "m1", PeerURLs: []string{"https://10.0.0.1:2380"}},
	}, nil, 7)
	require.Equal(t, []string{
		`etcdutl snapshot restore 'my out.db' --bump-revision 7 --mark-compacted --data-dir /var/lib/etcd --name m1 ` +
			`--initial-cluster 'm1=https://10.0.0.1:2380,n'\''2=https://10.0.0.2:2380' --initial-advertise-peer-urls ` +
			`https://10.0.0.1:2380`,
		`etcdutl snapshot restore 'my out.db' --bump-revision 7 --mark-compacted --data-dir /var/lib/etcd --name ` +
			`'n'\''2' --initial-cluster 'm1=https://10.0.0.1:2380,n'\''2=https://10.0.0.2:2380' ` +
			`--initial-advertise-peer-urls https://10.0.0.2:2380`,
	}, got)
	unnamed, _ := restoreCommands("-out.db", []snapshot.Member{{Name: "n1", PeerURLs: []string{"http://1"}},
		{PeerURLs: []string{"http://2"}}}, nil, 7)
	require.Len(t, unnamed, 1, "a member that never started has nothing to restore")
	require.Contains(t, unnamed[0], "restore ./-out.db ")
	require.NotContains(t, unnamed[0], "http://2")
}

// TestUpload checks that Upload gets an output that is not a local file, with the same bytes, from
// an input that is not at its path. The folder of temporary files stays empty.
func TestUpload(t *testing.T) {
	f := input(t)
	put := planFunc(func(ctx context.Context, v *View) error { return v.Put(ctx, []byte("/b"), []byte("new")) })
	_, err := Run(t.Context(), Options{In: f.in, Out: f.out}, put)
	require.NoError(t, err)
	want, err := os.ReadFile(f.out)
	require.NoError(t, err)

	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	refused := errors.New("refused")
	for _, outcome := range []error{nil, refused} {
		var got []byte
		given, err := os.Open(f.in)
		require.NoError(t, err)
		r, err := Run(t.Context(), Options{In: "s3://b/in", Input: given, Out: "s3://b/c/out.db",
			Upload: func(file *os.File) (err error) {
				got, err = io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
				require.NoError(t, err)
				return outcome
			}}, put)
		require.ErrorIs(t, err, outcome)
		require.Equal(t, want, got)
		require.Equal(t, "s3://b/in", r.Input.Path)
		if outcome == nil {
			require.Equal(t, "s3://b/c/out.db", r.Output.Path)
			require.Contains(t, r.Restore[0], "etcdutl snapshot restore out.db ")
			require.Contains(t, r.Steps[0], "copy it to a file on each, such as ./out.db")
		}
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
