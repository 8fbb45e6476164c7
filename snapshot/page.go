package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Layout of a bbolt page (bbolt internal/common/page.go): a 16-byte header {id u64, flags u16, count u16, overflow u32},
// then count elements of 16 bytes, then keys and values. All integers are little-endian: a big-endian host writes files
// that no little-endian host can open.
const (
	pageHeaderSize = 16
	elementSize    = 16

	flagBranch = 0x01
	flagLeaf   = 0x02
	flagMeta   = 0x04

	// bucketLeafFlag marks a leaf element whose value is a bucket header.
	bucketLeafFlag = 0x01
	// bucketHeaderSize is {root pgid u64, sequence u64}; with root 0 a page image follows (an inline bucket).
	bucketHeaderSize = 16
)

var le = binary.LittleEndian

// page is a whole page with its overflow pages; every accessor relies on judge having passed.
type page []byte

func (p page) id() uint64     { return le.Uint64(p) }
func (p page) flags() uint16  { return le.Uint16(p[8:]) }
func (p page) count() int     { return int(le.Uint16(p[10:])) }
func (p page) overflow() int  { return int(le.Uint32(p[12:])) }
func (p page) isLeaf() bool   { return p.flags() == flagLeaf }
func (p page) isBranch() bool { return p.flags() == flagBranch }

// records is count, 0 for the page of a bucket that is not inline.
func (p page) records() int {
	if p == nil {
		return 0
	}
	return p.count()
}

// leaf returns element i of a leaf page.
func (p page) leaf(i int) (flags uint32, key, value []byte) {
	at := pageHeaderSize + i*elementSize
	e := p[at : at+elementSize]
	pos, ks, vs := int(le.Uint32(e[4:])), int(le.Uint32(e[8:])), int(le.Uint32(e[12:]))
	d := p[at+pos:]
	return le.Uint32(e), d[:ks:ks], d[ks : ks+vs : ks+vs]
}

// branch returns element i of a branch page: the first key below child, and the child's page id.
func (p page) branch(i int) (key []byte, child uint64) {
	at := pageHeaderSize + i*elementSize
	e := p[at : at+elementSize]
	pos, ks := int(le.Uint32(e)), int(le.Uint32(e[4:]))
	return p[at+pos : at+pos+ks : at+pos+ks], le.Uint64(e[8:])
}

// judge says whether a page image is a leaf or branch all of whose elements lie within it, share no bytes and, on a branch, ascend.
// It reads count*16 bytes and the keys of branches, so its cost is bounded by the size of the page; and because elements share
// nothing, so is the cost of reading them all.
func (p page) judge() error {
	if len(p) < pageHeaderSize {
		return fmt.Errorf("page of %d bytes has no header", len(p))
	}
	if !p.isLeaf() && !p.isBranch() {
		return fmt.Errorf("is neither leaf nor branch (flags %#x)", p.flags())
	}
	table := pageHeaderSize + p.count()*elementSize
	if table > len(p) {
		return fmt.Errorf("%d elements do not fit %d bytes", p.count(), len(p))
	}
	if p.isBranch() && p.count() == 0 {
		return fmt.Errorf("branch without elements")
	}
	free := uint64(len(p) - table) // what the elements before have left
	var before []byte
	for i := range p.count() {
		start, size := p.extent(i)
		switch {
		case size > 0 && start < uint64(table):
			return fmt.Errorf("element %d lies in the page's own table (offset %d)", i, start)
		case start+size > uint64(len(p)):
			return fmt.Errorf("element %d ends beyond the page (offset %d, size %d)", i, start, size)
		case size > free:
			return fmt.Errorf("element %d shares bytes with one before it (offset %d, size %d)", i, start, size)
		}
		free -= size
		if !p.isBranch() {
			continue
		}
		key, _ := p.branch(i)
		if i > 0 && bytes.Compare(before, key) >= 0 {
			return fmt.Errorf("element %d does not sort after the one before it", i)
		}
		before = key
	}
	return nil
}

// extent is the offset and the size in the page that element i claims for its key and value.
func (p page) extent(i int) (start, size uint64) {
	at := pageHeaderSize + i*elementSize
	e := p[at : at+elementSize]
	if p.isBranch() {
		return uint64(at) + uint64(le.Uint32(e)), uint64(le.Uint32(e[4:]))
	}
	return uint64(at) + uint64(le.Uint32(e[4:])), uint64(le.Uint32(e[8:])) + uint64(le.Uint32(e[12:]))
}
