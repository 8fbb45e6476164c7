package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/require"
)

// written returns a file with the content.
func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "before.db")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func read(t *testing.T, path string) *File {
	t.Helper()
	f, err := Read(t.Context(), path)
	require.NoError(t, err)
	return f
}

// newKey returns a key pair without a passphrase.
func newKey(t *testing.T) (public minisign.PublicKey, secret minisign.PrivateKey) {
	t.Helper()
	public, secret, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	return public, secret
}

func signed(t *testing.T, f *File, key minisign.PrivateKey, comment string) []byte {
	t.Helper()
	text, err := f.Sign(key, comment)
	require.NoError(t, err)
	return text
}

// check parses and checks a signature.
func check(f *File, key minisign.PublicKey, text []byte) (string, error) {
	s, err := Parse(text)
	if err != nil {
		return "", err
	}
	return f.Check(key, s)
}

// TestSameBytes checks that the same file, key and comment always give the same signature.
func TestSameBytes(t *testing.T) {
	_, key := newKey(t)
	path := written(t, "snapshot")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1700000000, 5)))
	f := read(t, path)
	require.Equal(t, "timestamp:1700000000\tfile:before.db\thashed", f.Comment(f.Time))
	require.Equal(t, signed(t, f, key, "x"), signed(t, read(t, path), key, "x"))
}

// TestEveryChangeIsFound checks that changing any bit of a file or its signature is an error, never
// a panic. Only the untrusted comment is unsigned and may change.
func TestEveryChangeIsFound(t *testing.T) {
	public, key := newKey(t)
	path := written(t, "a snapshot")
	f := read(t, path)
	text := signed(t, f, key, "for tuesday")
	comment, err := check(f, public, text)
	require.NoError(t, err)
	require.Equal(t, "for tuesday", comment)
	signedFrom := bytes.IndexByte(text, '\n') + 1
	for i := range text[signedFrom:] {
		for bit := range 8 {
			changed := bytes.Clone(text)
			changed[signedFrom+i] ^= 1 << bit
			_, err := check(f, public, changed)
			if err == nil { // unused base64 bits, or another line ending
				var was, is minisign.Signature
				require.NoError(t, was.UnmarshalText(text))
				require.NoError(t, is.UnmarshalText(changed))
				require.True(t, was.Equal(is), "byte %d", signedFrom+i)
			}
		}
		_, err := check(f, public, text[:signedFrom+i])
		require.True(t, err != nil || signedFrom+i >= len(text)-1, "cut at %d", signedFrom+i)
	}
	for _, content := range []string{"", "a snapshoT", "a snapshot\n", "a snapsho"} {
		_, err := check(read(t, written(t, content)), public, text)
		require.ErrorIs(t, err, ErrWrong, content)
	}
	other, _ := newKey(t)
	_, err = check(f, other, text)
	require.ErrorIs(t, err, ErrOtherKey)
	require.ErrorContains(t, err, KeyID(public.ID())+", not "+KeyID(other.ID()))
}

func TestLegacy(t *testing.T) {
	public, key := newKey(t)
	f := read(t, written(t, "x"))
	_, err := check(f, public, minisign.SignWithComments(key, []byte("x"), "a", "b"))
	require.ErrorIs(t, err, ErrLegacy)
}

func TestComments(t *testing.T) {
	_, key := newKey(t)
	f := read(t, written(t, "x"))
	for _, odd := range []string{"a\nb", "a\rb", "\x1b[2J", "\xff", strings.Repeat("a", maxComment+1)} {
		_, err := f.Sign(key, odd)
		require.ErrorIs(t, err, ErrComment, odd)
	}
	signed(t, f, key, strings.Repeat("a", maxComment))
	signed(t, f, key, "Grüße\tund mehr")
	odd := &File{Path: "/x/a\nb"}
	require.ErrorIs(t, CheckComment(odd.Comment(time.Time{})), ErrComment)
}

func TestRead(t *testing.T) {
	holes := written(t, "")
	require.NoError(t, os.Truncate(holes, 1<<40))
	_, sparse := Read(t.Context(), holes)
	require.ErrorContains(t, sparse, "no database has so many holes")
	_, err := Read(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Read(ctx, written(t, "x"))
	require.ErrorIs(t, err, context.Canceled)
}

// writes is a context whose first use writes to a file.
type writes struct {
	context.Context
	do func()
}

func (w *writes) Err() error {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Context.Err()
}

// TestChangedWhileSigned checks that a file that grows, shrinks or is written during the read is
// not signed.
func TestChangedWhileSigned(t *testing.T) {
	for what, change := range map[string]func(path string) error{
		"cut":   func(path string) error { return os.Truncate(path, 3) },
		"grown": func(path string) error { return os.Truncate(path, 100) },
		"written": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("a snapshoT"), 0o600),
				os.Chtimes(path, time.Time{}, time.Unix(1700000000, 0)))
		},
	} {
		path := written(t, "a snapshot")
		_, err := Read(&writes{t.Context(), func() { require.NoError(t, change(path)) }}, path)
		require.ErrorIs(t, err, ErrChanged, what)
	}
}

