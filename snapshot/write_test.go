package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// seq returns changes in the form of Write.
func seq(changes ...Change) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// planned sets Prior like a planner that has just read the keys.
func planned(t testing.TB, s *Snapshot, changes ...Change) iter.Seq2[Change, error] {
	t.Helper()
	for i := range changes {
		changes[i].Prior = modRevision(get(t, s, string(changes[i].Key)))
	}
	return seq(changes...)
}

func modRevision(r *Record) int64 {
	if r == nil {
		return 0
	}
	return r.ModRevision
}

func put(key, value string) Change { return Change{Key: []byte(key), Value: []byte(value)} }
func del(key string) Change        { return Change{Key: []byte(key), Delete: true} }

// entry is a stored record as bytes.
type entry struct{ key, value string }

func entriesOf(t testing.TB, s *Snapshot) (out []entry) {
	t.Helper()
	require.NoError(t, s.entries(context.Background(), "key", func(k, v []byte) error {
		out = append(out, entry{string(k), string(v)})
		return nil
	}))
	return out
}

const story = `
grant 77 3600
put /a one
put /a two
put /gone x
del /gone
put /back first
del /back
put /leased v lease=77
put /big size=20000
txn {
  put /t/1 a
  put /t/2 b
}
compact 5
put /a three
`

// TestLikeALiveServer makes the same six writes on a real server and with Write and compares every
// record byte for byte.
func TestLikeALiveServer(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, story)
	before := saved(t, live)
	etcdtest.Run(t, live, "put /a four\ndel /t/1\nput /new fresh\nput /back again")
	must(live.Client.Put(context.Background(), "/leased", "kept", clientv3.WithIgnoreLease()))(t)
	etcdtest.Run(t, live, "put /big small")
	after := saved(t, live)

	s := open(t, before)
	leased := put("/leased", "kept")
	leased.Lease = 77
	path, res := proved(t, s, WriteConfig{},
		put("/a", "four"), del("/t/1"), put("/new", "fresh"), put("/back", "again"), leased, put("/big", "small"))
	require.Equal(t, 6, res.Appended)
	out, want := open(t, path), open(t, after)
	require.Equal(t, entriesOf(t, want), entriesOf(t, out))
	require.Equal(t, revision(t, want), res.Revision)
	sameAsRestored(t, path, live)
}

// TestNewKeyInheritsNothing checks that a new key gets its own numbers, regardless of the previous
// change, of a tombstone with numbers, and of a key with the same hash.
func TestNewKeyInheritsNothing(t *testing.T) {
	tombstone := Record{Key: []byte("/gone"), CreateRevision: 2, Version: 7}
	s := open(t, copyOf(t, rebuilt(t, built(t, "put /a one\nput /a two\nput /gone x\ndel /gone\n"), 4096,
		func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("key")).Put(mvcc.AppendRevisionKey(nil, Revision{Main: 5}, true),
				mvcc.AppendKeyValue(nil, &tombstone))
		})))
	x := must(s.index(t.Context()))(t)
	ordinal, found, err := x.find([]byte("/a"), &Record{})
	require.NoError(t, err)
	require.True(t, found)
	x.ordinals[uint32(maphash.Bytes(x.seed, []byte("/collides")))] = ordinal

	a := newAppender(x, nil)
	changed := put("/a", "three")
	changed.Prior = 3
	for i, want := range []struct {
		change          Change
		create, version int64
	}{
		{put("/gone", "again"), 6, 1},
		{put("/collides", "new"), 7, 1},
		{changed, 2, 3},
		{put("/new", "new"), 9, 1},
	} {
		rec, err := a.record(want.change)
		require.NoError(t, err, "%s", want.change.Key)
		require.Equal(t, []int64{want.create, int64(6 + i), want.version},
			[]int64{rec.CreateRevision, rec.ModRevision, rec.Version}, "%s", rec.Key)
	}
	require.Equal(t, 4, a.Keys)
}

// TestGenerations writes ten times, each time to the previous output.
func TestGenerations(t *testing.T) {
	path := copyOf(t, deepKeys(t))
	want := modelOf(t, open(t, path))
	for g := range 10 {
		s := open(t, path)
		var changes []Change
		for i := range 200 {
			key := fmt.Sprintf("/k/%06d", i*150)
			switch {
			case i%10 == g:
				changes = append(changes, del(key))
			default:
				changes = append(changes, put(key, fmt.Sprintf("generation %d", g)))
			}
		}
		changes = append(changes, put(fmt.Sprintf("/g/%d", g), strings.Repeat("g", 10_000)))
		want = want.apply(changes...)
		var res WriteResult
		path, res = write(t, s, WriteConfig{}, changes...)
		untouched(t, path)
		out := open(t, path)
		require.Equal(t, want, modelOf(t, out), "generation %d", g)
		require.Equal(t, len(want), res.Keys)
		keptBelow(t, s, out)
		require.Equal(t, s.db.TxID+1, out.db.TxID)
	}
	require.Empty(t, findings(t, open(t, path)))
	sound(t, path)
	sameAsRestored(t, path, nil)
}

