// Package signature signs files and checks their signatures, in the format of minisign
// (https://jedisct1.github.io/minisign): an Ed25519 signature of the BLAKE2b-512 of the file, and a
// second signature of the first and the trusted comment.
//
// Invariants, each with a test:
//
//   - The same file, key and comment give the same bytes: the result depends on no clock or random
//     number.
//   - A file is read once, from beginning to end, in bounded memory.
//   - minisign accepts signatures of Sign, and Check accepts signatures of minisign.
//   - Check accepts no other file, key, comment or signature, and no weak key that fits any file.
//     Legacy signatures, of the whole file instead of its hash, are refused.
package signature

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"

	"aead.dev/minisign"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

var (
	// ErrWrong reports a signature that does not match the file and key.
	ErrWrong = finding.WithHint(errors.New("the file, or the comment of its signature, differs from the signed one"),
		"do not restore it: with a good digest somebody has changed the file, with a wrong digest it may be "+
			"damaged; try another copy")
	// ErrOtherKey reports a signature by another key.
	ErrOtherKey = finding.WithHint(errors.New("signed with another key"),
		"give the public key of the signer, from a place that you trust; a key beside the file proves "+
			"nothing")
	// ErrLegacy reports a signature of the whole file instead of its hash.
	ErrLegacy = errors.New(`a legacy signature (algorithm "Ed")`)
	// ErrChanged reports a file that changes during the read.
	ErrChanged = errors.New("file changed while it was read")
	// ErrComment reports a comment that does not fit a line of a signature.
	ErrComment = errors.New("a comment is one line of printable text")
)

// maxComment is the maximum length of a trusted comment of minisign.
const maxComment = 8192 - 1

// File is a completely read file.
type File struct {
	Path   string
	Bytes  int64
	Time   time.Time // of the last modification
	SHA256 [sha256.Size]byte
	hashed *minisign.Reader
}

// Read reads the regular file at path. It ends with ctx.
func Read(ctx context.Context, path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for the writer of a pipe
	if err != nil {
		return nil, err
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	}
	if err := snapshot.Solid(before); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &File{Path: path, Bytes: before.Size(), Time: before.ModTime()}
	sum := sha256.New()
	f.hashed = minisign.NewReader(file)
	n, err := io.Copy(sum, &reader{ctx, f.hashed})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if after, err := file.Stat(); err != nil || n != before.Size() || after.Size() != n ||
		!after.ModTime().Equal(before.ModTime()) {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(ErrChanged, err))
	}
	f.SHA256 = sumOf(sum)
	return f, nil
}

func sumOf(h hash.Hash) (sum [sha256.Size]byte) {
	h.Sum(sum[:0])
	return sum
}

// reader reads until a context ends.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// Comment returns minisign's default trusted comment, with the caller's time.
func (f *File) Comment(at time.Time) string {
	return fmt.Sprintf("timestamp:%d\tfile:%s\thashed", at.Unix(), filepath.Base(f.Path))
}

// Sign returns a signature with a trusted comment: a line of text covered by the signature.
func (f *File) Sign(key minisign.PrivateKey, comment string) ([]byte, error) {
	if err := CheckComment(comment); err != nil {
		return nil, err
	}
	signature := f.hashed.SignWithComments(key, comment, "signature from key "+KeyID(key.ID()))
	if public, is := key.Public().(minisign.PublicKey); !is || !f.hashed.Verify(public, signature) {
		return nil, errors.New("the parts of the secret key do not belong together")
	}
	return signature, nil
}

// CheckComment returns ErrComment for an invalid trusted comment.
func CheckComment(text string) error {
	odd := func(r rune) bool { return r == unicode.ReplacementChar || r != '\t' && !unicode.IsPrint(r) }
	if len(text) > maxComment || strings.ContainsFunc(text, odd) {
		return fmt.Errorf("%w, up to %d bytes", ErrComment, maxComment)
	}
	return nil
}

// Signature is a parsed signature, not yet checked.
type Signature struct {
	text  []byte
	KeyID string // ID of the named key
	// comment is the trusted comment; Check returns it after successful verification.
	comment string
	points  [2][]byte // curve points of the file and comment signatures
}

// Parse parses a signature.
func Parse(text []byte) (*Signature, error) {
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return nil, fmt.Errorf("not a signature of minisign: %s", strings.TrimPrefix(err.Error(), "minisign: "))
	}
	if s.Algorithm != minisign.HashEdDSA {
		return nil, ErrLegacy
	}
	points := [2][]byte{s.Signature[:pointSize], s.CommentSignature[:pointSize]}
	return &Signature{text, KeyID(s.KeyID), s.TrustedComment, points}, nil
}

// Check returns the trusted comment of a valid signature of the file by key, or an error that wraps
// ErrOtherKey or ErrWrong.
func (f *File) Check(key minisign.PublicKey, s *Signature) (comment string, err error) {
	if id := KeyID(key.ID()); id != s.KeyID {
		return "", fmt.Errorf("%w: %s, not %s", ErrOtherKey, s.KeyID, id)
	}
	if err := cmp.Or(checkKey(key), checkPoint(s.points[0]), checkPoint(s.points[1])); err != nil {
		return "", fmt.Errorf("%w: %w", ErrWrong, err)
	}
	if !f.hashed.Verify(key, s.text) {
		return "", ErrWrong
	}
	return s.comment, nil
}
