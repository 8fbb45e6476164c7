//go:build !unix

package cli

import (
	"fmt"
	"net"
	"runtime"
)

// listenUnix refuses a socket that other users could open.
func listenUnix(string) (net.Listener, error) {
	return nil, fmt.Errorf("--unix: other users could open a socket on %s: use --listen", runtime.GOOS)
}
