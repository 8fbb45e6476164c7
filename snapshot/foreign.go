package snapshot

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// A format of files that people give for a snapshot is known by the bytes at an offset.
type format struct {
	at    int
	magic string
	name  string // as in "it is ..."
}

// packedFormats are the formats of files that may hold a snapshot.
func packedFormats() []format {
	return []format{
		{0, "\x1f\x8b", "gzip"}, {0, "\x28\xb5\x2f\xfd", "zstd"}, {0, "PK\x03\x04", "zip"},
		{0, "PK\x05\x06", "zip"}, // of no files
		{0, "BZh", "bzip2"}, {0, "\xfd7zXZ\x00", "xz"}, {0, "7z\xbc\xaf\x27\x1c", "7z"},
		{0, "Rar!\x1a\x07", "rar"}, {0, "\x04\x22\x4d\x18", "lz4"}, {0, "\x1f\x9d", "compress"},
		{0, "LZIP", "lzip"},
	}
}

func foreignFormats() []format {
	return []format{
		{0, "SQLite format 3\x00", "an SQLite database; k3s and kine keep one where there is no etcd"},
		{0, "\x7fELF", "a program (ELF)"},
		{0, "age-encryption.org/", "encrypted with age; decrypt it first"},
		{0, "-----BEGIN AGE ENCRYPTED FILE", "encrypted with age; decrypt it first"},
		{0, "-----BEGIN PGP MESSAGE", "encrypted with PGP; decrypt it first"},
		{0, "Salted__", "encrypted with openssl; decrypt it first"},
		{0, "-----BEGIN ", "a PEM file: a certificate or a key"},
		{0, "%PDF-", "a PDF document"},
		{0, "version https://git-lfs", "a Git LFS pointer; fetch the file itself with \"git lfs pull\""},
		{0, "<?xml", "an XML document, such as the error of an object store"},
		{0, "<!DOCTYPE", "an HTML page"}, {0, "<html", "an HTML page"},
		{0, "apiVersion:", "text (YAML)"}, {0, "---", "text (YAML)"},
		{0, "{", "text (JSON)"}, {0, "[", "text (JSON)"},
	}
}

func formatOf(b []byte, formats []format) string {
	for _, f := range formats {
		if len(b) > f.at && bytes.HasPrefix(b[f.at:], []byte(f.magic)) {
			return f.name
		}
	}
	return ""
}

// archive names the container format of compressed or archived input, "" for none.
func archive(b []byte) string { return formatOf(b, packedFormats()) }

// foreign names the format of a file without a meta (ErrNotSnapshot), nil if it is not known.
func foreign(b []byte) error {
	head := b[:min(len(b), 512)]
	what := formatOf(head, foreignFormats())
	switch packed := archive(head); {
	case packed != "":
		what = fmt.Sprintf("compressed (%s); decompress it first", packed)
	case len(head) == 0:
		what = "empty"
	case what != "":
	case isText(head):
		what = "text"
	case len(bytes.Trim(head, "\x00")) == 0:
		what = "zeros where the first meta page should be"
	default:
		return nil
	}
	return fmt.Errorf("%w: it is %s", ErrNotSnapshot, what)
}

// isText reports whether head, which may end within a character, is UTF-8 that a person can read.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		cut := r == utf8.RuneError && n == 1 && !utf8.FullRune(head)
		if !cut && (r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r)) {
			return false
		}
		head = head[n:]
	}
	return true
}
