package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// exercise calls everything in this package with the file at path and returns the errors, one for
// each call. out is the output of Write, or "" after an error.
func exercise(t testing.TB, path string) (errs []error, out string) {
	t.Helper()
	siftIsLive(t, path)
	ctx := context.Background()
	s, err := Open(ctx, path, Config{})
	if err != nil {
		return []error{err}, ""
	}
	defer func() { require.NoError(t, s.Close()) }()
	errs = readAll(t, s)
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	add(s.wrap(s.findAny(t)))
	out = filepath.Join(t.TempDir(), "out.db")
	c := put("/k/000005", "new")
	if rec, err := s.Get(ctx, c.Key); err == nil {
		c.Prior = modRevision(rec)
	}
	if _, err = Write(ctx, out, s, seq(c, put("/new", "x")), WriteConfig{}); err != nil {
		add(err)
		nothingIn(t, filepath.Dir(out))
		out = ""
	}
	for i, write := range []func(path string) (WriteResult, error){
		func(path string) (WriteResult, error) { return Write(ctx, path, s, seq(), WriteConfig{}) },
		func(path string) (WriteResult, error) {
			cfg := WriteConfig{Scrub: without("/k/00000"), Leases: []Lease{{12345, 60}}}
			return Write(ctx, path, s, seq(put("/new", "x")), cfg)
		},
	} {
		_, err = write(filepath.Join(t.TempDir(), fmt.Sprint(i)))
		add(err)
		require.Equal(t, out == "", err != nil, "one refuses what the other takes: %v", err)
	}
	return errs, out
}

// readWithoutDigest reads the whole file at path and verifies the file.
func readWithoutDigest(t testing.TB, path string) []error {
	t.Helper()
	s, err := Open(context.Background(), path, Config{SkipDigest: true})
	if err != nil {
		return []error{err}
	}
	defer func() { require.NoError(t, s.Close()) }()
	errs := append(readAll(t, s), findings(t, s)...)
	if _, err := s.Keys(context.Background()); err == nil {
		pastIsTheModel(t, s)
	}
	return errs
}

// readAll reads s in all ways, and returns the errors, one for each call.
func readAll(t testing.TB, s *Snapshot) (errs []error) {
	t.Helper()
	ctx := context.Background()
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for rec, err := range s.Live(ctx, nil) {
		if err == nil {
			_, err = s.Get(ctx, rec.Key)
		}
		add(err)
	}
	add(last(s.Records(ctx)))
	add(last(s.History(ctx, []byte("/k/000005"))))
	_, err := s.Status(ctx)
	add(err)
	_, err = s.Cluster(ctx)
	add(err)
	_, err = s.Leases(ctx)
	add(err)
	_, err = s.Note(ctx, "n")
	add(err)
	return errs
}

// findAny returns the first finding of Verify without the name of the file.
func (s *Snapshot) findAny(t testing.TB) error {
	for _, err := range findings(t, s) {
		return err
	}
	return nil
}

// bounded fails the test if fn takes long or allocates too much for a small file.
func bounded(t testing.TB, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	fn()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes allocated")
	require.Less(t, time.Since(start), time.Minute)
}

// refused requires that Write, and all other calls that meet the damage, fail with want and an
// error that names the file; one error has the text.
func refused(t testing.TB, path string, want error, texts ...string) {
	t.Helper()
	require.Empty(t, suspect(t, path, want, texts...), "Write takes it")
}

// suspect makes the checks of refused, but Write may accept the file. suspect returns the output of
// Write.
func suspect(t testing.TB, path string, want error, texts ...string) (out string) {
	t.Helper()
	bounded(t, func() {
		var errs []error
		errs, out = exercise(t, path)
		require.NotEmpty(t, errs)
		seen := false
		for _, err := range errs {
			require.ErrorContains(t, err, path)
			require.NotErrorIs(t, err, ErrChanged, "nobody changed the file")
			require.Less(t, len(err.Error()), 4096)
			if want != nil {
				require.ErrorIs(t, err, want)
			}
			for _, text := range texts {
				seen = seen || strings.Contains(err.Error(), text)
			}
		}
		require.True(t, seen || len(texts) == 0, "%v", errs)
	})
	return out
}

