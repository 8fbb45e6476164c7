package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain makes this test binary run parts or, with parentEnv set, a whole run.
func TestMain(m *testing.M) {
	if code, isPart := Main(testParts(), os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	if dir := os.Getenv(parentEnv); dir != "" {
		os.Exit(parent(dir))
	}
	os.Exit(m.Run())
}

func testParts() map[string]Part {
	return map[string]Part{
		"wait": func(ctx context.Context, _ []byte) error { <-ctx.Done(); return nil },
		"hang": func(context.Context, []byte) error { select {} },
		"eat": func(context.Context, []byte) error {
			for n := 1 << 20; ; n *= 2 {
				fmt.Println(len(bytes.Repeat([]byte{1}, n)))
			}
		},
		"done": func(context.Context, []byte) error { return nil },
		"fail": func(_ context.Context, config []byte) error { return fmt.Errorf("config is %s", config) },
		"exit": func(_ context.Context, config []byte) error {
			fmt.Fprintln(os.Stderr, "it was all too much")
			os.Exit(5)
			return nil
		},
		"panic": func(_ context.Context, config []byte) error {
			for i := range 1000 {
				fmt.Fprintln(os.Stderr, i, strings.Repeat("x", i))
			}
			var text string
			_ = json.Unmarshal(config, &text)
			panic(text)
		},
		"fatal": func(_ context.Context, config []byte) error {
			fmt.Fprintln(os.Stderr, `{"level":"warn","msg":"look out"}`)
			fmt.Fprintln(os.Stderr,
				`{"level":"fatal","ts":"2026","caller":"mvcc/kvstore.go:498","msg":"failed to unmarshal",`+
					`"error":"unexpected EOF","revision":1234567890123456789,"key":"a"}`)
			os.Exit(1)
			return nil
		},
		"environment": func(context.Context, []byte) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			fmt.Fprintln(os.Stderr, dir, os.Environ())
			return os.WriteFile("made", nil, 0o666)
		},
	}
}

const parentEnv = "SANDBOX_TEST_PARENT"

// parent is a program with a sandbox. It prints the folder once all parts run, and ends like the
// command.
func parent(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := New(dir, 1)
	if err != nil {
		return 1
	}
	defer s.Close()
	_, err = s.Start(ctx, "a", "hang", nil)
	_, err2 := s.Command(ctx, "b", "/bin/sh", "-c", "sleep 1000 & sleep 1000")
	if err := errors.Join(err, err2); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.Path())
	<-ctx.Done()
	return 0
}

func newSandbox(t *testing.T) *Sandbox {
	t.Helper()
	s, err := New(shortDir(t), 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// shortDir returns a folder with a short path, for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func start1(t *testing.T, s *Sandbox, part string, config any) *Process {
	t.Helper()
	p, err := s.Start(t.Context(), part, part, config)
	require.NoError(t, err)
	return p
}

func TestFolderIsPrivate(t *testing.T) {
	s := newSandbox(t)
	require.NoError(t, start1(t, s, "environment", nil).Wait(t.Context()))
	info, err := os.Stat(s.Path())
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o700, info.Mode())
	for _, name := range []string{"made", "environment.log"} {
		info, err := os.Stat(filepath.Join(s.Path(), name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), name)
	}
}

func TestEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy")
	t.Setenv("KUBECONFIG", "/root/.kube/config")
	s := newSandbox(t)
	p := start1(t, s, "environment", nil)
	require.NoError(t, p.Wait(t.Context()))
	text, err := os.ReadFile(p.Log())
	require.NoError(t, err)
	require.Contains(t, string(text), s.Path()+" [PATH=")
	require.Contains(t, string(text), "HOME="+s.Path()+" TMPDIR="+s.Path())
	require.NotContains(t, string(text), "PROXY")
	require.NotContains(t, string(text), "KUBECONFIG")
}

