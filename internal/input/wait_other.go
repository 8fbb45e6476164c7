//go:build !unix

package input

import (
	"context"
	"os"
	"time"
)

// awaitWriter does nothing: on Windows a named pipe has a writer or cannot be opened.
func awaitWriter(context.Context, *os.File, time.Duration) ([]byte, error) { return nil, nil }
