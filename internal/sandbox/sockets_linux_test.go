package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Members open no port; their sockets are files in the folder.
func TestSocketsAreInTheFolder(t *testing.T) {
	c, err := restoreAndStart(t, recorded+"etcd-3.7.db", RestoreOptions{Members: 3})
	require.NoError(t, err)
	folder := c.sandbox.Path()
	owned := socketsOf(folder)
	require.NotEmpty(t, owned)
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		for _, fields := range sockets(t, table) {
			require.False(t, owned[fields[9]], "%s: %s", table, fields)
		}
	}
	var names []string
	for _, fields := range sockets(t, "unix") {
		if len(fields) < 8 || !owned[fields[6]] {
			continue // another process, or an unnamed socket
		}
		name := fields[7]
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		require.Equal(t, folder, filepath.Dir(name))
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.ModeSocket|0o700, info.Mode(), name)
		names = append(names, filepath.Base(name))
	}
	for _, want := range []string{"m1.sock", "m2.sock", "m3.sock", "m1:2380", "m2:2380", "m3:2380"} {
		require.Contains(t, names, want)
	}
}

// socketsOf returns the socket inodes of all processes with a folder as working directory.
func socketsOf(folder string) map[string]bool {
	owned, inode := map[string]bool{}, regexp.MustCompile(`^socket:\[(\d+)\]$`)
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		dir, _ := os.Readlink(filepath.Join(filepath.Dir(filepath.Dir(link)), "cwd"))
		target, _ := os.Readlink(link)
		if found := inode.FindStringSubmatch(target); found != nil && dir == folder {
			owned[found[1]] = true
		}
	}
	return owned
}

// sockets returns the columns of a socket table of the kernel.
func sockets(t *testing.T, table string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/" + table)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Fields(line))
	}
	return rows[1:]
}
