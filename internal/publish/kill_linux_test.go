package publish

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The test binary, restarted with childEnv set, publishes files in the given folder until it is
// killed.
const childEnv = "PUBLISH_TEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(childEnv); how != "" {
		child(how, os.Getenv(childEnv+"_DIR"))
	}
	os.Exit(m.Run())
}

func payload(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 3*4096+i) }

// child never returns: it prints a line for each half-written file, and then publishes the file.
func child(how, dir string) {
	sys := systems()[how]
	for i := 0; ; i++ {
		f, err := create(filepath.Join(dir, fmt.Sprintf("out-%d", i)), sys)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		data := payload(i)
		f.File().Write(data[:4096])
		fmt.Println("half of", i)
		f.File().Write(data[4096:])
		if err := f.Publish(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// TestKilled kills at many moments: every named file is complete, and at most one temporary file
// remains.
func TestKilled(t *testing.T) {
	for how := range systems() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			probe, err := create(filepath.Join(t.TempDir(), "probe"), systems()[how])
			require.NoError(t, err)
			left := 1
			if probe.temp == "" {
				left = 0
			}
			require.NoError(t, probe.Discard())
			published := 0
			for i := range 25 {
				dir := t.TempDir()
				kill(t, how, dir, 1+i%3, time.Duration(i*i)*10*time.Microsecond)
				published += inspect(t, dir, left)
			}
			require.NotZero(t, published)
		})
	}
}

// kill starts a child, waits for a number of lines and then for delay, and sends SIGKILL.
func kill(t *testing.T, how, dir string, lines int, delay time.Duration) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+how, childEnv+"_DIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	read := bufio.NewScanner(out)
	for range lines {
		require.True(t, read.Scan(), "the child ended by itself")
	}
	time.Sleep(delay)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed")
}

// inspect checks all published files in dir and returns their number. At most temps other files may
// remain.
func inspect(t *testing.T, dir string, temps int) int {
	published, others := 0, 0
	for _, name := range names(t, dir) {
		info, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		var i int
		if _, err := fmt.Sscanf(name, "out-%d", &i); err != nil {
			require.True(t, strings.HasPrefix(name, ".out-") && strings.Contains(name, ".etcdshift-"), name)
			others++
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, payload(i), data, name)
		published++
	}
	require.LessOrEqual(t, others, temps)
	return published
}

func TestFolderWithoutPermission(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o555))
	asNobody := func(do func()) {
		do()
	}
	if os.Geteuid() == 0 {
		asNobody = func(do func()) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_, err := unix.SetfsuidRetUid(65534)
			require.NoError(t, err)
			defer unix.SetfsuidRetUid(0)
			do()
		}
	}
	for how, sys := range systems() {
		var createErr, scratchErr error
		asNobody(func() {
			_, createErr = create(filepath.Join(dir, "out.db"), sys)
			_, scratchErr = scratch(dir, sys)
		})
		require.ErrorIs(t, createErr, fs.ErrPermission, how)
		require.ErrorIs(t, scratchErr, fs.ErrPermission, how)
	}
	require.Empty(t, names(t, dir))
}
