package expand

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const (
	tarHeader   = 512                  // bytes of a tar header
	memberHead  = 2 * bolt.MaxPageSize // bytes of a file in an archive that identify a database
	mostMembers = 1000                 // maximum number of files read in an archive
	mostNamed   = 5                    // maximum number of files named in an error
)

// isTar reports whether head is the beginning of a tar archive.
func isTar(head []byte) bool {
	return len(head) == tarHeader && bytes.HasPrefix(head[257:], []byte("ustar"))
}

// members holds the files of an archive. One file must be a database.
type members struct {
	kind       string // format of the archive
	names      []string
	databases  []string
	compressed []string
	log        bool // files of a write-ahead log
}

// add adds a file, and returns its first bytes if the file is a database.
func (m *members) add(name string, content io.Reader) (head []byte, err error) {
	if m.names = append(m.names, name); len(m.names) > mostMembers {
		return nil, fmt.Errorf("%w: a %s archive of more than %d files; extract the snapshot from it first",
			bolt.ErrNotBolt, m.kind, mostMembers)
	}
	m.log = m.log || strings.HasSuffix(name, ".wal")
	if head, err = io.ReadAll(io.LimitReader(content, memberHead)); err != nil {
		return nil, err
	}
	if archive(head) != "" {
		m.compressed = append(m.compressed, name)
	}
	if _, errs := bolt.Metas(head); errs[0] != nil && errs[1] != nil {
		return nil, nil
	}
	if m.databases = append(m.databases, name); len(m.databases) > 1 {
		return nil, fmt.Errorf("%w: a %s archive with several databases, %s; extract one of them",
			bolt.ErrNotBolt, m.kind, named(m.databases))
	}
	return head, nil
}

// noDatabase returns the error for an archive without a database. Backups have compressed manifests
// next to the database, and no known tool compresses the database within an archive.
func (m *members) noDatabase() error {
	err := fmt.Errorf("%w: a %s archive of %s, none of which is a database: %s",
		bolt.ErrNotBolt, m.kind, phrase.Count(len(m.names), "file"), named(m.names))
	if len(m.compressed) > 0 {
		err = fmt.Errorf("%w; if the snapshot is in a compressed one (%s), extract that first, and give it as it is",
			err, named(m.compressed))
	}
	return err
}

// named lists some names, quoted because names may be hostile.
func named(names []string) string {
	var quoted []string
	for _, name := range names[:min(len(names), mostNamed)] {
		quoted = append(quoted, fmt.Sprintf("%.200q", name))
	}
	if len(names) > mostNamed {
		quoted = append(quoted, "...")
	}
	return strings.Join(quoted, ", ")
}

// zipMember returns the only file of an archive, as made by k3s, or the only database among several
// files: RKE1 adds the state of the cluster.
func (p *packed) zipMember(all []*zip.File) (found *zip.File, err error) {
	files := slices.DeleteFunc(all, func(f *zip.File) bool { return f.Mode().IsDir() })
	switch len(files) {
	case 0:
		return nil, fmt.Errorf("%w: a zip archive of 0 files", bolt.ErrNotBolt)
	case 1:
		return files[0], nil
	}
	m := members{kind: "zip"}
	for _, f := range files {
		if !f.Mode().IsRegular() || f.Flags&1 != 0 {
			m.names = append(m.names, f.Name)
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		head, err := m.add(f.Name, r)
		_ = r.Close()
		if err != nil {
			return nil, err
		}
		if head != nil {
			found = f
		}
	}
	if found == nil {
		return nil, m.noDatabase()
	}
	p.archive, p.member, p.beside = "zip", found.Name, &m
	return found, nil
}

// content returns the database in a stream: the stream itself, or the only database of a tar
// archive.
func (p *packed) content(stream io.Reader) (io.Reader, error) {
	from := bufio.NewReaderSize(stream, memberHead)
	if head, _ := from.Peek(tarHeader); !isTar(head) { // the next read returns the error
		return from, nil
	}
	a := &tarred{members{kind: "tar"}, tar.NewReader(&inflow{from, p, 0})}
	name, head, err := a.next()
	if err == io.EOF {
		err = a.noDatabase()
	}
	if err != nil {
		return nil, err
	}
	p.archive, p.member = cmp.Or(map[string]string{"gzip": "tar.gz", "zstd": "tar.zst"}[p.format], "tar"), name
	p.beside = &a.members
	rest := readerFunc(func([]byte) (int, error) { // reads nothing, and ends if no other database follows
		_, _, err := a.next()
		return 0, err
	})
	return io.MultiReader(bytes.NewReader(head), a.Reader, rest), nil
}

// tarred is a tar archive, such as a backup of OpenShift or of a charm.
type tarred struct {
	members
	*tar.Reader
}

// next finds the next database and returns its first bytes. Reads continue after these bytes.
func (a *tarred) next() (name string, head []byte, err error) {
	for {
		h, err := a.Next()
		if err != nil {
			return "", nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if head, err := a.add(h.Name, a); head != nil || err != nil {
			return h.Name, head, err
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// inflow limits the expanded bytes of a compressed archive, including skipped files.
type inflow struct {
	from io.Reader
	p    *packed
	n    int64
}

func (b *inflow) Read(to []byte) (int, error) {
	n, err := b.from.Read(to)
	b.n += int64(n)
	if over := b.p.checkSize(b.n); over != nil {
		return n, over
	}
	return n, err
}

// format is a file format often given in place of a snapshot, identified by the bytes at an offset.
type format struct {
	at    int
	magic string
	name  string // as in "it is ..."
}

// packedFormats lists the formats of files that may contain a snapshot.
func packedFormats() []format {
	return []format{
		{0, "\x1f\x8b", "gzip"}, {0, "\x28\xb5\x2f\xfd", "zstd"}, {0, "PK\x03\x04", "zip"},
		{0, "PK\x05\x06", "zip"}, // without files
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

// archive returns the container format of compressed or archived input, or "".
func archive(b []byte) string { return formatOf(b, packedFormats()) }

// Foreign returns the error for a file without a meta (bolt.ErrNotBolt), or nil for an unknown
// format.
func Foreign(b []byte) error {
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
	return fmt.Errorf("%w: it is %s", bolt.ErrNotBolt, what)
}

// isText reports whether head, which may end within a character, is printable UTF-8.
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
