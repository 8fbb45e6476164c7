package bolt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// Writer lays out new pages and writes each to its final place. Old pages stay as they are.
type Writer struct {
	Out      io.WriterAt
	PageSize int    // bytes
	Next     uint64 // number of the next page

	buf []byte // pages not yet written; they end before page Next
}

// flushSize is how many bytes of pages are gathered before a write.
const flushSize = 1 << 20

// Page appends a page and returns its number.
func (w *Writer) Page(flags uint16, elems []Element) (uint64, error) {
	size := HeaderSize
	for i := range elems {
		size += ElementSize + len(elems[i].Key) + len(elems[i].Value)
	}
	n := (size + w.PageSize - 1) / w.PageSize
	if len(elems) > math.MaxUint16 || uint64(n) > math.MaxUint32 {
		return 0, fmt.Errorf("a page of %d elements and %d bytes cannot be written", len(elems), size)
	}
	if len(w.buf) > 0 && len(w.buf)+n*w.PageSize > flushSize {
		if err := w.Flush(); err != nil {
			return 0, err
		}
	}
	at := len(w.buf)
	w.buf = append(w.buf, make([]byte, n*w.PageSize)...)
	fill(w.buf[at:], w.Next, flags, n, elems)
	id := w.Next
	w.Next += uint64(n)
	return id, nil
}

// fill writes header, elements, keys and values over the zeroed p.
func fill(p []byte, id uint64, flags uint16, pages int, elems []Element) {
	le.PutUint64(p, id)
	le.PutUint16(p[8:], flags)
	le.PutUint16(p[10:], uint16(len(elems)))
	le.PutUint32(p[12:], uint32(pages-1))
	data := HeaderSize + len(elems)*ElementSize
	for i, el := range elems {
		at := HeaderSize + i*ElementSize
		e := p[at:]
		if flags == FlagLeaf {
			le.PutUint32(e, el.Flags)
			le.PutUint32(e[4:], uint32(data-at))
			le.PutUint32(e[8:], uint32(len(el.Key)))
			le.PutUint32(e[12:], uint32(len(el.Value)))
		} else {
			le.PutUint32(e, uint32(data-at))
			le.PutUint32(e[4:], uint32(len(el.Key)))
			le.PutUint64(e[8:], el.Child)
		}
		data += copy(p[data:], el.Key)
		data += copy(p[data:], el.Value)
	}
}

// Flush writes the gathered pages.
func (w *Writer) Flush() error {
	first := int64(w.Next)*int64(w.PageSize) - int64(len(w.buf))
	_, err := w.Out.WriteAt(w.buf, first)
	w.buf = w.buf[:0]
	return err
}

// Source is a bucket to be written. Entries yields its elements in key order.
type Source struct {
	Name     string
	Sequence uint64
	Entries  iter.Seq2[Element, error]
	Paged    bool // never inline: a file has four pages at least
}

// inlineShare is the part of a page that an inline bucket takes at most (bucket.go,
// maxInlineBucketSize).
const inlineShare = 4

// Bucket writes the pages of src and returns the element of the root bucket for it.
func (w *Writer) Bucket(src Source) (Element, error) {
	l := leaves{w: w, size: HeaderSize}
	if err := stream.Each(src.Entries, l.add); err != nil {
		return Element{}, err
	}
	b := Bucket{Name: src.Name, Sequence: src.Sequence}
	if len(l.done) == 0 && l.size <= w.PageSize/inlineShare && !src.Paged {
		b.Inline = make(Page, l.size)
		fill(b.Inline, 0, FlagLeaf, 1, l.cur)
		return b.element(), nil
	}
	var err error
	b.Root, err = l.tree()
	return b.element(), err
}

// element is the element of the root bucket for b.
func (b *Bucket) element() Element {
	value := le.AppendUint64(le.AppendUint64(nil, b.Root), b.Sequence)
	return Element{Flags: FlagBucket, Key: []byte(b.Name), Value: append(value, b.Inline...)}
}

// Root writes the root bucket and returns its page: the buckets of db, which renewed ones replace
// or join by name.
func (w *Writer) Root(db *DB, renewed []Element) (uint64, error) {
	buckets := map[string]Element{}
	for i := range db.Buckets {
		buckets[db.Buckets[i].Name] = db.Buckets[i].element()
	}
	for _, el := range renewed {
		buckets[string(el.Key)] = el
	}
	l := leaves{w: w}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		if err := l.add(buckets[name]); err != nil {
			return 0, err
		}
	}
	return l.tree()
}

// Create writes a database of new pages alone: the buckets of sources, which are sorted by name,
// with page size, sequence and transaction of m. It returns the meta of the file.
func Create(out io.WriterAt, m Meta, sources []Source) (Meta, error) {
	w := &Writer{Out: out, PageSize: m.PageSize, Next: 2}
	buckets := make([]Element, len(sources))
	var err error
	for i, src := range sources {
		if buckets[i], err = w.Bucket(src); err != nil {
			return Meta{}, err
		}
	}
	if m.Root, err = w.Root(&DB{}, buckets); err != nil {
		return Meta{}, err
	}
	m.Freelist, m.HighWater = NoFreelist, w.Next
	if err := w.Flush(); err != nil {
		return Meta{}, err
	}
	_, err = out.WriteAt(m.Pages(), 0)
	return m, err
}

