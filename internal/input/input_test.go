package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	return path
}

func TestRegularFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	text, regular, err := ReadFile(t.Context(), path, 4)
	require.NoError(t, err)
	require.True(t, regular)
	require.Equal(t, "text", string(text))
	_, _, err = ReadFile(t.Context(), path, 3)
	require.EqualError(t, err, path+": longer than 3 bytes")
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	_, _, err := ReadFile(t.Context(), dir, 10)
	require.ErrorIs(t, err, unix.EISDIR)
	for _, device := range []string{"/dev/zero", "/dev/null"} {
		_, _, err = ReadFile(t.Context(), device, 10)
		require.EqualError(t, err, device+": is neither a regular file nor a pipe")
	}
	_, _, err = ReadFile(t.Context(), filepath.Join(dir, "missing"), 10)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The writer of a named pipe may come late, pause before writing, or write nothing.
func TestNamedPipes(t *testing.T) {
	for name, write := range map[string]func(w *os.File){
		"at once":   func(w *os.File) { fmt.Fprint(w, "text") },
		"in pieces": func(w *os.File) { fmt.Fprint(w, "te"); time.Sleep(200 * time.Millisecond); fmt.Fprint(w, "xt") },
		"late":      func(w *os.File) { time.Sleep(200 * time.Millisecond); fmt.Fprint(w, "text") },
		"nothing":   func(*os.File) {},
		"too much":  func(w *os.File) { fmt.Fprint(w, strings.Repeat("x", 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := fifo(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				time.Sleep(100 * time.Millisecond)
				w, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err == nil {
					write(w)
					_ = w.Close()
				}
			}()
			text, regular, err := ReadFile(t.Context(), path, 10)
			<-done
			require.False(t, regular)
			switch name {
			case "too much":
				require.EqualError(t, err, path+": longer than 10 bytes")
			case "nothing":
				require.NoError(t, err)
				require.Empty(t, text)
			default:
				require.NoError(t, err)
				require.Equal(t, "text", string(text))
			}
		})
	}
}

// A shell's <(command) names an already open pipe.
func TestOpenPipes(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	go func() {
		fmt.Fprint(w, "text")
		_ = w.Close()
	}()
	text, _, err := ReadFile(t.Context(), fmt.Sprintf("/dev/fd/%d", r.Fd()), 10)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}

// Waiting for a writer or for data can be interrupted.
func TestInterrupted(t *testing.T) {
	for _, writer := range []bool{false, true} {
		path := fifo(t)
		if writer {
			w, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			defer w.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, _, err := ReadFile(ctx, path, 10)
		require.ErrorIs(t, err, context.Canceled)
	}
}

// The kernel's log is a regular file whose reads wait for the next message.
func TestInterruptedRegularFile(t *testing.T) {
	const path = "/proc/kmsg"
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip(err)
	}
	_ = f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	ended := make(chan error, 1)
	go func() {
		_, _, err := ReadFile(ctx, path, 1<<30)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Skip(err) // some containers forbid reading it
		}
	case <-time.After(5 * time.Second):
		require.Fail(t, "the read goes on after its context ended")
	}
}

func TestInterruptedRead(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := readAll(ctx, r, 10)
	require.ErrorIs(t, err, context.Canceled)
}

func TestNoWriter(t *testing.T) {
	pipe, err := os.OpenFile(fifo(t), os.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer pipe.Close()
	_, err = readPipe(t.Context(), pipe, 10, time.Millisecond)
	require.EqualError(t, err, "nobody has opened this pipe for writing within 1ms")
}
