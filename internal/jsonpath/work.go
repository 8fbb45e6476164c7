package jsonpath

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/encoding"
)

// ErrTooMuch is returned where a path finds or prints more than there is room for.
var ErrTooMuch = errors.New("the path finds too much")

// One path may find and print this and a multiple of the object's size; all paths eightfold.
const (
	freeValues = 1 << 17
	freeBytes  = 16 << 20
	paths      = 8
)

// Work is what paths may find and print in one object.
type Work struct {
	ctx           context.Context
	values, bytes allowance
	err           error // that ended the path
}

// allowance is how much of something is left to a path, and to all paths.
type allowance struct {
	most, left, all int
	unit            string
}

// NewWork is the work that paths may do on an object. They stop when ctx ends.
func NewWork(ctx context.Context, content any) *Work {
	weight := encoding.Weigh(content)
	allow := func(most int, unit string) allowance { return allowance{most: most, all: paths * most, unit: unit} }
	return &Work{ctx: ctx, values: allow(freeValues+weight/4, "values"), bytes: allow(freeBytes+8*weight, "bytes")}
}

// begin gives the next path what one path may do.
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
