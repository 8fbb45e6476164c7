package bolt

import (
	"bytes"
	"iter"
)

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