// weakKey has the passphrase "correct horse" with cheap key derivation; minisign accepts it too.
const weakKey = `untrusted comment: a key whose passphrase is cheap to try
RWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AgAAAAAAAAAAAAAEAAAAAKDrys50M4ETDmBoFRC1pDUAo9w61X44IQeFpqVfeefLSHjNpbzkIZznChzCUHsYumOMKULDYRAe4WXM4z2HbHhtiKvsHWxGUDKGtf0TKw+JXBKdBxGx/RZ8p7Al91SZ5N8IYqOFLD/U=
`

// TestKeys checks that keys are read, encrypted keys with a passphrase, and other files are
// refused.
func TestKeys(t *testing.T) {
	ask := func() (string, error) { return "", fmt.Errorf("asked") }
	const folder, id = "../../testdata/minisign/", "FCCBBD47A0F314F6"
	secret, err := os.ReadFile(folder + "backup.key")
	require.NoError(t, err)
	key, err := ReadSecret(t.Context(), folder+"backup.key", ask)
	require.NoError(t, err)
	require.Equal(t, id, KeyID(key.ID()))
	line := key.Public().(minisign.PublicKey).String()
	for _, name := range []string{line, folder + "backup.pub", written(t, line+"\r\n")} {
		public, err := ReadPublic(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, id, KeyID(public.ID()))
	}
	_, err = ReadPublic(t.Context(), folder+"backup.key")
	require.ErrorContains(t, err, "not a public key of minisign")
	for _, text := range []string{"", "x", line, string(secret[:100])} {
		_, err = ReadSecret(t.Context(), written(t, text), ask)
		require.ErrorContains(t, err, "not a secret key of minisign")
	}
	weak := written(t, weakKey)
	key, err = ReadSecret(t.Context(), weak, func() (string, error) { return "correct horse", nil })
	require.NoError(t, err)
	require.Equal(t, "DA6A8DC93BC69B37", KeyID(key.ID()))
	_, err = ReadSecret(t.Context(), weak, func() (string, error) { return "wrong", nil })
	require.ErrorContains(t, err, "wrong passphrase, or damaged")
	_, err = ReadSecret(t.Context(), weak, ask)
	require.ErrorContains(t, err, "asked")
	_, err = ReadFile(t.Context(), written(t, strings.Repeat("a", maxFile+1)))
	require.ErrorContains(t, err, "longer than")
}

// TestMinisign checks that minisign accepts our signatures and encrypted keys, and that this
// package accepts those of minisign.
func TestMinisign(t *testing.T) {
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("there is no minisign to compare with")
	}
	t.Chdir(t.TempDir())
	run := func(stdin string, args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "minisign %q: %s", args, out)
	}
	require.NoError(t, os.WriteFile("f", bytes.Repeat([]byte("0123456789abcdef"), 1<<16), 0o600))
	f := read(t, "f")
	for _, passphrase := range []string{"", "correct horse"} {
		id := fmt.Sprint(len(passphrase))
		key, secret := newKey(t)
		text, err := secret.MarshalText()
		if passphrase != "" { // takes a second and a GiB of memory
			text, err = minisign.EncryptKey(passphrase, secret)
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("ours"+id+".key", append(text, '\n'), 0o600))
		run(passphrase+"\n", "-S", "-m", "f", "-x", "theirs"+id, "-s", "ours"+id+".key", "-t", "hello")
		theirs, err := ReadFile(t.Context(), "theirs"+id)
		require.NoError(t, err)
		public, err := ReadPublic(t.Context(), key.String())
		require.NoError(t, err)
		comment, err := f.Check(public, theirs)
		require.NoError(t, err)
		require.Equal(t, "hello", comment)
	}
	run("", "-G", "-W", "-p", "their.pub", "-s", "their.key")
	key, err := ReadSecret(t.Context(), "their.key", nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("ours", signed(t, f, key, f.Comment(f.Time)), 0o600))
	run("", "-V", "-H", "-m", "f", "-x", "ours", "-p", "their.pub")
	run("", "-S", "-l", "-m", "f", "-x", "legacy", "-s", "their.key")
	_, err = ReadFile(t.Context(), "legacy")
	require.ErrorIs(t, err, ErrLegacy)
}

// FuzzParse checks that Check accepts only texts equivalent to the created signature.
func FuzzParse(f *testing.F) {
	path := filepath.Join(f.TempDir(), "before.db")
	require.NoError(f, os.WriteFile(path, []byte("a snapshot"), 0o600))
	public, key, err := minisign.GenerateKey(bytes.NewReader(make([]byte, 64))) // the same key in each run
	require.NoError(f, err)
	file, err := Read(f.Context(), path)
	require.NoError(f, err)
	text, err := file.Sign(key, "for tuesday")
	require.NoError(f, err)
	var made minisign.Signature
	require.NoError(f, made.UnmarshalText(text))
	f.Add(text)
	f.Add([]byte("untrusted comment: x\r\n" + strings.SplitAfterN(string(text), "\n", 2)[1]))
	f.Add(minisign.SignWithComments(key, []byte("a snapshot"), "a", "b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		comment, err := check(file, public, text)
		if err != nil {
			require.Less(t, len(err.Error()), 200)
			return
		}
		var other minisign.Signature
		require.NoError(t, other.UnmarshalText(text))
		require.True(t, made.Equal(other))
		require.Equal(t, "for tuesday", comment)
	})
}
