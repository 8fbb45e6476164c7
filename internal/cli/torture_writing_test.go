package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writingLines are commands that write OUT, with the same bytes each time.
func writingLines() []string {
	return []string{
		"migrate storage-versions ../fix/storage.db OUT --allow pruned-field",
		"migrate calico-v3 IN OUT",
		"compact IN OUT",
		"delete IN OUT cm --all -A --allow would-be-plaintext",
		"patch IN OUT cm --all -A --type merge -p {\"metadata\":{\"annotations\":{\"a\":\"b\"}}}",
		"policy apply IN OUT -f ../fix/mutating.yaml",
		"run ../fix/plan.yaml IN OUT",
		"prepare-restore IN OUT",
		"crop IN OUT -n default --needed",
		"extract IN OUT -n default --needed",
		"purge IN OUT -n team-a --scrub",
		"kcp extract 1yd25nnf5yvh8dd6 ../fix/kcp-root.db OUT",
		"kcp import ../fix/team.archive ../fix/kcp.db OUT",
		"report ../fix/etcd.db OUT",
		"sign ../fix/etcd.db --key ../fix/backup.key --signature OUT",
	}
}

// writer is a command line that writes a file, with the outcome of an undisturbed run.
type writer struct {
	program, dir string // the program, and its working directory
	line         []string
	in           []byte
	status       int
	out          []byte
	took         time.Duration
}

// newWriter runs a line undisturbed. The program is TORTURE_PROGRAM, or else this test binary.
func newWriter(t testing.TB, line string) *writer {
	t.Helper()
	program := os.Getenv("TORTURE_PROGRAM")
	if program == "" {
		var err error
		program, err = exec.LookPath("etcdshift")
		require.NoError(t, err)
	}
	top := t.TempDir()
	tortureFixtures(t, filepath.Join(top, "fix"))
	w := &writer{program: program, dir: filepath.Join(top, "w")}
	require.NoError(t, os.MkdirAll(w.dir+".tmp", 0o700))
	require.NoError(t, os.Mkdir(w.dir, 0o700))
	for word := range strings.FieldsSeq(line) {
		word = strings.ReplaceAll(word, "IN", "in.db")
		if word == "OUT" {
			word = map[bool]string{true: "out.html", false: "out"}[strings.HasPrefix(line, "report")]
		}
		w.line = append(w.line, word)
	}
	var err error
	w.in, err = os.ReadFile(filepath.Join(top, "fix", "calico.db"))
	require.NoError(t, err)
	w.renew(t)
	begin := time.Now()
	text, err := w.command().CombinedOutput()
	w.took = time.Since(begin)
	w.status = exitOf(t, err)
	require.Contains(t, []int{exitDone, exitFound, exitAllowed}, w.status, "%s: %s", line, text)
	w.out, err = os.ReadFile(w.outPath())
	require.NoError(t, err, "%s", text)
	return w
}

func exitOf(t testing.TB, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// outPath returns the output file of the line.
func (w *writer) outPath() string {
	for _, word := range w.line {
		if strings.HasPrefix(word, "out") {
			return filepath.Join(w.dir, word)
		}
	}
	return ""
}

// command returns the line, after the words of a wrapper.
func (w *writer) command(before ...string) *exec.Cmd {
	words := append(append(before, w.program), w.line...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+w.dir+".tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// renew removes the output and writes the input again.
func (w *writer) renew(t testing.TB) {
	for _, name := range []string{w.outPath(), filepath.Join(w.dir, "in.db")} {
		if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "in.db"), w.in, 0o600))
}

// check returns the faults after a disturbed run. The output must be complete, or missing with a
// failing exit status. The folder must have no other new file. The input must be unchanged, unless
// changedInput is set.
func (w *writer) check(t testing.TB, status int, said []byte, changedInput bool) (wrong []string) {
	t.Helper()
	out, err := os.ReadFile(w.outPath())
	written := err == nil
	switch {
	case written && !bytes.Equal(out, w.out):
		wrong = append(wrong, "another output than undisturbed")
	case !written && slices.Contains([]int{exitDone, exitAllowed}, status):
		wrong = append(wrong, "no output")
	case written && slices.Contains([]int{exitFailed, exitCannotCheck}, status) &&
		bytes.Contains(said, []byte("written")): // stdout failed after the file was written
	case written && status != w.status && status >= 0:
		wrong = append(wrong, "an output with this status")
	case status > 5:
		wrong = append(wrong, "not a status of ours")
	}
	if trace := traceOf(said); trace != nil {
		wrong = append(wrong, fmt.Sprintf("stderr has %q", trace))
	}
	for _, dir := range []string{w.dir, w.dir + ".tmp"} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); path != w.outPath() && e.Name() != "in.db" {
				wrong = append(wrong, "left: "+e.Name())
				require.NoError(t, os.RemoveAll(path))
			}
		}
	}
	if in, err := os.ReadFile(filepath.Join(w.dir, "in.db")); !changedInput && (err != nil || !bytes.Equal(in, w.in)) {
		wrong = append(wrong, "the input changed")
	}
	return wrong
}

