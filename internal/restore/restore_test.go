//go:build unix

package restore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

func TestMain(m *testing.M) {
	if code, isPart := sandbox.Main(nil, os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const recorded = "../../testdata/etcd/"

func open(t *testing.T, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func member(dir string) Member {
	return Member{Name: "default", PeerURLs: []string{"http://127.0.0.1:2380"}, DataDir: dir}
}

func options(members ...Member) Options {
	o := Options{Members: members, Token: "t", Bump: 1000}
	var parts []string
	for _, m := range members {
		parts = append(parts, m.Name+"="+m.PeerURLs[0])
	}
	o.Cluster = strings.Join(parts, ",")
	return o
}

// names returns the names in a folder.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A server on a restored directory has the announced numbers, for the file of each etcd version.
func TestServed(t *testing.T) {
	for _, version := range []string{"3.4", "3.5", "3.6", "3.7"} {
		dir := filepath.Join(t.TempDir(), "deep", "data")
		r, err := Run(t.Context(), open(t, recorded+"etcd-"+version+".db"), options(member(dir)))
		require.NoError(t, err)
		require.Equal(t, []string{"member"}, names(t, dir))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

		server := etcdtest.Start(t, dir)
		hash, err := server.Client.HashKV(t.Context(), server.URL, 0)
		require.NoError(t, err)
		require.Equal(t, r.HashKV, fmt.Sprint(hash.Hash))
		require.Equal(t, r.Revision, hash.Header.Revision)
		_, err = server.Client.Get(t.Context(), "a", clientv3.WithRev(r.Revision-1))
		require.ErrorContains(t, err, "compacted")
	}
}

// Without a bump, the revision stays.
func TestNoBump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, recorded+"etcd-3.7.db")
	before, err := s.Revision(t.Context())
	require.NoError(t, err)
	o := options(member(dir))
	o.Bump = 0
	r, err := Run(t.Context(), s, o)
	require.NoError(t, err)
	require.Equal(t, before, r.Revision)
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, recorded+"etcd-3.7.db")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config"), []byte("kept"), 0o600))
	_, err := Run(t.Context(), s, options(member(dir)))
	require.NoError(t, err)
	require.Equal(t, []string{"config", "member"}, names(t, dir))

	first, err := os.ReadFile(filepath.Join(dir, "member", "snap", "db"))
	require.NoError(t, err)
	o := options(member(dir))
	o.Bump = 2000
	_, err = Run(t.Context(), s, o)
	require.ErrorIs(t, err, ErrHasMember)
	require.Equal(t, []string{"config", "member"}, names(t, dir))

	o.MoveAside = true
	for _, moved := range []string{"member.old", "member.old-2"} {
		r, err := Run(t.Context(), s, o)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, moved), r.Members[0].MovedTo)
	}
	old, err := os.ReadFile(filepath.Join(dir, "member.old", "snap", "db"))
	require.NoError(t, err)
	require.Equal(t, first, old)
	require.Equal(t, []string{"config", "member", "member.old", "member.old-2"}, names(t, dir))
}

func TestRunningEtcdIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, recorded+"etcd-3.7.db")
	o := options(member(dir))
	_, err := Run(t.Context(), s, o)
	require.NoError(t, err)
	server := etcdtest.Start(t, dir)
	o.MoveAside = true
	_, err = Run(t.Context(), s, o)
	require.ErrorIs(t, err, ErrRunning)
	require.Equal(t, []string{"member"}, names(t, dir))
	_, err = server.Client.Put(t.Context(), "still", "there")
	require.NoError(t, err)
}

