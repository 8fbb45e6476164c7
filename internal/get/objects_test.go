package get

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
)

// TestBoundedStops checks that a column that finds too much does not hide the end of the context.
func TestBoundedStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := &finder{ctx: ctx, Options: Options{Errs: io.Discard}}
	_, err := g.bounded(&gotten{Object: &inspect.Object{Entry: &inspect.Entry{}}}, "column C", jsonpath.ErrTooMuch)
	require.ErrorIs(t, err, context.Canceled)
}
