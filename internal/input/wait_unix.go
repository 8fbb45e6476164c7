//go:build unix

package input

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// awaitWriter waits until a pipe has a writer or data, and returns bytes already read.
func awaitWriter(ctx context.Context, pipe *os.File, patience time.Duration) ([]byte, error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ctx.Err() == nil; {
		var begin [1]byte
		events, n, readErr := 0, 0, error(nil)
		err := raw.Control(func(fd uintptr) {
			events, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
			if events == 0 {
				n, readErr = unix.Read(int(fd), begin[:])
			}
		})
		switch {
		case err != nil:
			return nil, err
		case events > 0, n > 0, readErr == unix.EAGAIN: // data or its end; data; a writer without data
			return begin[:max(n, 0)], nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("nobody has opened this pipe for writing within %s", patience)
		}
	}
	return nil, ctx.Err()
}