// Each refusal leaves the file system as it was.
func TestRefused(t *testing.T) {
	sound := recorded + "etcd-3.7.db"
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	content, err := os.ReadFile(sound)
	require.NoError(t, err)
	content[len(content)-1] ^= 1 // of the digest
	require.NoError(t, os.WriteFile(damaged, content, 0o600))
	cases := map[string]struct {
		path   string
		change func(t *testing.T, o *Options)
		want   error
	}{
		"digest": {damaged, func(*testing.T, *Options) {}, snapshot.ErrDigest},
		"left": {sound, func(t *testing.T, o *Options) {
			require.NoError(t, os.MkdirAll(filepath.Join(o.Members[0].DataDir, hiddenName), 0o700))
		}, ErrLeft},
		"log folder": {sound, func(t *testing.T, o *Options) { o.Members[0].WALDir = t.TempDir() }, ErrWALDir},
		"log inside": {sound, func(_ *testing.T, o *Options) {
			o.Members[0].WALDir = filepath.Join(o.Members[0].DataDir, "member", "wal")
		}, ErrWALInside},
		"second member": {sound, func(t *testing.T, o *Options) {
			other := filepath.Join(t.TempDir(), "other")
			require.NoError(t, os.MkdirAll(filepath.Join(other, "member"), 0o700))
			o.Members = append(o.Members, Member{Name: "b", PeerURLs: o.Members[0].PeerURLs, DataDir: other})
		}, ErrHasMember},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			o := options(member(filepath.Join(root, "data")))
			c.change(t, &o)
			before := fmt.Sprint(names(t, root))
			_, err := Run(t.Context(), open(t, c.path), o)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, before, fmt.Sprint(names(t, root)))
		})
	}
	o := options(member(filepath.Join(t.TempDir(), "data")))
	o.SkipDigest = true
	_, err = Run(t.Context(), open(t, damaged), o)
	require.NoError(t, err)
}

// An interrupted restore leaves nothing, and a folder of etcd's log may be elsewhere.
func TestInterrupted(t *testing.T) {
	root := t.TempDir()
	m := member(filepath.Join(root, "data"))
	m.WALDir = filepath.Join(root, "log")
	o := options(m)
	ctx, cancel := context.WithCancel(t.Context())
	o.Phase = func(name string) {
		if strings.HasPrefix(name, "checking") {
			cancel()
		}
	}
	s := open(t, recorded+"etcd-3.7.db")
	_, err := Run(ctx, s, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, names(t, root))

	o.Phase = nil
	_, err = Run(t.Context(), s, o)
	require.NoError(t, err)
	require.Equal(t, []string{"data", "log"}, names(t, root))
	require.Equal(t, []string{"snap"}, names(t, filepath.Join(root, "data", "member")))
}

// Members restored from one file have the same content, also from a compressed file.
func TestMembers(t *testing.T) {
	root := t.TempDir()
	var members []Member
	for i, name := range []string{"a", "b", "c"} {
		members = append(members, Member{Name: name, PeerURLs: []string{fmt.Sprintf("http://127.0.0.1:%d", 12380+i)},
			DataDir: filepath.Join(root, name)})
	}
	r, err := Run(t.Context(), open(t, "../../testdata/calico/before.db.gz"), options(members...))
	require.NoError(t, err)
	require.Len(t, r.Members, 3)
	for _, m := range members {
		got, err := open(t, filepath.Join(m.DataDir, "member", "snap", "db")).Restored(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, r.Revision, got.Revision)
		require.Equal(t, r.HashKV, fmt.Sprint(got.HashKV))
	}
}

// TestPublishUndone: if a member cannot appear, those before it disappear, and old data returns.
func TestPublishUndone(t *testing.T) {
	root := t.TempDir()
	old := filepath.Join(root, "a", "member")
	require.NoError(t, os.MkdirAll(old, 0o700))
	a, b := member(filepath.Join(root, "a")), member(filepath.Join(root, "b"))
	a.Name, b.Name, a.WALDir = "a", "b", filepath.Join(root, "log")
	b.PeerURLs = []string{"http://127.0.0.1:2381"}
	o := options(a, b)
	o.MoveAside = true
	o.Phase = func(name string) {
		if name == "checking "+b.DataDir { // then a running etcd appears
			db := filepath.Join(b.DataDir, "member", "snap", "db")
			require.NoError(t, os.MkdirAll(filepath.Dir(db), 0o700))
			require.NoError(t, os.WriteFile(db, nil, 0o600))
			f, err := os.Open(db)
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
		}
	}
	_, err := Run(t.Context(), open(t, recorded+"etcd-3.7.db"), o)
	require.ErrorIs(t, err, ErrRunning)
	require.Equal(t, []string{"a", "b"}, names(t, root))
	require.Equal(t, []string{"member"}, names(t, a.DataDir))
	require.Empty(t, names(t, old), "the old folder is back")
}

// A named pipe in place of the old database is moved aside without waiting for its writer.
func TestPipeForDatabase(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "member", "snap", "db"), 0o600))
	done := make(chan error, 1)
	go func() {
		p, err := Prepare(options(member(dir)))
		if err == nil {
			err = p.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorIs(t, err, ErrHasMember)
	case <-time.After(10 * time.Second):
		t.Fatal("the check waits for a writer")
	}
}
