// Package stream makes and reads sequences that an error ends.
package stream

import (
	"context"
	"iter"
)

// Of is the sequence of all values that run yields, and of its error. run must return an error of
// yield, which means that the reader has stopped.
func Of[T any](run func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ended := false
		err := run(func(v T) error {
			if ended = !yield(v, nil); ended {
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

// Each calls fn with each value of seq, up to the first error, which it returns.
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
