package snapshot

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const (
	tarHeader   = 512                  // bytes of a header of tar
	memberHead  = 2 * bolt.MaxPageSize // bytes of a file in an archive that tell a database
	mostMembers = 1000                 // files of an archive that are looked at
	mostNamed   = 5                    // of them in an error
)

// isTar reports whether a file begins as an archive of tar.
func isTar(head []byte) bool {
	return len(head) == tarHeader && bytes.HasPrefix(head[257:], []byte("ustar"))
}

// isDatabase reports whether a file with these first bytes has a meta of bbolt.
func isDatabase(head []byte) bool {
	_, errs := bolt.Metas(head)
	return errs[0] == nil || errs[1] == nil
}

// members are the files of an archive, of which one is to be a database.
type members struct {
	kind       string // of the archive
	names      []string
	databases  []string
	compressed []string
}

// add adds a file by its first bytes.
func (m *members) add(name string, head []byte) (database bool, err error) {
	if m.names = append(m.names, name); len(m.names) > mostMembers {
		return false, fmt.Errorf("%w: a %s archive of more than %d files; extract the snapshot from it first", ErrNotSnapshot, m.kind, mostMembers)
	}
	if archive(head) != "" {
		m.compressed = append(m.compressed, name)
	}
	if !isDatabase(head) {
		return false, nil
	}
	if m.databases = append(m.databases, name); len(m.databases) > 1 {
		return false, fmt.Errorf("%w: a %s archive with several databases, %s; extract one of them", ErrNotSnapshot, m.kind, named(m.databases))
	}
	return true, nil
}

// none is the error for an archive without a database. Backups have compressed manifests beside the
// database, and no tool is known to compress the database within an archive.
func (m *members) none() error {
	err := fmt.Errorf("%w: a %s archive of %d files, none of which is a database: %s", ErrNotSnapshot, m.kind, len(m.names), named(m.names))
	if len(m.compressed) > 0 {
		err = fmt.Errorf("%w; if the snapshot is in a compressed one (%s), extract that first, and give it as it is", err, named(m.compressed))
	}
	return err
}

// named lists some names, as hostile as they are.
func named(names []string) (out string) {
	for i, name := range names[:min(len(names), mostNamed)] {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%.200q", name)
	}
	if len(names) > mostNamed {
		out += ", ..."
	}
	return out
}

// chosen is the one database among the files of a zip archive: RKE1 adds the state of the cluster.
func (p *packed) chosen(files []*zip.File) (*zip.File, error) {
	m := members{kind: "zip"}
	var found *zip.File
	for _, f := range files {
		if !f.Mode().IsRegular() || f.Flags&1 != 0 {
			m.names = append(m.names, f.Name)
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		head, err := io.ReadAll(io.LimitReader(r, memberHead))
		_ = r.Close()
		if err != nil {
			return nil, err
		}
		database, err := m.add(f.Name, head)
		if err != nil {
			return nil, err
		}
		if database {
			found = f
		}
	}
	if found == nil {
		return nil, m.none()
	}
	p.archive, p.member = "zip", found.Name
	return found, nil
}

// content is the database in a stream: the stream itself, or the one database of a tar archive.
func (p *packed) content(stream io.Reader) (io.Reader, error) {
	from := bufio.NewReaderSize(stream, memberHead)
	if head, _ := from.Peek(tarHeader); !isTar(head) { // the next read reports the error
		return from, nil
	}
	a := &tarred{members{kind: "tar"}, tar.NewReader(&inflow{from, p, 0})}
	name, head, err := a.next()
	if err == io.EOF {
		err = a.none()
	}
	if err != nil {
		return nil, err
	}
	p.archive, p.member = cmp.Or(map[string]string{"gzip": "tar.gz", "zstd": "tar.zst"}[p.format], "tar"), name
	return io.MultiReader(bytes.NewReader(head), a.Reader, a.rest()), nil
}

// tarred is a tar archive, such as a backup of OpenShift or of a charm.
type tarred struct {
	members
	*tar.Reader
}

// next finds the next database, and returns its first bytes, which are read.
func (a *tarred) next() (name string, head []byte, err error) {
	for {
		h, err := a.Next()
		if err != nil {
			return "", nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		head, err := io.ReadAll(io.LimitReader(a, memberHead))
		if err != nil {
			return "", nil, err
		}
		if database, err := a.add(h.Name, head); database || err != nil {
			return h.Name, head, err
		}
	}
}

// rest reads nothing: it ends when no other database follows.
func (a *tarred) rest() io.Reader {
	return readerFunc(func([]byte) (int, error) {
		_, _, err := a.next()
		return 0, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// inflow bounds what comes out of a compressed archive, files that nobody wants included.
type inflow struct {
	from io.Reader
	p    *packed
	n    int64
}

func (b *inflow) Read(to []byte) (int, error) {
	n, err := b.from.Read(to)
	b.n += int64(n)
	if over := b.p.within(b.n); over != nil {
		return n, over
	}
	return n, err
}

// within returns an error for a file of which so many bytes came that it is no snapshot.
func (p *packed) within(n int64) error {
	switch {
	case p.ctx.Err() != nil: // a few bytes read may expand to many
		return p.ctx.Err()
	case n > p.limit:
		return fmt.Errorf("%w: it expands to more than %d bytes", ErrExpand, p.limit)
	case n > freeExpand && (n-freeExpand)/maxExpandRatio > p.read:
		return fmt.Errorf("%w: %d bytes of it expand more than %d-fold, which no snapshot does", ErrExpand, p.read, maxExpandRatio)
	}
	return nil
}

// Begins returns an error ([ErrNotSnapshot], [ErrExpand]) for a stream whose first bytes, a
// mebibyte or all, show that it is no snapshot of at most limit bytes, before the rest is read.
func Begins(head []byte, limit int64) error {
	if compressionOf(bytes.NewReader(head)) != "" {
		return nil
	}
	return begins(head, limit)
}
