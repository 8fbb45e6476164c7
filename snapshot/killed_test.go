package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"
)

// If these variables are set, the test binary writes one large output.
const (
	childIn    = "SNAPSHOT_TEST_IN"
	childOut   = "SNAPSHOT_TEST_OUT"
	childHow   = "SNAPSHOT_TEST_HOW"   // key of writers
	childLimit = "SNAPSHOT_TEST_LIMIT" // maximum bytes of a file
)

func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 1 << 20 // instead of 64 MiB, which a restore and a server allocate at once
	if in := os.Getenv(childIn); in != "" {
		child(in, os.Getenv(childOut), os.Getenv(childLimit))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child prints a line at the beginning, and errors to standard error.
func child(in, out, limit string) {
	if limit != "" {
		signal.Ignore(unix.SIGXFSZ)
		n, _ := strconv.ParseUint(limit, 10, 64)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			panic(err)
		}
	}
	s, err := Open(context.Background(), in, Config{})
	if err == nil {
		fmt.Println("begin")
		_, err = writers()[os.Getenv(childHow)](context.Background(), out, s, plain(largePlan))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withLargeKeys is withKeys with values of 10 KB.
func withLargeKeys(n int) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		if err := withKeys(n)(tx); err != nil {
			return err
		}
		b := tx.Bucket([]byte("key"))
		for i := range n {
			if err := putRecord(b, created(int64(i+30), fmt.Sprintf("/k/%06d", i),
				strings.Repeat("v", 10_000))); err != nil {
				return err
			}
		}
		return nil
	}
}

func largePlan(yield func(Change, error) bool) {
	value := []byte(strings.Repeat("n", 10_000))
	for i := range 1000 {
		if !yield(Change{Key: fmt.Appendf(nil, "/k/%06d", i), Value: value, Prior: int64(i + 30)}, nil) {
			return
		}
	}
}

func start(t testing.TB, how, in, out string, limit int64) *exec.Cmd {
	t.Helper()
	exe := must(os.Executable())(t)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childIn+"="+in, childOut+"="+out, childHow+"="+how)
	if limit > 0 {
		cmd.Env = append(cmd.Env, childLimit+"="+strconv.FormatInt(limit, 10))
	}
	return cmd
}

// TestKilled kills a writing process at random moments: the output is absent or complete, no other
// file is left, and the input is unchanged.
func TestKilled(t *testing.T) {
	in := copyOf(t, rebuilt(t, fixture(t), 4096, withLargeKeys(2000)))
	for how, write := range writers() {
		t.Run(how, func(t *testing.T) {
			whole := filepath.Join(t.TempDir(), "whole.db")
			must(write(t.Context(), whole, open(t, in), plain(largePlan)))(t)
			want := sumOf(t, whole)
			r := rand.New(rand.NewPCG(2, 2))
			killed := 0
			for i := range 10 {
				if kill(t, how, in, want, time.Duration(r.IntN(1+i*13_000))*time.Microsecond) {
					killed++
				}
			}
			require.NotZero(t, killed)
		})
	}
}

// kill reports whether the process was killed before its end.
func kill(t testing.TB, how, in string, want [32]byte, after time.Duration) bool {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.db")
	cmd := start(t, how, in, out, 0)
	stdout := must(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	require.True(t, bufio.NewScanner(stdout).Scan(), "it begins")
	time.Sleep(after)
	require.NoError(t, ignoreDone(cmd.Process.Kill()))
	err := cmd.Wait()
	// possibly killed between the publication and the end
	if left := leftBehind(t, filepath.Dir(out)); len(left) > 0 {
		require.Equal(t, []string{"out.db"}, left)
		require.Equal(t, want, sumOf(t, out))
	} else {
		require.Error(t, err)
	}
	return err != nil
}

// leftBehind names the files in dir, except for the temporary file that remains after a kill on
// file systems without unnamed files.
func leftBehind(t testing.TB, dir string) (names []string) {
	t.Helper()
	nameless := false
	if fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600); err == nil {
		nameless = true
		require.NoError(t, unix.Close(fd))
	}
	left := must(os.ReadDir(dir))(t)
	for _, e := range left {
		if !nameless && strings.HasPrefix(e.Name(), ".out.db.etcdshift-") {
			continue
		}
		names = append(names, e.Name())
	}
	return names
}

func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// TestFileSizeLimit checks that a write that exceeds the file size limit of the process, in a page
// or in the digest, is an error and leaves no file.
func TestFileSizeLimit(t *testing.T) {
	in := copyOf(t, rebuilt(t, fixture(t), 4096, withLargeKeys(2000)))
	s := open(t, in)
	for how, write := range writers() {
		whole := filepath.Join(t.TempDir(), "whole.db")
		res := must(write(t.Context(), whole, s, plain(largePlan)))(t)
		for _, limit := range []int64{4096, 1 << 20, res.Bytes / 2, res.Bytes - 4096, res.Bytes - 1} {
			out := filepath.Join(t.TempDir(), "out.db")
			said, err := start(t, how, in, out, limit).CombinedOutput()
			require.Error(t, err, "%s: %d bytes", how, limit)
			require.Contains(t, string(said), out)
			require.Contains(t, string(said), "file too large")
			nothingIn(t, filepath.Dir(out))
		}
	}
}
