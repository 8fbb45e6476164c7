package snapshot

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// tarOf packs files, given as alternating names and contents.
func tarOf(t testing.TB, files ...any) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "backup/", Typeflag: tar.TypeDir, Mode: 0o700}))
	for i := 0; i < len(files); i += 2 {
		content := files[i+1].([]byte)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: files[i].(string), Typeflag: tar.TypeReg,
			Size: int64(len(content)), Mode: 0o600}))
		must(w.Write(content))(t)
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "latest", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestArchives checks that Open finds the only database among other files, in any position.
func TestArchives(t *testing.T) {
	b := fixture(t)
	want := modelOf(t, open(t, copyOf(t, b)))
	state, resources := []byte(`{"desiredState":{}}`), gzipped(t, tarOf(t, "a.yaml", []byte("kind: Pod\n")))
	openShift := tarOf(t, "backup/static_kuberesources_2026.tar.gz", resources, "backup/snapshot_2026.db", b)
	raw := b[:len(b)-32]
	for name, packed := range map[string][]byte{
		"RKE1": zipped(t, archived{zip.FileHeader{Name: "backup/one"}, b},
			archived{zip.FileHeader{Name: "backup/one.rkestate"}, state}),
		"tar": openShift, "tar.gz": gzipped(t, openShift), "tar.zst": zstandard(t, openShift),
		"first":    gzipped(t, tarOf(t, "snapshot.db", b, "state", state)),
		"data dir": tarOf(t, "etcd/member/wal/0.wal", bytes.Repeat([]byte{0, 1}, 1<<20), "etcd/member/snap/db", raw),
	} {
		s, err := expanding(t, packed, Config{})
		require.NoError(t, err, name)
		require.Equal(t, want, modelOf(t, s), name)
		kind := map[string]string{"RKE1": "zip", "first": "tar.gz", "data dir": "tar"}
		require.Contains(t, s.Warnings()[0], "an archive ("+cmp.Or(kind[name], name)+"): took ", name)
		warnings := strings.Join(s.Warnings(), "\n")
		require.Equal(t, name == "data dir", strings.Contains(warnings, "log in the archive"), name)
		_, err = expanding(t, packed, Config{MaxExpand: int64(len(b)) - 40})
		require.ErrorIs(t, err, ErrExpand, name)
	}
	path := filepath.Join(t.TempDir(), "rke1.zip")
	packed := must(os.ReadFile("../testdata/reports/f2-rke1-two-files.zip"))(t)
	require.NoError(t, os.WriteFile(path, packed, 0o600))
	require.Contains(t, open(t, path).Warnings()[0], `took "backup/c-abcde-rl-xyz12_2026-01-01T00:00:00Z"`)
}

// TestArchivesRefused checks that archives without exactly one database cause an error, and that no
// archive fills memory or disk.
func TestArchivesRefused(t *testing.T) {
	b := fixture(t)
	text := []byte("kind: Pod\n")
	var many []any
	for i := range 1001 {
		many = append(many, fmt.Sprint(i), text)
	}
	for name, tt := range map[string]struct {
		packed []byte
		is     error
		text   string
	}{
		"none": {tarOf(t, "a", text, "b\x1b[2J", text), ErrNotSnapshot,
			`a tar archive of 2 files, none of which is a database: "a", "b\x1b[2J"`},
		"no file": {tarOf(t), ErrNotSnapshot, "a tar archive of 0 files"},
		"zip of none": {zipped(t, archived{zip.FileHeader{Name: "a"}, text}, archived{zip.FileHeader{Name: "b"}, text}),
			ErrNotSnapshot, "a zip archive of 2 files, none of which"},
		"two": {gzipped(t, tarOf(t, "a", b, "x", text, "b", b)), ErrNotSnapshot,
			`a tar archive with several databases, "a", "b"; extract one of them`},
		"many":         {tarOf(t, many...), ErrNotSnapshot, "a tar archive of more than 1000 files"},
		"cut":          {tarOf(t, "a", text, "b", b)[:4096], ErrTruncated, "its tar stream has no end"},
		"cut in gzip":  {gzipped(t, tarOf(t, "b", b)[:9000]), ErrTruncated, "its gzip stream has no end"},
		"bomb in gzip": {gzipped(t, tarOf(t, "zeros", make([]byte, 200<<20), "b", b)), ErrExpand, "more than 200-fold"},
		"twice": {tarOf(t, "a.gz", gzipped(t, b), "b", text), ErrNotSnapshot,
			`: "a.gz", "b"; if the snapshot is in a compressed one ("a.gz"), extract that first`},
		"zip twice": {zipped(t, archived{zip.FileHeader{Name: "a"}, text},
			archived{zip.FileHeader{Name: "b.zst"}, zstandard(t, b)}), ErrNotSnapshot, `("b.zst"), extract`},
	} {
		_, err := expanding(t, tt.packed, Config{})
		require.ErrorIs(t, err, tt.is, name)
		require.ErrorContains(t, err, tt.text, name)
	}
}

