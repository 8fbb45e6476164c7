package carve

import (
	"bytes"
	"hash/maphash"
)

// Table maps keys to numbers.
type Table struct {
	seed maphash.Seed
	Of   map[uint64]int32 // by hash
	key  func(n int32) []byte
}

// NewTable returns an empty table; key returns the key with a number.
func NewTable(key func(n int32) []byte) Table {
	return Table{maphash.MakeSeed(), map[uint64]int32{}, key}
}

// place returns the hash of a key in the table, or a free hash, and the number of the key; -1 for
// none.
func (t *Table) place(key []byte) (hash uint64, n int32) {
	for hash = maphash.Bytes(t.seed, key); ; hash++ {
		n, known := t.Of[hash]
		if !known {
			return hash, -1
		}
		if bytes.Equal(t.key(n), key) {
			return hash, n
		}
	}
}

// Get returns the number of a key; -1 for none.
func (t *Table) Get(key []byte) int32 {
	_, n := t.place(key)
	return n
}

// Replace sets the number of a key, and returns the number before; -1 for none.
func (t *Table) Replace(key []byte, n int32) (before int32) {
	hash, before := t.place(key)
	t.Of[hash] = n
	return before
}
