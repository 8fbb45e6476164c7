package snapshot

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/publish"
)

// begin begins a draft and copies.
func begin(t testing.TB, path string, s *Snapshot) *Draft {
	t.Helper()
	out := must(publish.Create(path))(t)
	d := Begin(path, out, s)
	d.Copy()
	return d
}

// opened is an output that has a name, and is closed by the test.
type opened struct{ file *os.File }

func (o opened) File() *os.File { return o.file }
func (o opened) Publish() error { return nil }
func (o opened) Discard() error { return nil }

// TestDraftIsWrite: a draft that was stopped, or whose copy failed, writes what Write does.
func TestDraftIsWrite(t *testing.T) {
	ctx := context.Background()
	s := open(t, copyOf(t, fixture(t)))
	changes := seq(put("/new", "x"))
	want := filepath.Join(t.TempDir(), "want")
	must(Write(ctx, want, s, changes, WriteConfig{}))(t)
	for name, spoil := range map[string]func(d *Draft){
		"as it is": func(*Draft) {},
		"stopped":  (*Draft).Stop,
		"failed": func(d *Draft) {
			d.copied.stop()
			d.copied.err = os.ErrDeadlineExceeded
			require.NoError(t, d.file.Truncate(0))
		},
	} {
		path := filepath.Join(t.TempDir(), "out")
		d := begin(t, path, s)
		spoil(d)
		_, err := d.Write(ctx, changes, WriteConfig{})
		require.NoError(t, err, name)
		require.NoError(t, d.Discard(), name)
		requireSameFile(t, want, path)
	}
	path := filepath.Join(t.TempDir(), "none")
	require.NoError(t, begin(t, path, s).Discard())
	nothingIn(t, filepath.Dir(path))
}

func requireSameFile(t *testing.T, want, got string) {
	t.Helper()
	a := must(os.ReadFile(want))(t)
	b := must(os.ReadFile(got))(t)
	require.True(t, bytes.Equal(a, b), "%s is not as %s", got, want)
}

// TestCopyThroughMemory: both ways of copying a range copy it.
func TestCopyThroughMemory(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	content := bytes.Repeat([]byte("0123456789abcde\n"), 100_000)
	require.NoError(t, os.WriteFile(from, content, 0o600))
	in := must(os.Open(from))(t)
	defer in.Close()
	for name, copyRange := range map[string]func(out, in *os.File, at, n int64) (int64, error){"kernel": copyRange, "memory": copyThrough} {
		out := must(os.Create(filepath.Join(t.TempDir(), "to")))(t)
		defer out.Close()
		for at := int64(0); at < int64(len(content)); {
			n, err := copyRange(out, in, at, min(300_000, int64(len(content))-at))
			require.NoError(t, err, name)
			at += n
		}
		requireSameFile(t, from, out.Name())
	}
	n := must(copyRange(in, in, int64(len(content)), 10))(t)
	require.Zero(t, n, "behind the end")
}