func TestNoSpace(t *testing.T) {
	dir := shortDir(t)
	_, err := New(dir, math.MaxInt64)
	require.ErrorIs(t, err, ErrNoSpace)
	require.ErrorContains(t, err, dir+": not enough space: 8796093022207 MiB are needed, ")
	_, err = New(filepath.Join(dir, strings.Repeat("long/", 20)), 1)
	require.ErrorIs(t, err, ErrLongPath)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestEnds(t *testing.T) {
	s := newSandbox(t)
	for _, tc := range []struct {
		part   string
		config any
		want   string
	}{
		{"done", nil, ""},
		{"fail", map[string]int{"a": 1}, `fail ended: exit status 1: config is {"a":1}`},
		{"exit", nil, "exit ended: exit status 5: it was all too much"},
		{"panic", "'put' is out of order", "panic ended: exit status 2: panic: 'put' is out of order"},
		{"fatal", nil, "fatal ended: exit status 1: failed to unmarshal: unexpected EOF (key a, revision " +
			"1234567890123456789)"},
		{"absent", nil, `absent ended: exit status 1: "absent" is no part of this program`},
	} {
		t.Run(tc.part, func(t *testing.T) {
			t.Parallel()
			p := start1(t, s, tc.part, tc.config)
			err := p.Wait(t.Context())
			require.Equal(t, err, p.Err())
			if tc.want == "" {
				require.NoError(t, err)
				require.EqualError(t, Explain(os.ErrClosed, p), "done has ended")
				return
			}
			require.EqualError(t, err, tc.want)
			require.Equal(t, err, Explain(os.ErrClosed, p))
			var died *Died
			require.ErrorAs(t, err, &died)
			require.LessOrEqual(t, len(died.Log), lastLines)
		})
	}
}

func TestCommandEnds(t *testing.T) {
	s := newSandbox(t)
	for script, want := range map[string]string{
		"true":                    "",
		"echo no; exit 7":         "0 ended: exit status 7: no",
		"echo no >&2; kill -9 $$": "0 ended: signal: killed: no",
		"echo 'F1123 12:00:00.000000 1 server.go:9] no way'; echo more; exit 255": "0 ended: exit status 255: no way",
		"echo 'SIGSEGV: segmentation violation'; echo gs 0x0; exit 2": "0 ended: exit status 2: SIGSEGV: " +
			"segmentation violation",
	} {
		p, err := s.Command(t.Context(), "0", "/bin/sh", "-c", script)
		require.NoError(t, err)
		err = p.Wait(t.Context())
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
		require.NoError(t, os.Remove(p.Log()))
	}
	p, err := s.Command(t.Context(), "0", "absent")
	require.NoError(t, err)
	require.ErrorContains(t, p.Wait(t.Context()), "absent: no such file or directory")
}

// A process that exceeds its memory limit dies. The message of Go's runtime depends on the failed
// allocation: of the program, or of the collector.
func TestMemoryHasALimit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has the limit")
	}
	s := newSandbox(t)
	s.most = 512 << 20
	err := start1(t, s, "eat", nil).Wait(t.Context())
	require.Error(t, err)
	require.Regexp(t, "^eat ended: exit status 2: (fatal error|SIGSEGV|SIGABRT): ", err.Error())
}

func TestStop(t *testing.T) {
	s := newSandbox(t)
	waits, hangs := start1(t, s, "wait", nil), start1(t, s, "hang", nil)
	slept, err := s.Command(t.Context(), "sleep", "/bin/sleep", "1000")
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	hangs.Stop(soon)
	waits.Stop(t.Context())
	slept.Stop(t.Context())
	waits.Stop(t.Context())
	for _, p := range []*Process{waits, hangs, slept} {
		require.NoError(t, p.Err())
		<-p.Done()
	}
}

func TestUntil(t *testing.T) {
	s := newSandbox(t)
	tries := 0
	p := start1(t, s, "wait", nil)
	require.NoError(t, p.Until(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return os.ErrClosed
		}
		return nil
	}))
	never := func(context.Context) error { return os.ErrClosed }
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := p.Until(soon, never)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, os.ErrClosed)
	// A probe waiting for an answer ends with the process.
	forever := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	require.EqualError(t, start1(t, s, "panic", "no").Until(t.Context(), forever),
		"panic ended: exit status 2: panic: no")
	require.EqualError(t, start1(t, s, "done", nil).Until(t.Context(), never), "done has ended")
}

func TestClosed(t *testing.T) {
	s := newSandbox(t)
	start1(t, s, "hang", nil)
	require.NoError(t, s.Close())
	require.NoFileExists(t, s.Path())
	_, err := s.Start(t.Context(), "late", "wait", nil)
	require.ErrorIs(t, err, ErrClosed)
}

func TestMainIsForPartsOnly(t *testing.T) {
	for _, args := range [][]string{{"etcdshift"}, {"etcdshift", "get", "pods", "x"}, {"etcdshift", Word}} {
		_, isPart := Main(nil, args, strings.NewReader(""), os.Stderr)
		require.False(t, isPart)
	}
	var said strings.Builder
	code, isPart := Main(nil, []string{"etcdshift", Word, runPart, "x"}, strings.NewReader(""), &said)
	require.True(t, isPart)
	require.Equal(t, 1, code)
	require.Equal(t, "part failed: only etcdshift itself starts its parts\n", said.String())
}

// Runs that start during Clear keep their folders.
func TestClearBesideNew(t *testing.T) {
	dir, ended, failed := shortDir(t), make(chan struct{}), make(chan error, 1)
	go func() {
		var failures []error
		for {
			select {
			case <-ended:
				failed <- errors.Join(failures...)
				return
			default:
				removed, err := Clear(dir)
				if failures = append(failures, err); len(removed) > 0 {
					failures = append(failures, fmt.Errorf("removed %s", removed))
				}
			}
		}
	}()
	for range 500 {
		s, err := New(dir, 1)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(s.Path(), "file"), nil, 0o600))
		require.NoError(t, s.Close())
	}
	close(ended)
	require.NoError(t, <-failed)
}

// After a panic of the caller with a deferred Close, nothing is left.
func TestPanicLeavesNothing(t *testing.T) {
	s := newSandbox(t)
	p := start1(t, s, "hang", nil)
	require.Panics(t, func() {
		defer s.Close()
		panic("no")
	})
	<-p.Done()
	require.NoDirExists(t, s.Path())
}
