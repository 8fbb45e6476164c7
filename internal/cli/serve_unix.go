//go:build unix

package cli

import (
	"net"

	"golang.org/x/sys/unix"
)

// listenUnix opens a socket, private to this user from the beginning.
func listenUnix(path string) (net.Listener, error) {
	before := unix.Umask(0o177)
	defer unix.Umask(before)
	return net.Listen("unix", path)
}