// TestNotASnapshot checks the errors for files of other formats.
func TestNotASnapshot(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	bigEndian := append([]byte(nil), fixture(t)...)
	copy(bigEndian[16:], []byte{0xed, 0x0c, 0xda, 0xed})
	copy(bigEndian[4096+16:], []byte{0xed, 0x0c, 0xda, 0xed})
	tests := []struct {
		path, text string
	}{
		{file("empty", ""), "it is empty"},
		{file("text", strings.Repeat("this is not a snapshot\n", 1000)), "it is text"},
		{file("short", "no\n"), "it is text"},
		{file("umlauts-cut", "x"+strings.Repeat("ä", 300)), "it is text"},
		{file("zeros", strings.Repeat("\x00", 1<<20)), "it is zeros where the first meta page should be"},
		{file("7z", "7z\xbc\xaf\x27\x1c"+strings.Repeat("x", 5000)), "it is compressed (7z); decompress it first"},
		{file("state.db", "SQLite format 3\x00"+strings.Repeat("\x01", 5000)), "it is an SQLite database"},
		{file("etcd", "\x7fELF"+strings.Repeat("\x01", 5000)), "it is a program (ELF)"},
		{file("pod.yaml", "apiVersion: v1\nkind: Pod\n"), "it is text (YAML)"},
		{file("pod.json", `{"kind":"Pod"}`), "it is text (JSON)"},
		{file("key", "-----BEGIN PRIVATE KEY-----\n"), "it is a PEM file"},
		{file("backup.age", "age-encryption.org/v1\n\x01\x02"), "it is encrypted with age"},
		{file("error", `<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`),
			"an XML document, such as the error of an object store"},
		{file("noise", strings.Repeat("\x01\xfe\x80", 5000)), "no bbolt magic number"},
		{file("xz", "\xfd7zXZ\x00"+strings.Repeat("x", 5000)), "it is compressed (xz); decompress it first"},
		{file("bz2", "BZh9"+strings.Repeat("x", 5000)), "it is compressed (bzip2); decompress it first"},
		{file("big-endian", string(bigEndian)), "big-endian"},
		{dir, "a directory without member"},
		{os.DevNull, "not a regular file"},
		{pipe, "not a regular file"}, // Open must not wait for a writer
	}
	for _, tt := range tests {
		t.Run(filepath.Base(tt.path), func(t *testing.T) {
			_, err := Open(context.Background(), tt.path, Config{})
			require.ErrorIs(t, err, ErrNotSnapshot)
			require.ErrorContains(t, err, tt.path)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// TestCannotBeOpened checks that errors of the file system are returned unchanged.
func TestCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "locked"), fixture(t), 0))
	for name, want := range map[string]error{"absent": os.ErrNotExist, "loop": unix.ELOOP,
		"locked/below": unix.ENOTDIR} {
		_, err := Open(context.Background(), filepath.Join(dir, name), Config{})
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, filepath.Join(dir, name))
	}
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	err := asNobody(t, func() error {
		_, err := Open(context.Background(), filepath.Join(dir, "locked"), Config{})
		return err
	})
	require.ErrorIs(t, err, os.ErrPermission)
}

// asNobody runs fn with the file access of a user without rights if the tests run as root.
func asNobody(t testing.TB, fn func() error) error {
	if os.Geteuid() != 0 {
		return fn()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(unix.SetfsuidRetUid(65534))(t)
	defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	return fn()
}

// TestTruncated cuts the file at every beginning and end of a structure.
func TestTruncated(t *testing.T) {
	b := fixture(t)
	want := modelOf(t, open(t, copyOf(t, b)))
	sizes := []int{0, 1, 15, 16, 79, 80, 511, 512, 4095, 4097, 8191}
	for at := 4096; at < len(b)-4096; at += 4096 {
		sizes = append(sizes, at, at+16, at+32, at+512+32)
	}
	for at := len(b) - 34; at < len(b); at++ {
		sizes = append(sizes, at)
	}
	for _, size := range sizes {
		path := copyOf(t, b[:size])
		if size == len(b)-32 { // this file looks like a database file without slack
			s := open(t, path)
			require.True(t, s.raw)
			require.NotEmpty(t, s.Warnings())
			require.Equal(t, want, modelOf(t, s))
			continue
		}
		errs, _ := exercise(t, path)
		require.Len(t, errs, 1, "%d bytes: it cannot even be opened", size)
		require.ErrorContains(t, errs[0], path)
		if size > 80 {
			require.ErrorIs(t, errs[0], ErrTruncated, "%d bytes", size)
		}
	}
	for _, more := range []int{1, 31, 32, 512, 4096} {
		errs, _ := exercise(t, copyOf(t, append(b[:len(b):len(b)], make([]byte, more)...)))
		require.Len(t, errs, 1, "%d bytes too many", more)
	}
}

// TestWrongDigest checks that Write publishes nothing after a change of one bit of a value, or of
// the digest. A caller without a digest check can read the file.
func TestWrongDigest(t *testing.T) {
	b := fixture(t)
	rec := must(open(t, copyOf(t, b)).Get(context.Background(), []byte("/registry/configmaps/default/updated")))(t)
	for name, at := range map[string]int{"digest": len(b) - 1, "value": bytes.Index(b, rec.Value)} {
		t.Run(name, func(t *testing.T) {
			c := append([]byte(nil), b...)
			c[at] ^= 1
			refused(t, copyOf(t, c), ErrDigest)
			s := must(Open(context.Background(), copyOf(t, c), Config{SkipDigest: true}))(t)
			defer s.Close()
			d := must(s.Digest(context.Background()))(t)
			require.Zero(t, d)
			write(t, s, WriteConfig{}, put("/new", "x"))
		})
	}
}
