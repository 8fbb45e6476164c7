package snapshot

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// expanding opens a compressed file and requires that tests do not change the file.
func expanding(t testing.TB, b []byte, cfg Config) (*Snapshot, error) {
	t.Helper()
	if cfg.ScratchDir == "" {
		cfg.ScratchDir = t.TempDir()
	}
	t.Cleanup(func() { nothingIn(t, cfg.ScratchDir) })
	s, err := Open(context.Background(), copyOf(t, b), cfg)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

// TestCompressed checks that a compressed file and the expanded file read the same, except for the
// digest of the whole file, and that Write gives the same output.
func TestCompressed(t *testing.T) {
	b := fixture(t)
	plain := open(t, copyOf(t, b))
	want := must(plain.Status(context.Background()))(t)
	_, wrote := write(t, plain, WriteConfig{}, put("/new", "x"))
	for name, packed := range compressed(t, b) {
		t.Run(name, func(t *testing.T) {
			s := must(expanding(t, packed, Config{}))(t)
			st := must(s.Status(context.Background()))(t)
			require.Equal(t, strings.TrimRight(strings.Fields(name)[0], ","), st.Compression)
			require.Equal(t, s.Compression(), st.Compression)
			require.Equal(t, []any{s.Path(), int64(len(packed)), int64(len(b)),
				fmt.Sprintf("%x", sha256.Sum256(packed)), "ok"},
				[]any{st.Path, st.Bytes, st.ExpandedBytes, st.SHA256, st.Digest})
			require.Equal(t, st.Bytes, s.Size())
			require.Equal(t, []string{fmt.Sprintf("compressed with %s: expanded to %d bytes in a temporary file",
				st.Compression, len(b))}, s.Warnings())
			st.Path, st.Bytes, st.ExpandedBytes, st.SHA256, st.Compression, st.Warnings = want.Path, want.Bytes, 0,
				want.SHA256, "", nil
			require.Equal(t, want, st)
			d := must(s.Digest(context.Background()))(t)
			require.Equal(t, sha256.Sum256(imageOf(b)), d.Image)
			require.Equal(t, modelOf(t, plain), modelOf(t, s))
			require.Empty(t, findings(t, s))

			path, res := write(t, s, WriteConfig{}, put("/new", "x"))
			res.Path = wrote.Path
			require.Equal(t, wrote, res)
			sound(t, path)
			path, res = write(t, s, WriteConfig{})
			require.Zero(t, res.Appended)
			require.Equal(t, sha256.Sum256(b), sumOf(t, path), "the expanded file, byte for byte")
		})
	}
}

// TestCompressedRaw checks that a database file may have highly compressible space after its image.
func TestCompressedRaw(t *testing.T) {
	raw := append(imageOf(fixture(t)), make([]byte, 48<<20)...)
	for _, packed := range [][]byte{gzipped(t, raw), zstandard(t, raw), asK3s(t, raw)} {
		s := must(expanding(t, packed, Config{}))(t)
		require.True(t, s.raw)
		require.Len(t, s.Warnings(), 3)
		require.Equal(t, modelOf(t, open(t, copyOf(t, fixture(t)))), modelOf(t, s))
	}
}

// TestCompressedDigest checks that the digest of the expanded file is checked, and that truncated
// output of other tools is reported.
func TestCompressedDigest(t *testing.T) {
	b := append([]byte(nil), fixture(t)...)
	b[len(b)-1] ^= 1
	for _, packed := range compressed(t, b) {
		s := must(expanding(t, packed, Config{}))(t)
		_, err := s.Digest(context.Background())
		require.ErrorIs(t, err, ErrDigest)
		require.ErrorContains(t, err, s.Path())
		s = must(expanding(t, packed, Config{SkipDigest: true}))(t)
		d := must(s.Digest(context.Background()))(t)
		require.Zero(t, d)
	}
	s, err := expanding(t, gzipped(t, b[:len(b)-5000]), Config{})
	require.ErrorIs(t, err, ErrTruncated)
	require.Nil(t, s)
}

// TestCompressedDamage checks that a file cut anywhere is truncated, or gives the right answer, and
// that a file with a flipped bit is damaged, or gives the right answer; the error names the path,
// and no scratch file is left.
func TestCompressedDamage(t *testing.T) {
	b := fixture(t)
	want := modelOf(t, open(t, copyOf(t, b)))
	dir := t.TempDir()
	path := filepath.Join(dir, "in")
	r := rand.New(rand.NewPCG(1, 3))
	for name, packed := range compressed(t, b) {
		for range 60 {
			n := r.IntN(len(packed))
			cut, flipped := packed[:n], bytes.Clone(packed)
			flipped[n] ^= 1 << r.IntN(8)
			for i, damaged := range [][]byte{cut, flipped} {
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
				s, err := Open(context.Background(), path, Config{ScratchDir: dir})
				if err == nil {
					if _, err = s.Digest(context.Background()); err == nil {
						require.Equal(t, want, modelOf(t, s), name)
					}
					require.NoError(t, s.Close())
				}
				if err == nil {
					continue
				}
				require.ErrorContains(t, err, path)
				if isAny := errors.Is(err, ErrTruncated) || errors.Is(err, ErrNotSnapshot); i == 0 {
					require.True(t, isAny, "%s cut at %d: %v", name, n, err)
				} else {
					require.True(t, isAny || errors.Is(err, ErrDamaged) || errors.Is(err, ErrDigest) ||
						errors.Is(err, ErrExpand), "%s flipped at %d: %v", name, n, err)
				}
			}
		}
	}
	left := must(os.ReadDir(dir))(t)
	require.Len(t, left, 1)
}

// TestCompressedRefused checks that an archive without exactly one snapshot is an error that
// describes the content.
func TestCompressedRefused(t *testing.T) {
	b := fixture(t)
	encrypted := asK3s(t, b)
	for _, at := range []int{6, bytes.Index(encrypted, []byte("PK\x01\x02")) + 8} {
		encrypted[at] |= 1
	}
	lzma := bytes.Clone(asK3s(t, b))
	for _, at := range []int{8, bytes.Index(lzma, []byte("PK\x01\x02")) + 10} {
		lzma[at] = 14
	}
	link := archived{zip.FileHeader{Name: "link"}, []byte("/etc/passwd")}
	link.header.SetMode(fs.ModeSymlink | 0o777)
	one := archived{zip.FileHeader{Name: "a"}, b}
	many := make([]archived, 40_000)
	for i := range many {
		many[i].header.Name = fmt.Sprint(i)
	}
	text := bytes.Repeat([]byte("no snapshot "), 1000)
	for name, tt := range map[string]struct {
		packed []byte
		is     error
		text   string
	}{
		"two files": {zipped(t, one, one), ErrNotSnapshot,
			"a zip archive with several databases, \"a\", \"a\"; extract one of them"},
		"no file":       {append([]byte("PK\x03\x04"), zipped(t)...), ErrNotSnapshot, "a zip archive of 0 files"},
		"empty zip":     {zipped(t), ErrNotSnapshot, "a zip archive of 0 files"},
		"cut empty zip": {zipped(t)[:20], ErrTruncated, "its zip directory, which comes last"},
		"cut zip":       {asK3s(t, b)[:2000], ErrTruncated, "its zip directory, which comes last"},
		"a folder alone": {zipped(t, archived{zip.FileHeader{Name: "a/"}, nil}), ErrNotSnapshot,
			"a zip archive of 0 files"},
		"many files":   {zipped(t, many...), ErrNotSnapshot, "its zip directory is too long for one file"},
		"a link":       {zipped(t, link), ErrNotSnapshot, "not a regular file"},
		"encrypted":    {encrypted, ErrNotSnapshot, "an encrypted zip archive; decrypt it first"},
		"lzma":         {lzma, ErrNotSnapshot, "compression method 14"},
		"text in gzip": {gzipped(t, text), ErrNotSnapshot, "what it expands to: not an etcd snapshot: it is text"},
		"text in zstd": {zstandard(t, text), ErrNotSnapshot, "it is text"},
		"text in zip":  {asK3s(t, text), ErrNotSnapshot, "it is text"},
		"nothing":      {gzipped(t, nil), ErrNotSnapshot, "it is empty"},
		"twice": {gzipped(t, zstandard(t, b)), ErrNotSnapshot,
			"it is compressed twice (zstd within); expand it once first"},
		"more follows": {append(gzipped(t, b), "more"...), ErrTruncated, "its gzip stream has no end"},
		"much follows": {append(gzipped(t, b), "more and more"...), ErrDamaged, "gzip: invalid header"},
		"wrong checksum": {append(gzipped(t, b)[:len(gzipped(t, b))-8], make([]byte, 8)...), ErrDamaged,
			"gzip: invalid checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := expanding(t, tt.packed, Config{})
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.text)
			require.ErrorContains(t, err, "in.db")
		})
	}
}