// outOfMemory matches Go's last output without memory: README.md promises status 2 and such words.
// Go 1.26 does not check one allocation of its garbage collector (runtime.newSpanSPMC).
var outOfMemory = regexp.MustCompile(
	`^fatal error: .*(out of memory|cannot allocate memory|reserve page summary memory|cannot map pages)` +
		`|^SIGSEGV: .*\nPC=.* addr=0x0\n\ngoroutine 0 .*\nruntime\.\(\*spanQueue\)\.tryDrain\(`)

// traceOf returns a trace of the runtime in a program's output, except for an out-of-memory trace.
func traceOf(said []byte) []byte {
	at := tortureTraces.FindIndex(said)
	if at == nil || outOfMemory.Match(said[at[0]:]) {
		return nil
	}
	return said[at[0]:at[1]]
}

// TestTraceOf: Go may end the program only because of too little memory.
func TestTraceOf(t *testing.T) {
	const stack = "\n\ngoroutine 1 [running]:\nmain.main()\n\t/main.go:7 +0x1d\n"
	for said, want := range map[string]string{
		"fatal error: runtime: cannot allocate memory" +
			stack: "",
		"runtime: x\nfatal error: pageAlloc: out of memory" +
			stack: "",
		"fatal error: failed to reserve page summary memory" +
			stack: "",
		"fatal error: concurrent map writes" +
			stack: "fatal error: ",
		"fatal error: all goroutines are asleep - deadlock!" +
			stack: "fatal error: ",
		"fatal error: stack overflow\n\nruntime: out of memory" +
			stack: "fatal error: ",
		"SIGSEGV: segmentation violation\nPC=0x43 m=0 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x6 m=0 " +
			"[idle]:\nruntime.(*spanQueue).tryDrain(0x4": "",
		"SIGSEGV: segmentation violation\nPC=0x43 m=0 sigcode=1 addr=0x0\n\ngoroutine 7 gp=0x6 m=0 " +
			"[idle]:\nmain.main(0x4": "SIGSEGV",
		"panic: a" + stack +
			"fatal error: runtime: out of memory": "panic: ",
		"etcdshift: in.db: out of memory" +
			stack: "goroutine 1 [",
		"etcdshift: in.db: no space left on device; cannot " +
			"allocate memory\n": "",
	} {
		require.Equal(t, want, string(traceOf([]byte(said))), "%s", said)
	}
}

// eachWriter runs a test for each line, with the line's share of TORTURE_WRITING, or of small.
func eachWriter(t *testing.T, small int, test func(t *testing.T, w *writer, n int)) {
	n := small
	if text := os.Getenv("TORTURE_WRITING"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	} else if testing.Short() {
		t.Skip("starts programs")
	}
	lines := writingLines()
	for i, line := range lines {
		if share := (n + len(lines) - 1 - i) / len(lines); share > 0 {
			t.Run(strings.Join(strings.Fields(line)[:2], " "),
				func(t *testing.T) { test(t, newWriter(t, line), share) })
		}
	}
}

// TestTortureKilled: SIGKILL at random moments leaves no output or a complete one, and no other
// file.
func TestTortureKilled(t *testing.T) {
	eachWriter(t, 3, func(t *testing.T, w *writer, n int) {
		r, whole := rand.New(rand.NewPCG(16, uint64(len(w.line)))), 0
		for range n {
			w.renew(t)
			cmd := w.command()
			var said bytes.Buffer
			cmd.Stderr = &said
			require.NoError(t, cmd.Start())
			time.Sleep(time.Duration(r.Float64() * 1.1 * float64(w.took)))
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			status := exitOf(t, cmd.Wait()) // -1 for a killed process
			if wrong := w.check(t, status, said.Bytes(), false); wrong != nil {
				t.Errorf("status %d: %s: %s", status, strings.Join(wrong, "; "), said.String())
			}
			if _, err := os.Stat(w.outPath()); err == nil {
				whole++
			}
		}
		t.Logf("%d kills within %s: %d whole outputs", n, w.took, whole)
	})
}