// Append writes entries, which sort after all of b, to leaves of their own, and the right edge of
// its tree anew. It returns the element of the root bucket for b, without a value if there are no
// entries. Replaced pages become free. The entries of an inline bucket are written before.
func (w *Writer) Append(
	ctx context.Context, db *DB, b *Bucket, entries iter.Seq2[Element, error],
) (Element, error) {
	l := leaves{w: w}
	err := stream.Each(entries, func(el Element) error {
		if len(l.cur) == 0 && b.Root == 0 {
			if err := stream.Each(db.Entries(ctx, b), l.add); err != nil {
				return err
			}
		}
		return l.add(el)
	})
	if err != nil || len(l.cur) == 0 {
		return Element{}, err
	}
	err = l.flush()
	if err == nil && b.Root != 0 {
		l.done, err = w.edge(db, b.Root, l.done)
	}
	if err != nil {
		return Element{}, err
	}
	after := Bucket{Name: b.Name, Sequence: b.Sequence}
	after.Root, err = w.above(l.done)
	return after.element(), err
}

// edge puts kids behind the tree of page id and returns the pages that take its place.
func (w *Writer) edge(db *DB, id uint64, kids []Element) ([]Element, error) {
	p, err := db.Page(id)
	if err != nil {
		return nil, err
	}
	elems := p.Elements()
	switch n := len(elems) - 1; {
	case n < 0: // the root leaf of an empty bucket has nothing to keep
		return kids, nil
	case p.IsLeaf():
		return append([]Element{{Key: elems[0].Key, Child: id}}, kids...), nil
	default:
		if kids, err = w.edge(db, elems[n].Child, kids); err != nil {
			return nil, err
		}
		kids[0].Key = elems[n].Key // which the branch has for it
		return w.branches(append(elems[:n], kids...))
	}
}

// above writes the branches above kids, at least one, and returns the topmost page.
func (w *Writer) above(kids []Element) (_ uint64, err error) {
	for len(kids) > 1 {
		if kids, err = w.branches(kids); err != nil {
			return 0, err
		}
	}
	return kids[0].Child, nil
}

// branches packs children into branches, at least two a page, and returns those.
func (w *Writer) branches(kids []Element) ([]Element, error) {
	var out []Element
	for len(kids) > 0 {
		n, size := 0, HeaderSize
		for n < len(kids) && n < math.MaxUint16 && (n < 2 || size+ElementSize+len(kids[n].Key) <= w.PageSize) {
			size += ElementSize + len(kids[n].Key)
			n++
		}
		if len(kids)-n == 1 && n > 2 {
			n-- // leave no branch with a single child
		}
		id, err := w.Page(FlagBranch, kids[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, Element{Key: kids[0].Key, Child: id})
		kids = kids[n:]
	}
	return out, nil
}

// leaves packs sorted entries into leaves.
type leaves struct {
	w     *Writer
	cur   []Element // of the leaf that is being filled
	arena []byte    // their keys and values
	size  int       // bytes of that leaf
	done  []Element // first key and page of each leaf written
}

// leafSize is the size of a large leaf in bytes; one page if pages are larger. One record of 2 KB
// a 4 KiB page would waste half of it. A record has 35 bytes at least: none holds 65535.
const leafSize = 32 << 10

// Seq yields elems.
func Seq(elems ...Element) iter.Seq2[Element, error] {
	return func(yield func(Element, error) bool) {
		for _, el := range elems {
			if !yield(el, nil) {
				return
			}
		}
	}
}

// add copies an entry, which sorts after those before.
func (l *leaves) add(el Element) error {
	n := ElementSize + len(el.Key) + len(el.Value)
	if len(l.cur) > 0 && l.size+n > max(leafSize, l.w.PageSize) {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if len(l.cur) == 0 {
		l.size, l.arena = HeaderSize, l.arena[:0]
	}
	at := len(l.arena)
	// An arena that grows leaves earlier elements on the old array, intact.
	l.arena = append(append(l.arena, el.Key...), el.Value...)
	end := at + len(el.Key)
	l.cur = append(l.cur, Element{Flags: el.Flags, Key: l.arena[at:end:end], Value: l.arena[end:]})
	l.size += n
	return nil
}

// flush writes the current leaf.
func (l *leaves) flush() error {
	if len(l.cur) == 0 {
		return nil
	}
	id, err := l.w.Page(FlagLeaf, l.cur)
	l.done = append(l.done, Element{Key: bytes.Clone(l.cur[0].Key), Child: id})
	l.cur = l.cur[:0]
	return err
}

// tree ends the last leaf and returns the root of the tree above all; of no entries, an empty leaf.
func (l *leaves) tree() (uint64, error) {
	if len(l.done) == 0 && len(l.cur) == 0 {
		return l.w.Page(FlagLeaf, nil)
	}
	if err := l.flush(); err != nil {
		return 0, err
	}
	return l.w.above(l.done)
}
