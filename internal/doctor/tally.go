package doctor

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// ordered is a map that remembers the order of its keys.
type ordered[K comparable, V any] struct {
	keys []K
	by   map[K]*V
}

// at returns the value of a key, a new one for a new key.
func (o *ordered[K, V]) at(k K) *V {
	if o.by == nil {
		o.by = map[K]*V{}
	}
	if o.by[k] == nil {
		o.by[k] = new(V)
		o.keys = append(o.keys, k)
	}
	return o.by[k]
}

func (o *ordered[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for _, k := range o.keys {
			if !yield(k, o.by[k]) {
				return
			}
		}
	}
}

// tally counts objects by something they have in common.
type tally[K comparable] struct {
	ordered[K, count]
	total count
}

// count is a number of objects, with the key of the first.
type count struct {
	objects int
	first   []byte
}

func (t *tally[K]) add(k K, key []byte) {
	for _, c := range []*count{t.at(k), &t.total} {
		if c.objects++; c.objects == 1 {
			c.first = key
		}
	}
}

// few joins words, not more than most; what is the noun of the rest.
func few(words []string, most int, what string) string {
	if n := len(words) - most; n > 0 {
		words = append(words[:most:most], fmt.Sprintf("and %d more%s", n, what))
	}
	return strings.Join(words, ", ")
}

// list joins words for people.
func list(words []string) string { return cmp.Or(strings.Join(words, ", "), "none") }

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