// TestTortureInput: an input truncated, overwritten or replaced during the run gives the output of
// the opened file, or an error with its name.
func TestTortureInput(t *testing.T) {
	eachWriter(t, 2, func(t *testing.T, w *writer, n int) {
		if !slices.Contains(w.line, "in.db") {
			t.Skip("reads a fixture")
		}
		r, whole := rand.New(rand.NewPCG(17, 1)), 0
		path := filepath.Join(w.dir, "in.db")
		for i := range n {
			w.renew(t)
			cmd := w.command()
			var said bytes.Buffer
			cmd.Stderr = &said
			require.NoError(t, cmd.Start())
			time.Sleep(time.Duration(r.Float64() * float64(w.took)))
			switch i % 4 {
			case 0:
				require.NoError(t, os.Truncate(path, 0))
			case 1:
				require.NoError(t, os.Truncate(path, r.Int64N(int64(len(w.in)))))
			case 2:
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				require.NoError(t, err)
				_, err = f.WriteAt(make([]byte, 64<<10), r.Int64N(int64(len(w.in)-64<<10)))
				require.NoError(t, err)
				require.NoError(t, f.Close())
			case 3:
				require.NoError(t, os.WriteFile(w.dir+".other", []byte("another file"), 0o600))
				require.NoError(t, os.Rename(w.dir+".other", path))
			}
			status := exitOf(t, cmd.Wait())
			wrong := w.check(t, status, said.Bytes(), true)
			if status != w.status && !strings.Contains(said.String(), "in.db") {
				wrong = append(wrong, "does not name the file")
			}
			if wrong != nil {
				t.Errorf("way %d: status %d: %s: %s", i%4, status, strings.Join(wrong, "; "), said.String())
			}
			if status == w.status {
				whole++
			}
		}
		t.Logf("%d changes within %s: %d whole outputs", n, w.took, whole)
	})
}

// TestTortureFaults: the nth call of each thread fails, for each n, in the program itself. The
// write with which Go's runtime wakes its poller is skipped: it goes to an eventfd, whose writes no
// disk makes fail, and Go would end the program.
func TestTortureFaults(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	faults := []string{"pwrite64:error=ENOSPC", "write:error=ENOSPC", "fsync:error=EIO", "linkat:error=ENOSPC",
		"pwrite64:error=EIO", "linkat:error=EIO", "linkat:error=EPERM", "ftruncate:error=ENOSPC",
		"sync_file_range:error=EIO", "fchmod:error=EPERM", "openat:error=EIO", "openat:error=EMFILE",
		"pread64:error=EIO", "mmap:error=ENOMEM", "newfstatat:error=EIO", "fstat:error=EIO",
		"copy_file_range:error=EIO", "renameat2:error=EIO", "unlinkat:error=EIO", "readlinkat:error=EIO"}
	eachWriter(t, 1, func(t *testing.T, w *writer, n int) {
		faults := faults
		if n < 50 {
			faults = faults[:4]
		}
		tried, failed := 0, 0 // without harmless failures
		trace := w.dir + ".trace"
		for _, fault := range faults {
			for nth := 1; nth < 400; nth++ {
				w.renew(t)
				call, _, _ := strings.Cut(fault, ":")
				cmd := w.command(strace, "-f", "-qq", "-o", trace, "-e", "trace="+call, "-e",
					fmt.Sprintf("inject=%s:when=%d", fault, nth))
				var said bytes.Buffer
				cmd.Stderr = &said
				status := exitOf(t, cmd.Run())
				log, err := os.ReadFile(trace)
				require.NoError(t, err)
				if !bytes.Contains(log, []byte("(INJECTED)")) {
					break
				}
				if bytes.Contains(said.Bytes(), []byte("fatal error: runtime: netpollBreak write failed")) {
					continue
				}
				if tried++; status != w.status {
					failed++
				}
				if wrong := w.check(t, status, said.Bytes(), false); wrong != nil {
					t.Errorf("%s:when=%d: status %d: %s: %s", fault, nth, status, strings.Join(wrong, "; "),
						said.String()[:min(said.Len(), 700)])
				}
			}
		}
		t.Logf("%d faults, %d ended the run", tried, failed)
		require.Positive(t, failed)
	})
}

// TestTortureFull: the disk is full, at each of many sizes.
func TestTortureFull(t *testing.T) {
	if confine([]string{"disk", os.TempDir(), "4096", "true"}) != nil {
		t.Skip("this system lets nobody mount a small disk")
	}
	confined, err := exec.LookPath("confine")
	require.NoError(t, err)
	eachWriter(t, 2, func(t *testing.T, w *writer, n int) {
		small := filepath.Join(w.dir, "small")
		require.NoError(t, os.Mkdir(small, 0o700))
		out := filepath.Base(w.outPath())
		for i, word := range w.line {
			if word == out {
				w.line[i] = "small/" + out
			}
		}
		written := 0
		for i := range n {
			w.renew(t)
			size := 4096 + i*len(w.out)*5/(4*n)
			script := `"$@"; echo status $?; ls -A small; sha256sum small/* 2>/dev/null; true`
			cmd := w.command(confined, "disk", small, strconv.Itoa(size), "sh", "-c", script, "sh")
			text, err := cmd.Output()
			require.NoError(t, err)
			_, after, _ := strings.Cut(string(text), "status ")
			lines := strings.Split(strings.TrimSpace(after), "\n")
			switch {
			case lines[0] == strconv.Itoa(w.status) && len(lines) == 3 && lines[1] == out:
				written++
			case lines[0] == "1" && len(lines) == 1, lines[0] == "5" && len(lines) == 1:
			default:
				t.Errorf("a disk of %d bytes: %s", size, after)
			}
		}
		t.Logf("%d sizes: %d outputs", n, written)
	})
}
