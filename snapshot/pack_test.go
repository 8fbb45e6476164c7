package snapshot

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// gzipped compresses the parts into a gzip member each.
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

// zstandard compresses the parts into a zstd frame each.
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

// member is a file of a zip archive.
type member struct {
	header  zip.FileHeader
	content []byte
}

func zipped(t testing.TB, members ...member) []byte {
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

// asK3s is the archive that k3s makes of a snapshot (pkg/etcd/snapshot.go, compressSnapshot).
func asK3s(t testing.TB, b []byte) []byte {
	t.Helper()
	return zipped(t, member{zip.FileHeader{Name: "on-demand-server-1-1700000000", Method: zip.Deflate, Modified: time.Now()}, b})
}

// compressed is b in each of the forms that are expanded.
func compressed(t testing.TB, b []byte) map[string][]byte {
	t.Helper()
	half := len(b) / 2
	skippable := append([]byte("\x53\x2a\x4d\x18\x03\x00\x00\x00abc"), zstandard(t, b)...)
	return map[string][]byte{
		"gzip": gzipped(t, b), "gzip of two members": gzipped(t, b[:half], nil, b[half:]),
		"zstd": zstandard(t, b), "zstd of two frames": zstandard(t, b[:half], b[half:]), "zstd after a skippable frame": skippable,
		"zip": asK3s(t, b), "zip, stored": zipped(t, member{zip.FileHeader{Name: "x"}, b}),
		"zip of a folder": zipped(t, member{zip.FileHeader{Name: "../up/"}, nil}, member{zip.FileHeader{Name: "../../etc/passwd", Method: zip.Deflate}, b}),
	}
}

// zeros is the snapshot with n zero bytes behind it, compressed as well as a format can without
// holding them.
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
