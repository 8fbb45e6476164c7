package redact

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// Bounds of the memory of a memo: entries, and bytes of a text.
const (
	mostKept    = 1 << 12
	longestKept = 256
)

// memo keeps results for texts that were met twice, since objects repeat most of their names and
// values. A newer text may take the place of an older one. Concurrent calls are allowed.
type memo[T any] struct {
	seed maphash.Seed
	kept [mostKept]place[T]
}

// place is the place of all texts with equal low bits of their hashes.
type place[T any] struct {
	kept atomic.Pointer[kept[T]]
	once atomic.Uint32 // the high bits of the last text that was not kept
}

type kept[T any] struct {
	text string
	of   T
}

func newMemo[T any]() *memo[T] { return &memo[T]{seed: maphash.MakeSeed()} }

// of returns the kept result for a text, nil for none, and a function that keeps one.
func (m *memo[T]) of(text string) (*T, func(of T)) {
	hash := maphash.String(m.seed, text)
	at := &m.kept[hash%mostKept]
	keep := func(of T) {
		if high := uint32(hash >> 32); at.once.Swap(high) == high {
			at.kept.Store(&kept[T]{strings.Clone(text), of})
		}
	}
	if k := at.kept.Load(); k != nil && k.text == text {
		return &k.of, keep
	}
	return nil, keep
}

// find returns the result of search for a text, kept or new.
func (m *memo[T]) find(text string, search func(string) T) T {
	if m == nil || len(text) > longestKept {
		return search(text)
	}
	known, keep := m.of(text)
	if known != nil {
		return *known
	}
	found := search(text)
	keep(found)
	return found
}

// clean keeps the texts without a secret, with the bytes that a search unpacks.
type clean struct{ *memo[int] }

// holds is search, which is left out for a text known to be clean. The budget of u is lowered like
// in a search. A text is also not clean if secrets of other objects were met.
func (c clean) holds(u *Unpacker, text string, o *others, search func(string) bool) bool {
	if c.memo == nil || len(text) > longestKept {
		return search(text)
	}
	cost, keep := c.of(text)
	if cost != nil && *cost < u.left {
		u.left -= *cost
		return false
	}
	before := u.left
	found := search(text)
	if !found && u.left > 0 && (o == nil || !*o.met) { // a used up budget ends a search
		keep(before - u.left)
	}
	return found
}

// names keeps what names show. Without memos, and for long names, it keeps nothing.
type names struct {
	classes *memo[nameClass]
	shapes  *memo[bool]
}

func (n names) class(name string) nameClass { return n.classes.find(name, classify) }

func (n names) hasShape(name string) bool { return n.shapes.find(name, hasShape) }
