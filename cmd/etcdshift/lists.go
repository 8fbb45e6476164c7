package main

import (
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// listed returns a copy of all that is never nil: JSON shows an empty list as one.
func listed[T any](all []T) []T { return append([]T{}, all...) }

// mapped returns the result of of for each element.
func mapped[T, U any](all []T, of func(T) U) []U {
	out := make([]U, 0, len(all))
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}

// converted yields the result of of for each element. It ends with the first error.
func converted[T, U any](all iter.Seq2[T, error], of func(T) U) iter.Seq2[U, error] {
	return stream.Of(func(yield func(U) error) error {
		return stream.Each(all, func(one T) error { return yield(of(one)) })
	})
}

// grouped yields each run of neighbours with the same key.
func grouped[T any, K comparable](all []T, key func(T) K) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && key(all[n]) == key(all[0]) {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}
