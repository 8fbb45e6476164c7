package jsonpath

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/encoding"
)

// ErrTooMuch is the error of a path that finds or prints too much.
var ErrTooMuch = errors.New("the path finds too much")

// One path may find and print this and a multiple of the object's size, all paths together eight
// times as much.
const (
	freeValues = 1 << 17
	freeBytes  = 16 << 20
	paths      = 8
)

// Work bounds the values that paths find and print in one object.
type Work struct {
	ctx           context.Context
	values, bytes allowance
	err           error // ended the path
}

// allowance is the rest for a path and for all paths.
type allowance struct {
	most, left, all int
	unit            string
}

// NewWork returns the bounds for paths in content. Paths stop when ctx ends.
func NewWork(ctx context.Context, content any) *Work {
	weight := encoding.Weigh(content)
	allow := func(most int, unit string) allowance { return allowance{most: most, all: paths * most, unit: unit} }
	return &Work{ctx: ctx, values: allow(freeValues+weight/4, "values"), bytes: allow(freeBytes+8*weight, "bytes")}
}

// begin renews the allowance of one path.
func (w *Work) begin() {
	w.values.left, w.bytes.left, w.err = w.values.most, w.bytes.most, nil
}

// find counts n values.
func (w *Work) find(n int) error {
	const often = 1 << 14
	before := w.values.left
	if err := w.values.take(n); err != nil {
		return w.stop(err)
	}
	if before/often != w.values.left/often {
		return w.stop(w.ctx.Err())
	}
	return nil
}

// print counts n bytes.
func (w *Work) print(n int) error {
	if err := w.bytes.take(n); err != nil {
		return w.stop(err)
	}
	return w.stop(w.ctx.Err())
}

func (w *Work) stop(err error) error {
	w.err = err
	return err
}

func (a *allowance) take(n int) error {
	a.left -= n
	a.all -= n
	switch {
	case a.left < 0:
		return fmt.Errorf("%w: more than %d %s", ErrTooMuch, a.most, a.unit)
	case a.all < 0:
		return fmt.Errorf("%w: with the paths before it more than %d %s", ErrTooMuch, paths*a.most, a.unit)
	}
	return nil
}