// TestSparse checks that a file of holes causes an error at once, regardless of its metas.
func TestSparse(t *testing.T) {
	for _, head := range [][]byte{nil, fixture(t)[:8192]} {
		path := filepath.Join(t.TempDir(), "sparse.db")
		require.NoError(t, os.WriteFile(path, head, 0o600))
		require.NoError(t, os.Truncate(path, 1<<40))
		_, err := Open(t.Context(), path, Config{})
		require.ErrorIs(t, err, ErrNotSnapshot)
		require.ErrorContains(t, err, "it has 1099511627776 bytes, and ")
	}
}

// TestBegins checks that the first bytes of a stream exclude other formats.
func TestBegins(t *testing.T) {
	b := fixture(t)
	for _, head := range [][]byte{b, gzipped(t, b), tarOf(t, "a", b), zipped(t)} {
		require.NoError(t, Begins(head[:min(len(head), 1<<20)], 1<<30))
	}
	require.ErrorIs(t, Begins(make([]byte, 1<<20), 1<<30), ErrNotSnapshot)
	require.ErrorIs(t, Begins(b, 100), ErrExpand)
}

// gzipped compresses each part into a gzip member.
func gzipped(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&out)
		must(w.Write(part))(t)
		require.NoError(t, w.Close())
	}
	return out.Bytes()
}

// zstandard compresses each part into a zstd frame.
func zstandard(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	w := must(zstd.NewWriter(nil))(t)
	defer w.Close()
	var out []byte
	for _, part := range parts {
		out = append(out, w.EncodeAll(part, nil)...)
	}
	return out
}

// archived is a file of a zip archive.
type archived struct {
	header  zip.FileHeader
	content []byte
}

func zipped(t testing.TB, members ...archived) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f := must(w.CreateHeader(&m.header))(t)
		must(f.Write(m.content))(t)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// asK3s returns a snapshot in an archive of k3s (pkg/etcd/snapshot.go, compressSnapshot).
func asK3s(t testing.TB, b []byte) []byte {
	t.Helper()
	return zipped(t, archived{zip.FileHeader{Name: "on-demand-server-1-1700000000", Method: zip.Deflate,
		Modified: time.Now()}, b})
}

// compressed returns b in each of the expanded formats.
func compressed(t testing.TB, b []byte) map[string][]byte {
	t.Helper()
	half := len(b) / 2
	skippable := append([]byte("\x53\x2a\x4d\x18\x03\x00\x00\x00abc"), zstandard(t, b)...)
	return map[string][]byte{
		"gzip": gzipped(t, b), "gzip of two members": gzipped(t, b[:half], nil, b[half:]),
		"zstd": zstandard(t, b), "zstd of two frames": zstandard(t, b[:half], b[half:]),
		"zstd after a skippable frame": skippable,
		"zip":                          asK3s(t, b), "zip, stored": zipped(t, archived{zip.FileHeader{Name: "x"}, b}),
		"zip of a folder": zipped(t, archived{zip.FileHeader{Name: "../up/"}, nil},
			archived{zip.FileHeader{Name: "../../etc/passwd", Method: zip.Deflate}, b}),
	}
}

// zeros returns the snapshot followed by n zero bytes, compressed as well as the format allows. The
// zeros need no memory.
func zeros(t testing.TB, format string, n int64) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var end func() error
	switch format {
	case "gzip":
		z := must(gzip.NewWriterLevel(&out, flate.BestCompression))(t)
		w, end = z, z.Close
	case "zstd":
		z := must(zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)))(t)
		w, end = z, z.Close
	}
	must(w.Write(fixture(t)))(t)
	block := make([]byte, 1<<20)
	for ; n > 0; n -= int64(len(block)) {
		must(w.Write(block))(t)
	}
	require.NoError(t, end())
	return out.Bytes()
}
