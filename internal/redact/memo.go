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

// memo keeps results for texts, since objects repeat most of their names and values. A newer text
// may take the place of an older one. Concurrent calls are allowed.
type memo[T any] struct {
	seed maphash.Seed
	kept [mostKept]atomic.Pointer[kept[T]]
}

type kept[T any] struct {
	text string
	of   T
}

func newMemo[T any]() *memo[T] { return &memo[T]{seed: maphash.MakeSeed()} }

// of returns the kept result for a text, nil for none, and the place for one.
func (m *memo[T]) of(text string) (*T, *atomic.Pointer[kept[T]]) {
	at := &m.kept[maphash.String(m.seed, text)%mostKept]
	if k := at.Load(); k != nil && k.text == text {
		return &k.of, at
	}
	return nil, at
}

// clean keeps the texts without a secret, with the bytes that a search unpacks.
type clean struct{ *memo[int] }

// holds is search, which is left out for a text known to be clean. The budget of u is lowered like
// in a search. A text is also not clean if secrets of other objects were met.
func (c clean) holds(u *Unpacker, text string, o *others, search func(string) bool) bool {
	if c.memo == nil || len(text) > longestKept {
		return search(text)
	}
	cost, at := c.of(text)
	if cost != nil && *cost < u.left {
		u.left -= *cost
		return false
	}
	before := u.left
	found := search(text)
	if !found && u.left > 0 && (o == nil || !*o.met) { // a used up budget ends a search
		at.Store(&kept[int]{strings.Clone(text), before - u.left})
	}
	return found
}

// named is what a name shows.
type named struct {
	class nameClass
	shape bool // the name has the shape of a secret
}

// names keeps what names show. Without a memo, and for long names, it keeps nothing.
type names struct{ *memo[named] }

func (n names) class(name string) nameClass {
	if known := n.known(name); known != nil {
		return known.class
	}
	return classify(name)
}

func (n names) hasShape(name string) bool {
	if known := n.known(name); known != nil {
		return known.shape
	}
	return hasShape(name)
}

// known returns nil for a name that is not kept.
func (n names) known(name string) *named {
	if n.memo == nil || len(name) > longestKept {
		return nil
	}
	known, at := n.of(name)
	if known == nil {
		known = &named{classify(name), hasShape(name)}
		at.Store(&kept[named]{strings.Clone(name), *known})
	}
	return known
}