// TestBomb checks that a file made to fill the disk ends early, by the limit or by the ratio.
func TestBomb(t *testing.T) {
	for _, format := range []string{"gzip", "zstd"} {
		packed := zeros(t, format, 400<<20)
		_, err := expanding(t, packed, Config{})
		require.ErrorIs(t, err, ErrExpand)
		require.ErrorContains(t, err, "expand more than 200-fold")
		_, err = expanding(t, packed, Config{MaxExpand: 1 << 20})
		require.ErrorIs(t, err, ErrExpand)
		require.ErrorContains(t, err, "more than 1048576 bytes")
	}
	b := fixture(t)
	for name, packed := range compressed(t, b) {
		_, err := expanding(t, packed, Config{MaxExpand: int64(len(b))})
		require.NoError(t, err, name)
		_, err = expanding(t, packed, Config{MaxExpand: int64(len(b)) - 1})
		require.ErrorIs(t, err, ErrExpand, name)
		require.ErrorContains(t, err, fmt.Sprint(len(b)-1))
	}
	claims := bytes.Clone(b) // a database that claims to be large
	for _, at := range []int{0, 4096} {
		m := claims[at+bolt.HeaderSize:]
		put64(m[40:], 1<<40)
		put64(m[56:], bolt.MetaSum(m))
	}
	_, err := expanding(t, gzipped(t, claims), Config{})
	require.ErrorIs(t, err, ErrExpand)
	require.ErrorContains(t, err, "it says that it expands to 1099511627776 pages of 4096 bytes, the limit is "+
		"17179869184 bytes")
}

