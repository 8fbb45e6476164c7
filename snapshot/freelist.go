package snapshot

import (
	"errors"
	"fmt"
)

// A free-list page has the ids of free pages, 8 bytes each, behind its header; with 65535 elements the first is how many follow
// (bbolt internal/common/page.go, FreelistPageCount).
const (
	flagFreelist = 0x10
	freeIDSize   = 8
	manyFreeIDs  = 0xffff
)

// ErrFreeList is wrapped by what is wrong with a stored free list. No record is harmed by it.
var ErrFreeList = errors.New("free list")

// freeList checks the free list of the meta in use. A server trusts a stored list: it writes to the pages that the list names,
// and panics where it cannot read the list (bbolt db.go, loadFreelist). bbolt sorts the ids itself. The tree was walked before.
//
// The other meta does not matter: bbolt takes it only when the one in use fails its checksum.
func (w *walker) freeList() error {
	id := w.s.meta.freelist
	if id == noFreelist {
		return nil
	}
	err := w.claimFree(id)
	if err == nil {
		lost := w.s.meta.highWater - w.claimed()
		if lost > 0 {
			err = fmt.Errorf("%w: %d pages are neither in use nor free", errOdd, lost)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFreeList, err)
	}
	return nil
}

// claimFree claims the free-list page and each page that it names.
func (w *walker) claimFree(id uint64) error {
	p, err := w.s.pageExtent(id)
	if err != nil {
		return err
	}
	if p.flags() != flagFreelist {
		return fmt.Errorf("%w: page %d is no free-list page (flags %#x)", ErrDamaged, id, p.flags())
	}
	if err := w.claim(id, uint64(p.overflow())+1); err != nil {
		return err
	}
	ids := p[pageHeaderSize:]
	count := uint64(p.count())
	if count == manyFreeIDs {
		count, ids = le.Uint64(ids), ids[freeIDSize:]
	}
	if count > uint64(len(ids)/freeIDSize) {
		return fmt.Errorf("%w: page %d: %d ids do not fit %d bytes", ErrDamaged, id, count, len(p))
	}
	for ; count > 0; count, ids = count-1, ids[freeIDSize:] {
		free := le.Uint64(ids)
		if free < 2 || free >= w.s.meta.highWater {
			return fmt.Errorf("%w: page %d lies outside the %d pages of the file", ErrDamaged, free, w.s.meta.highWater)
		}
		if w.claim(free, 1) != nil {
			return fmt.Errorf("%w: page %d is named free and is in use, or named twice", ErrDamaged, free)
		}
	}
	return nil
}

// FreeList is the error of a wrong free list (ErrFreeList and ErrDamaged), nil where etcd stored none or a right one. Write stores
// none, which heals the file.
func (s *Snapshot) FreeList() error {
	if s.freeList == nil || errors.Is(s.freeList, errOdd) {
		return nil
	}
	return s.wrap(s.freeList)
}
