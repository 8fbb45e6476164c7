package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Sizes in bytes.
const (
	HeaderSize       = 16 // of a page header
	ElementSize      = 16 // of an element, without its key and value
	BucketHeaderSize = 16 // of a bucket without the page of an inline one
)

// Flags of a page, and FlagBucket for an element with a bucket as its value.
const (
	FlagBranch   = 0x01
	FlagLeaf     = 0x02
	FlagMeta     = 0x04
	FlagFreelist = 0x10

	FlagBucket = 0x01
)

var le = binary.LittleEndian

// Page is a page with its overflow pages. All methods except Check and HasKind require a successful
// Check.
type Page []byte

func (p Page) ID() uint64     { return le.Uint64(p) }
func (p Page) Flags() uint16  { return le.Uint16(p[8:]) }
func (p Page) Count() int     { return int(le.Uint16(p[10:])) }
func (p Page) Overflow() int  { return int(le.Uint32(p[12:])) }
func (p Page) IsLeaf() bool   { return p.Flags() == FlagLeaf }
func (p Page) IsBranch() bool { return p.Flags() == FlagBranch }

// HasKind reports whether the flags are those of one kind of page.
func (p Page) HasKind() bool {
	switch p.Flags() {
	case FlagBranch, FlagLeaf, FlagMeta, FlagFreelist:
		return true
	}
	return false
}

// Leaf returns element i of a leaf page.
func (p Page) Leaf(i int) (flags uint32, key, value []byte) {
	at := HeaderSize + i*ElementSize
	e := p[at : at+ElementSize]
	pos, ks, vs := int(le.Uint32(e[4:])), int(le.Uint32(e[8:])), int(le.Uint32(e[12:]))
	d := p[at+pos:]
	return le.Uint32(e), d[:ks:ks], d[ks : ks+vs : ks+vs]
}

// Branch returns element i of a branch page: the first key below child, and the page number of
// child.
func (p Page) Branch(i int) (key []byte, child uint64) {
	at := HeaderSize + i*ElementSize
	e := p[at : at+ElementSize]
	pos, ks := int(le.Uint32(e)), int(le.Uint32(e[4:]))
	return p[at+pos : at+pos+ks : at+pos+ks], le.Uint64(e[8:])
}

// Element is an entry of a leaf (Flags, Key, Value) or of a branch (Key, Child).
type Element struct {
	Flags      uint32
	Key, Value []byte
	Child      uint64
}

// Elements returns all elements of p.
func (p Page) Elements() []Element {
	elems := make([]Element, p.Count())
	for i := range elems {
		if el := &elems[i]; p.IsLeaf() {
			el.Flags, el.Key, el.Value = p.Leaf(i)
		} else {
			el.Key, el.Child = p.Branch(i)
		}
	}
	return elems
}

// Extent returns the offset in the page and the size of the key and value of element i, unchecked.
func (p Page) Extent(i int) (start, size uint64) {
	at := HeaderSize + i*ElementSize
	e := p[at : at+ElementSize]
	if p.IsBranch() {
		return uint64(at) + uint64(le.Uint32(e)), uint64(le.Uint32(e[4:]))
	}
	return uint64(at) + uint64(le.Uint32(e[4:])), uint64(le.Uint32(e[8:])) + uint64(le.Uint32(e[12:]))
}

// Check checks that p is a leaf or a branch, that all elements lie within p and share no bytes, and
// that the keys of a branch ascend. len(p) bounds the cost of Check and of reading all elements.
func (p Page) Check() error {
	if len(p) < HeaderSize {
		return fmt.Errorf("page of %d bytes has no header", len(p))
	}
	table := HeaderSize + p.Count()*ElementSize
	switch {
	case !p.IsLeaf() && !p.IsBranch():
		return fmt.Errorf("is neither leaf nor branch (flags %#x)", p.Flags())
	case table > len(p):
		return fmt.Errorf("%d elements do not fit %d bytes", p.Count(), len(p))
	case p.IsBranch() && p.Count() == 0:
		return fmt.Errorf("branch without elements")
	}
	free := uint64(len(p) - table) // bytes not used by earlier elements
	var before []byte
	for i := range p.Count() {
		start, size := p.Extent(i)
		switch {
		case size > 0 && start < uint64(table):
			return fmt.Errorf("element %d lies in the page's own table (offset %d)", i, start)
		case start+size > uint64(len(p)):
			return fmt.Errorf("element %d ends beyond the page (offset %d, size %d)", i, start, size)
		case size > free:
			return fmt.Errorf("element %d shares bytes with one before it (offset %d, size %d)", i, start, size)
		}
		free -= size
		if !p.IsBranch() {
			continue
		}
		key, _ := p.Branch(i)
		if i > 0 && bytes.Compare(before, key) >= 0 {
			return fmt.Errorf("element %d does not sort after the one before it", i)
		}
		before = key
	}
	return nil
}

// end returns the offset behind the last byte of an element.
func (p Page) end() uint64 {
	end := uint64(HeaderSize + p.Count()*ElementSize)
	for i := range p.Count() {
		start, size := p.Extent(i)
		end = max(end, start+size)
	}
	return end
}

// tight reports whether the elements of p have no gaps between them and only zeros after the last.
func (p Page) tight() bool {
	end := uint64(HeaderSize + p.Count()*ElementSize)
	for i := range p.Count() {
		start, size := p.Extent(i)
		if start != end {
			return false
		}
		end += size
	}
	return len(bytes.TrimLeft(p[end:], "\x00")) == 0
}
