// Package stream builds and reads sequences that end at the first error.
package stream

import (
	"context"
	"iter"
)

// Of returns the sequence of all values yielded by run, followed by its error. run must return an
// error of yield, which means that the reader has stopped: later values go nowhere.
func Of[T any](run func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ended := false
		err := run(func(v T) error {
			if ended = ended || !yield(v, nil); ended {
				return context.Canceled
			}
			return nil
		})
		if err != nil && !ended {
			var none T
			yield(none, err)
		}
	}
}

// Each calls fn with each value of seq until the first error, and returns that error.
func Each[T any](seq iter.Seq2[T, error], fn func(T) error) error {
	for v, err := range seq {
		if err == nil {
			err = fn(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Map yields of(v) for each value v, until the first error.
func Map[T, U any](seq iter.Seq2[T, error], of func(T) U) iter.Seq2[U, error] {
	return Of(func(yield func(U) error) error {
		return Each(seq, func(v T) error { return yield(of(v)) })
	})
}

// Mapped returns of(v) for each element v of a list.
func Mapped[T, U any](all []T, of func(T) U) []U {
	out := make([]U, 0, len(all))
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}
