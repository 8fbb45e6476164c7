package survey

import (
	"cmp"
	"context"
	"iter"
)

// Reading is one pass over files. It keeps the first error: steps that follow one another need not
// look at it, and end in it.
type Reading struct {
	Ctx context.Context
	Err error
}

// Failed keeps the first error, and tells whether there is one.
func (r *Reading) Failed(err error) bool {
	r.Err = cmp.Or(r.Err, err)
	return r.Err != nil
}

// Each yields what is read until the first error.
func Each[T any](r *Reading, all iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v, err := range all {
			if r.Failed(err) || !yield(v) {
				return
			}
		}
	}
}
