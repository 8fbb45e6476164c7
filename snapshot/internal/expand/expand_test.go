package expand

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// unread is a file that must not be read.
type unread struct{ t *testing.T }

func (f unread) ReadAt([]byte, int64) (int, error) {
	f.t.Error("the file was read")
	return 0, io.EOF
}

// writerFunc is a writer that calls a function for each write.
type writerFunc func()

func (f writerFunc) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

// TestCancelled checks that an expansion ends with its context, before the first byte and later.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, format := range []string{"gzip", "zstd", "zip", "tar"} {
		_, _, err := File(ctx, unread{t}, 1<<20, format, 1<<30, io.Discard)
		require.ErrorIs(t, err, context.Canceled, format)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(bolt.Meta{PageSize: 4096, Root: 3, HighWater: 1 << 12, TxID: 1}.Pages())
	for range 15 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	require.NoError(t, z.Close())
	ctx, cancel = context.WithCancel(t.Context())
	_, _, err := File(ctx, bytes.NewReader(b.Bytes()), int64(b.Len()), "gzip", 1<<30, writerFunc(cancel))
	require.ErrorIs(t, err, context.Canceled, "while it is written")
}
