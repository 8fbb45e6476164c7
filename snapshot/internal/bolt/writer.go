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

// Writer lays out new pages and writes each to its final position. Old pages do not change.
type Writer struct {
	Out      io.WriterAt
	PageSize int    // bytes
	Next     uint64 // number of the next page

	buf []byte // pages not yet written; the last one is page Next-1
}

// flushSize is the maximum size of the pages gathered for one write, in bytes.
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

// fill writes header, elements, keys and values to the zeroed page p.
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

// Source is a new bucket. Entries yields its elements in key order.
type Source struct {
	Name     string
	Sequence uint64
	Entries  iter.Seq2[Element, error]
	Paged    bool // never inline: a file has at least four pages
	// Free leaves the pages without a reference: the source is no bucket.
	Free bool
}

// inlineShare is the divisor of the page size for the maximum size of an inline bucket (bucket.go,
// maxInlineBucketSize).
const inlineShare = 4

// Bucket writes the pages of src and returns the element of src for the root bucket.
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

// element returns the leaf element of the root bucket that holds b.
func (b *Bucket) element() Element {
	value := le.AppendUint64(le.AppendUint64(nil, b.Root), b.Sequence)
	return Element{Flags: FlagBucket, Key: []byte(b.Name), Value: append(value, b.Inline...)}
}

// Root writes the root bucket and returns its page. The root bucket holds the buckets of db and
// renewed; of two buckets with one name the renewed one counts.
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

// Create writes a database of new pages only: the buckets of sources, sorted by name, with page
// size, sequence and transaction of m. Create returns the meta of the file.
func Create(out io.WriterAt, m Meta, sources []Source) (Meta, error) {
	w := &Writer{Out: out, PageSize: m.PageSize, Next: 2}
	var buckets []Element
	var err error
	for _, src := range sources {
		el, err := w.Bucket(src)
		if err != nil {
			return Meta{}, err
		}
		if !src.Free {
			buckets = append(buckets, el)
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

// Append writes entries, all with keys after those of b, to new leaves, and rewrites the right edge
// of the tree of b. Append returns the element of b for the root bucket, without a value if entries
// is empty. Replaced pages become free. The entries of an inline bucket precede the new entries.
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
	after.Root, err = w.branchTree(l.done)
	return after.element(), err
}

// edge appends kids to the tree of page id and returns the replacement pages.
func (w *Writer) edge(db *DB, id uint64, kids []Element) ([]Element, error) {
	p, err := db.Page(id)
	if err != nil {
		return nil, err
	}
	elems := p.Elements()
	switch n := len(elems) - 1; {
	case n < 0: // the root leaf of an empty bucket has no entries to keep
		return kids, nil
	case p.IsLeaf():
		return append([]Element{{Key: elems[0].Key, Child: id}}, kids...), nil
	default:
		if kids, err = w.edge(db, elems[n].Child, kids); err != nil {
			return nil, err
		}
		kids[0].Key = elems[n].Key // the key of this child in the branch
		return w.branches(append(elems[:n], kids...))
	}
}

// branchTree writes the branches above kids, which must not be empty, and returns the topmost page.
func (w *Writer) branchTree(kids []Element) (_ uint64, err error) {
	for len(kids) > 1 {
		if kids, err = w.branches(kids); err != nil {
			return 0, err
		}
	}
	return kids[0].Child, nil
}

// branches packs children into branches, at least two in each, and returns the branches.
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
	cur   []Element // elements of the unfinished leaf
	arena []byte    // keys and values of cur
	size  int       // bytes of the unfinished leaf
	done  []Element // first key and page of each finished leaf
}

// leafSize is the size of a large leaf in bytes; if pages are larger, a leaf has one page. With one
// 4 KiB page per leaf, records of 2 KB would waste half of each page. A record has at least 35
// bytes, so no leaf has 65535 records.
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

// add copies an entry. Entries come in key order.
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

// tree finishes the last leaf and returns the root of the tree above all leaves; without entries,
// an empty leaf.
func (l *leaves) tree() (uint64, error) {
	if len(l.done) == 0 && len(l.cur) == 0 {
		return l.w.Page(FlagLeaf, nil)
	}
	if err := l.flush(); err != nil {
		return 0, err
	}
	return l.w.branchTree(l.done)
}