// TestGrowth checks that an output grows by little more than the written bytes.
func TestGrowth(t *testing.T) {
	in := copyOf(t, deepKeys(t))
	s := open(t, in)
	for _, n := range []int{1, 10, 1000, 5000} {
		var changes []Change
		var bytes int64
		for i := range n {
			c := put(fmt.Sprintf("/k/%06d", i*7), string(etcdtest.Blob(fmt.Sprint(i), 2048)))
			bytes += int64(len(c.Key) + len(c.Value))
			changes = append(changes, c)
		}
		_, res := write(t, s, WriteConfig{}, changes...)
		grown := res.Bytes - s.Size()
		t.Logf("%d records of %d bytes: grown by %d (%.3f)", n, bytes, grown, float64(grown)/float64(bytes))
		require.LessOrEqual(t, float64(grown), float64(bytes)*1.1+32<<10, "%d records", n)
	}
}

// begin begins a draft and its copy.
func begin(t testing.TB, path string, s *Snapshot) *Draft {
	t.Helper()
	out := must(publish.Create(path))(t)
	d := Begin(path, out, s)
	d.Copy()
	return d
}

// opened is an output with a name, closed by the test.
type opened struct{ file *os.File }

func (o opened) File() *os.File { return o.file }
func (o opened) Publish() error { return nil }
func (o opened) Discard() error { return nil }

// TestDraftIsWrite checks that a stopped draft, a draft with a failed copy, and a draft with a
// right or wrong forecast write the output of Write, and that a wrong layout is found.
func TestDraftIsWrite(t *testing.T) {
	ctx := context.Background()
	s := open(t, copyOf(t, fixture(t)))
	changes := seq(put("/new", "x"))
	want := filepath.Join(t.TempDir(), "want")
	must(Write(ctx, want, s, changes, WriteConfig{}))(t)
	foresee := func(c ...Change) func(d *Draft) {
		return func(d *Draft) { d.Foresee(seq(c...), nil, func() bool { return false }) }
	}
	for name, spoil := range map[string]func(d *Draft){
		"foreseen": func(d *Draft) {
			d.Foresee(changes, nil, func() bool { return true })
			must(d.foreseen.wait(ctx))(t)
		},
		"foreseen twice": func(d *Draft) {
			foresee(put("/new", strings.Repeat("y", 1<<20)))(d)
			must(d.foreseen.wait(ctx))(t)
			d.Foresee(changes, nil, func() bool { return true })
		},
		"foreseen with another value": foresee(put("/new", "y")), // of the same pages
		"foreseen with more pages":    foresee(put("/new", strings.Repeat("y", 1<<20))),
		"foreseen with a fault":       foresee(put("", "x")),
		"foreseen without a change":   foresee(),
		"as it is":                    func(*Draft) {},
		"stopped":                     (*Draft).Stop,
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
	d := begin(t, path, s)
	d.Foresee(seq(put("/new", "y")), nil, func() bool { return true })
	_, err := d.Write(ctx, changes, WriteConfig{})
	require.ErrorIs(t, err, ErrVerify)
	nothingIn(t, filepath.Dir(path))
	require.NoError(t, begin(t, path, s).Discard())
	nothingIn(t, filepath.Dir(path))
}

// TestForeseenPanic checks that a panic of the changes reaches the caller of Write and leaves no
// file.
func TestForeseenPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	d := begin(t, path, open(t, copyOf(t, fixture(t))))
	changes := func(func(Change, error) bool) { panic("of the caller") }
	d.Foresee(changes, nil, func() bool { return true })
	require.PanicsWithValue(t, "of the caller", func() {
		_, _ = d.Write(context.Background(), changes, WriteConfig{})
	})
	nothingIn(t, filepath.Dir(path))
}

func requireSameFile(t *testing.T, want, got string) {
	t.Helper()
	a := must(os.ReadFile(want))(t)
	b := must(os.ReadFile(got))(t)
	require.True(t, bytes.Equal(a, b), "%s is not as %s", got, want)
}

// TestCopyThroughMemory checks both ways of copying a range.
func TestCopyThroughMemory(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	content := bytes.Repeat([]byte("0123456789abcde\n"), 100_000)
	require.NoError(t, os.WriteFile(from, content, 0o600))
	in := must(os.Open(from))(t)
	defer in.Close()
	for name, copyRange := range map[string]func(out, in *os.File, at, n int64) (int64, error){"kernel": copyRange,
		"memory": copyThrough} {
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
