// Package input reads small files named by flags, such as manifests and certificates. A file may be
// a pipe: <(sops -d FILE).
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// patience is the maximum wait for a writer of a named pipe.
const patience = 10 * time.Second

// MaxFlagFile is the maximum size of files for ReadFlag. The CRDs of a Calico release have 2 MiB.
const MaxFlagFile = 64 << 20

// ErrEmpty is the error for an empty file.
var ErrEmpty = errors.New("is empty")

// ReadFlag reads the file named by a flag, such as "--v3-crds". An empty file is an error.
func ReadFlag(ctx context.Context, flag, path string) ([]byte, error) {
	text, _, err := ReadFile(ctx, path, MaxFlagFile)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case len(text) == 0:
		return nil, fmt.Errorf("%s: %q %w", flag, path, ErrEmpty)
	}
	return text, nil
}

// ReadFile reads a regular file or a pipe of at most limit bytes. It refuses folders and devices,
// waits at most ten seconds for the writer of a named pipe, and ends with ctx. regular reports
// whether the file can be read again.
func ReadFile(ctx context.Context, path string, limit int64) (text []byte, regular bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for a writer
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, false, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case mode.Type() == fs.ModeNamedPipe:
		text, err = readPipe(ctx, f, limit, patience)
	case mode.IsRegular():
		text, err = readAll(ctx, f, limit+1)
	default:
		return nil, false, fmt.Errorf("%s: is neither a regular file nor a pipe", path)
	}
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case err != nil:
		return nil, false, fmt.Errorf("%s: %w", path, err)
	case int64(len(text)) > limit:
		return nil, false, fmt.Errorf("%s: longer than %d bytes", path, limit)
	}
	return text, info.Mode().IsRegular(), nil
}

// readPipe reads a pipe to its end, or one byte more than limit.
func readPipe(ctx context.Context, pipe *os.File, limit int64, patience time.Duration) ([]byte, error) {
	begin, err := awaitWriter(ctx, pipe, patience)
	if err != nil {
		return nil, err
	}
	rest, err := readAll(ctx, pipe, limit+1-int64(len(begin)))
	return append(begin, rest...), err
}

// readAll reads at most limit bytes, and leaves a blocked read when ctx ends.
func readAll(ctx context.Context, from io.Reader, limit int64) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(from, limit))
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
