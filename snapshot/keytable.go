package snapshot

import (
	"bytes"
	"hash/maphash"
)

// keyTable maps keys to numbers.
type keyTable struct {
	seed maphash.Seed
	of   map[uint64]int32
	key  func(n int32) []byte
}

func newKeyTable(key func(n int32) []byte) keyTable {
	return keyTable{maphash.MakeSeed(), map[uint64]int32{}, key}
}

// place returns the hash of a key in the table, or a free hash, and the number of the key; -1 for
// none.
func (t *keyTable) place(key []byte) (hash uint64, n int32) {
	for hash = maphash.Bytes(t.seed, key); ; hash++ {
		n, known := t.of[hash]
		if !known {
			return hash, -1
		}
		if bytes.Equal(t.key(n), key) {
			return hash, n
		}
	}
}

// get returns the number of a key; -1 for none.
func (t *keyTable) get(key []byte) int32 {
	_, n := t.place(key)
	return n
}

// replace sets the number of a key, and returns the number before; -1 for none.
func (t *keyTable) replace(key []byte, n int32) (before int32) {
	hash, before := t.place(key)
	t.of[hash] = n
	return before
}