// TestZstdWindow checks that a stream with a larger window than the zstd tool allows is an error.
func TestZstdWindow(t *testing.T) {
	frame := []byte("\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00") // window descriptor 0xf8: 2^41 bytes
	_, err := expanding(t, frame, Config{})
	require.ErrorIs(t, err, ErrExpand)
	require.ErrorContains(t, err, "zstd -d --long=31")
}

// TestNoScratch checks that the error names the folder in which no scratch file can be made.
func TestNoScratch(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	_, err := Open(context.Background(), copyOf(t, gzipped(t, fixture(t))), Config{ScratchDir: absent})
	require.ErrorIs(t, err, ErrScratch)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, absent)
	t.Setenv("TMPDIR", absent)
	_, err = Open(context.Background(), copyOf(t, gzipped(t, fixture(t))), Config{})
	require.ErrorIs(t, err, ErrScratch)
	require.ErrorContains(t, err, absent)
}

// TestExpandCancelled checks that Open ends with its context.
func TestExpandCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, b := range compressed(t, fixture(t)) {
		_, err := Open(ctx, copyOf(t, b), Config{ScratchDir: t.TempDir()})
		require.ErrorIs(t, err, context.Canceled)
	}
}

// TestCompressedChanged checks that the compressed file must not change, even after the expansion.
func TestCompressedChanged(t *testing.T) {
	path := victim(t, gzipped(t, fixture(t)))
	s := open(t, path)
	require.NoError(t, os.WriteFile(path, gzipped(t, built(t, "put /a x")), 0o600))
	fails(t, s, seq(put("/new", "x")), ErrChanged)
}

// FuzzCompressed checks that Open returns an error that names the file, or the expanded content of
// a supported format, for any bytes.
func FuzzCompressed(f *testing.F) {
	b := fixture(f)
	for _, packed := range compressed(f, b) {
		f.Add(packed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, packed []byte) {
		file := must(os.CreateTemp(dir, "in"))(t)
		defer os.Remove(file.Name())
		defer file.Close()
		must(file.Write(packed))(t)
		s, err := Open(context.Background(), file.Name(), Config{MaxExpand: 1 << 20, ScratchDir: dir})
		if err != nil {
			require.ErrorContains(t, err, file.Name())
			return
		}
		require.LessOrEqual(t, len(s.data), 1<<20)
		require.NoError(t, s.Close())
	})
}

// TestCompressedTools checks the output of the usual tools for a real server's snapshot, if
// installed.
func TestCompressedTools(t *testing.T) {
	in := etcdtest.Build(t, "put /a x\nput /b size=300000\ndel /a")
	want := modelOf(t, open(t, in))
	for tool, args := range map[string][]string{"gzip": {"-k", in}, "zstd": {"-q", "-19", "--long=27", in},
		"zip": {"-q", in + ".zip", in}} {
		if !ran(t, tool, args...) {
			continue
		}
		path := in + map[string]string{"gzip": ".gz", "zstd": ".zst", "zip": ".zip"}[tool]
		s := open(t, path)
		require.Equal(t, tool, s.Compression())
		require.Equal(t, want, modelOf(t, s))
	}
}

// ran runs a tool, and returns false if the tool is not installed.
func ran(t testing.TB, tool string, args ...string) bool {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		return false
	}
	out, err := exec.Command(tool, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return true
}
