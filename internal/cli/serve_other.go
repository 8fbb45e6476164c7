//go:build !unix

package cli

import (
	"fmt"
	"net"
	"runtime"
)

// listenUnix refuses, since other users could open the socket.
func listenUnix(string) (net.Listener, error) {
	return nil, fmt.Errorf("--unix: other users could open a socket on %s: use --listen", runtime.GOOS)
}
