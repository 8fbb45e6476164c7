package redact

import (
	"hash/maphash"
	"strings"
	"sync"
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

// of returns the kept result for a text, nil for none, and where to keep one.
func (m *memo[T]) of(text string) (known *T, to slot[T]) {
	hash := maphash.String(m.seed, text)
	to = slot[T]{&m.kept[hash%mostKept], uint32(hash >> 32)}
	if k := to.kept.Load(); k != nil && k.text == text {
		return &k.of, to
	}
	return nil, to
}

// slot is the place of a text, with the high bits of its hash.
type slot[T any] struct {
	*place[T]
	high uint32
}

func (s slot[T]) keep(text string, of T) {
	if s.once.Swap(s.high) == s.high {
		s.kept.Store(&kept[T]{strings.Clone(text), of})
	}
}

// find returns the result of search for a text, kept or new.
func (m *memo[T]) find(text string, search func(string) T) T {
	if m == nil || len(text) > longestKept {
		return search(text)
	}
	known, to := m.of(text)
	if known != nil {
		return *known
	}
	found := search(text)
	to.keep(text, found)
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
	cost, to := c.of(text)
	if cost != nil && *cost < u.left {
		u.left -= *cost
		return false
	}
	before := u.left
	found := search(text)
	if !found && u.left > 0 && (o == nil || !*o.met) { // a used up budget ends a search
		to.keep(text, before-u.left)
	}
	return found
}

// names keeps the classes of names, except of long ones.
type names struct{ *memo[nameClass] }

// classes has the names of all objects: they differ little between files.
var classes = sync.OnceValue(func() names { return names{newMemo[nameClass]()} })

func (n names) class(name string) nameClass {
	if !mayName(name) { // most often
		return plainName
	}
	return n.find(name, classify)
}
