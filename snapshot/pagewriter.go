package snapshot

import (
	"fmt"
	"io"
	"math"
)

// element is an entry of a page to be written: of a leaf {flags, key, value}, of a branch {key, child}.
type element struct {
	flags      uint32
	key, value []byte
	child      uint64
}

// pageWriter lays out new pages behind the old ones and writes each to its final place.
type pageWriter struct {
	out      io.WriterAt
	pageSize int
	next     uint64 // id of the next page
	buf      []byte // pages not yet written; they end before page next
}

// flushSize is how many bytes of pages are gathered before a write.
const flushSize = 1 << 20

// emit appends one page of the given kind and returns its id.
func (w *pageWriter) emit(kind uint16, elems []element) (uint64, error) {
	size := pageHeaderSize
	for i := range elems {
		size += elementSize + len(elems[i].key) + len(elems[i].value)
	}
	n := (size + w.pageSize - 1) / w.pageSize
	if len(elems) > math.MaxUint16 || uint64(n) > math.MaxUint32 {
		return 0, fmt.Errorf("a page of %d elements and %d bytes cannot be written", len(elems), size)
	}
	if len(w.buf) > 0 && len(w.buf)+n*w.pageSize > flushSize {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	at := len(w.buf)
	w.buf = append(w.buf, make([]byte, n*w.pageSize)...)
	fillPage(w.buf[at:], w.next, kind, n, elems)
	id := w.next
	w.next += uint64(n)
	return id, nil
}

// fillPage writes header, element table and data over the zeroed p.
func fillPage(p []byte, id uint64, kind uint16, pages int, elems []element) {
	le.PutUint64(p, id)
	le.PutUint16(p[8:], kind)
	le.PutUint16(p[10:], uint16(len(elems)))
	le.PutUint32(p[12:], uint32(pages-1))
	data := pageHeaderSize + len(elems)*elementSize
	for i, el := range elems {
		at := pageHeaderSize + i*elementSize
		e := p[at:]
		if kind == flagLeaf {
			le.PutUint32(e, el.flags)
			le.PutUint32(e[4:], uint32(data-at))
			le.PutUint32(e[8:], uint32(len(el.key)))
			le.PutUint32(e[12:], uint32(len(el.value)))
		} else {
			le.PutUint32(e, uint32(data-at))
			le.PutUint32(e[4:], uint32(len(el.key)))
			le.PutUint64(e[8:], el.child)
		}
		data += copy(p[data:], el.key)
		data += copy(p[data:], el.value)
	}
}

// flush writes the gathered pages.
func (w *pageWriter) flush() error {
	first := int64(w.next)*int64(w.pageSize) - int64(len(w.buf))
	_, err := w.out.WriteAt(w.buf, first)
	w.buf = w.buf[:0]
	return err
}

// leafBuilder packs sorted entries into leaves.
type leafBuilder struct {
	w      *pageWriter
	cur    []element
	arena  []byte
	size   int
	leaves []element // {first key, page id} of each leaf written
}

func newLeafBuilder(w *pageWriter) *leafBuilder { return &leafBuilder{w: w, size: pageHeaderSize} }

// leafSize is how large a leaf gets, in bytes; one page where pages are larger. One record of 2 KB a 4 KiB page would waste
// half of it; a leaf of several pages (which bbolt itself makes for records that do not fit one) wastes half a record in eight.
// No leaf of that size holds as many records as a page can count, 65535: one is 35 bytes at least.
const leafSize = 32 << 10

// add copies one entry, which must sort after those before it.
func (b *leafBuilder) add(el element) error {
	n := elementSize + len(el.key) + len(el.value)
	if len(b.cur) > 0 && b.size+n > max(leafSize, b.w.pageSize) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if len(b.cur) == 0 {
		b.size, b.arena = pageHeaderSize, b.arena[:0]
	}
	at := len(b.arena)
	b.arena = append(append(b.arena, el.key...), el.value...) // a grown arena leaves earlier elements on the old array, intact
	end := at + len(el.key)
	b.cur = append(b.cur, element{flags: el.flags, key: b.arena[at:end:end], value: b.arena[end:]})
	b.size += n
	return nil
}

// addBucket adds an entry of the root bucket.
func (b *leafBuilder) addBucket(name string, value []byte) error {
	return b.add(element{flags: bucketLeafFlag, key: []byte(name), value: value})
}

// flush writes the current leaf.
func (b *leafBuilder) flush() error {
	if len(b.cur) == 0 {
		return nil
	}
	id, err := b.w.emit(flagLeaf, b.cur)
	if err != nil {
		return err
	}
	b.leaves = append(b.leaves, element{key: append([]byte(nil), b.cur[0].key...), child: id})
	b.cur = b.cur[:0]
	return nil
}

// root ends the last leaf and returns the root of the tree above all of them; of no entries, an empty leaf.
func (b *leafBuilder) root() (uint64, error) {
	if len(b.leaves) == 0 && len(b.cur) == 0 {
		return b.w.emit(flagLeaf, nil)
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return b.w.above(b.leaves)
}

// above writes the branches above kids, of which there is at least one, and returns the topmost page.
func (w *pageWriter) above(kids []element) (uint64, error) {
	var err error
	for len(kids) > 1 {
		if kids, err = w.branches(kids); err != nil {
			return 0, err
		}
	}
	return kids[0].child, nil
}

// branches packs children into branch pages, at least two a page, and returns those.
func (w *pageWriter) branches(kids []element) ([]element, error) {
	var out []element
	for len(kids) > 0 {
		n, size := 0, pageHeaderSize
		for n < len(kids) && (n < 2 || size+elementSize+len(kids[n].key) <= w.pageSize) && n < math.MaxUint16 {
			size += elementSize + len(kids[n].key)
			n++
		}
		if len(kids)-n == 1 && n > 2 {
			n-- // leave no branch with a single child
		}
		id, err := w.emit(flagBranch, kids[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, element{key: kids[0].key, child: id})
		kids = kids[n:]
	}
	return out, nil
}
