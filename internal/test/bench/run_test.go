package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// generation is part of input file names: increase it when the content of inputs changes.
const generation = "2"

// sample is the measurement of a run: seconds of wall clock and of all CPUs, and peak anonymous
// memory in MiB.
type sample struct{ wall, cpu, anonymous float64 }

// then returns the sum of two consecutive runs.
func (s sample) then(o sample) sample {
	return sample{s.wall + o.wall, s.cpu + o.cpu, max(s.anonymous, o.anonymous)}
}

func (s sample) cells() string { return fmt.Sprintf("%.3f | %.2f | %.0f", s.wall, s.cpu, s.anonymous) }

func medians(samples []sample) sample {
	median := func(of func(sample) float64) float64 {
		var values []float64
		for _, s := range samples {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return sample{median(func(s sample) float64 { return s.wall }), median(func(s sample) float64 { return s.cpu }),
		median(func(s sample) float64 { return s.anonymous })}
}

// bench measures in the folder dir with programs in the folder bin.
type bench struct {
	testing.TB
	dir, bin string
}

// TestBench prints the table of "make bench" for the sizes in BENCH_SIZES, such as "XS S".
// BENCH_ROWS is a regular expression for rows, and BENCH_DIR the folder for inputs and outputs.
func TestBench(t *testing.T) {
	asked := strings.Fields(os.Getenv("BENCH_SIZES"))
	if len(asked) == 0 {
		t.Skip("BENCH_SIZES is not set: see make bench")
	}
	names := regexp.MustCompile(os.Getenv("BENCH_ROWS"))
	bin, err := filepath.Abs(filepath.Join("..", "..", "..", "bin"))
	require.NoError(t, err)
	b := bench{TB: t, dir: os.Getenv("BENCH_DIR"), bin: bin}
	require.NoError(t, os.MkdirAll(b.dir, 0o700))
	fmt.Fprint(t.Output(), "| work | size | s | CPU s | MiB | peer | s | CPU s | MiB | ratio | aim "+
		"|\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	done := 0
	for _, size := range sizes() {
		for _, row := range rows() {
			if slices.Contains(asked, size.name) && names.MatchString(row.name) &&
				(row.sizes == nil || slices.Contains(row.sizes, size.name)) {
				b.measure(row, size)
				done++
			}
		}
	}
	require.Positive(t, done, "no row of size %q matches %q", asked, names)
}

// measure prints the lines of a row: one per peer and one per aim without a peer.
func (b bench) measure(r row, s size) {
	in := b.input(r.input, s)
	ours := func(out string) sample {
		return b.run(r.exit, filepath.Join(b.bin, "etcdshift"), place(r.args, in, out)...)
	}
	runs := []func(out string) sample{ours}
	var peers []peer
	for _, p := range r.peers {
		if run := b.peer(p.name, in); run != nil {
			peers, runs = append(peers, p), append(runs, run)
		}
	}
	var growth, allowed int64
	samples := make([][]sample, len(runs))
	for turn := range s.runs + 1 { // the first is a warm-up
		for i, run := range runs {
			out := filepath.Join(b.dir, fmt.Sprintf("out-%d", os.Getpid()))
			syscall.Sync() // writes of earlier runs must not slow this run
			sample := run(out)
			if turn > 0 {
				samples[i] = append(samples[i], sample)
			} else if i == 0 && r.grows {
				growth, allowed = b.growth(in, out)
			}
			require.NoError(b, os.RemoveAll(out))
		}
	}
	own := medians(samples[0])
	line := func(rest string) {
		fmt.Fprintf(b.Output(), "| %s | %s | %s | %s |\n", r.name, s.name, own.cells(), rest)
	}
	for i, p := range peers {
		theirs := medians(samples[i+1])
		line(fmt.Sprintf("%s | %s | %.2f | %s", p.name, theirs.cells(), own.wall/theirs.wall,
			aim(own.wall/theirs.wall, p.aim, "%.2f")))
	}
	switch {
	case r.seconds > 0 && s.name == "S":
		line("– | | | | | " + aim(own.wall, r.seconds, "%.2f s"))
	case len(peers) == 0:
		line("– | | | | | –")
	}
	if r.memory > 0 {
		line("– | | | | | " + aim(own.anonymous, r.memory+r.perKey*lateWrites*float64(s.keys)/(1<<20), "%.0f MiB"))
	}
	if r.grows {
		line(fmt.Sprintf("growth %d KiB | | | | | %s", growth>>10,
			aim(float64(growth>>10), float64(allowed>>10), "%.0f KiB")))
	}
}

// aim returns an aim and whether it was met, or a dash.
func aim(got, want float64, format string) string {
	switch text := fmt.Sprintf(format, want); {
	case want == 0:
		return "–"
	case got > want:
		return text + ", missed"
	default:
		return text
	}
}

func place(args []string, in, out string) (placed []string) {
	for _, arg := range args {
		switch arg {
		case "IN":
			arg = in
		case "OUT":
			arg = out
		}
		placed = append(placed, arg)
	}
	return placed
}

// peer returns the function that runs a peer, or nil if the program is missing.
func (b bench) peer(name, in string) func(out string) sample {
	program := func(name string, args ...string) func(string) sample {
		path, err := exec.LookPath(filepath.Join(b.bin, name))
		if err != nil {
			path, err = exec.LookPath(name)
		}
		if err != nil {
			b.Logf("left out: %v", err)
			return nil
		}
		return func(out string) sample { return b.run(0, path, place(args, in, out)...) }
	}
	switch name {
	case peerB:
		cp, hash := program("baseline", "copy", "IN", "OUT"), program("baseline", "hash", "IN")
		return func(out string) sample { return cp(out).then(hash(out)) }
	case peerHash:
		return program("baseline", "hash", "IN")
	case peerRestore:
		return program("etcdutl", "snapshot", "restore", "IN", "--data-dir", "OUT")
	case peerMember:
		return program("etcdutl", "snapshot", "restore", filepath.Join(in, "member", "snap", "db"), "--skip-hash-check",
			"--data-dir", "OUT")
	case peerDefrag:
		restore, defrag := b.peer(peerRestore, in), program("etcdutl", "defrag", "--data-dir", "OUT")
		if restore == nil || defrag == nil {
			return nil
		}
		return func(out string) sample {
			restore(out)
			return defrag(out)
		}
	case peerStatus:
		return program("etcdutl", "snapshot", "status", "IN")
	case peerCheck:
		return program("bbolt", "check", "IN")
	case peerAuger:
		return program("auger", "extract", "--fields=key", "-f", "IN")
	}
	require.Fail(b, "unknown peer", name)
	return nil
}

// run measures a command and discards its output.
func (b bench) run(exit int, program string, args ...string) sample {
	cmd := exec.Command(program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	start := time.Now()
	require.NoError(b, cmd.Start())
	ended, peak := make(chan struct{}), make(chan float64)
	go func() { peak <- anonymous(cmd.Process.Pid, ended) }()
	_ = cmd.Wait() // the exit status is checked below
	wall := time.Since(start)
	close(ended)
	state := cmd.ProcessState
	require.Equal(b, exit, state.ExitCode(), "%s: %s", cmd, &said)
	return sample{wall.Seconds(), (state.UserTime() + state.SystemTime()).Seconds(), <-peak}
}

// anonymous returns the peak anonymous memory of a process, in MiB.
func anonymous(pid int, ended <-chan struct{}) (peak float64) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return peak
		case <-tick.C:
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // missing after the process ends
		_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
		var kib float64
		_, _ = fmt.Sscan(string(rest), &kib)
		peak = max(peak, kib/1024)
	}
}

// input returns the path of a variant, created on first use.
func (b bench) input(variant string, s size) string {
	path := filepath.Join(b.dir, strings.Join([]string{generation, s.name, variant}, "-")+".db")
	if _, err := os.Stat(path); err != nil {
		start := time.Now()
		unfinished := path + ".new"
		makeInput(b, variant, s.keys, unfinished)
		require.NoError(b, os.Rename(unfinished, path))
		b.Logf("made %s in %.1f s", path, time.Since(start).Seconds())
	}
	return path
}

// growth returns the size difference between output and input, and the allowed difference.
func (b bench) growth(in, out string) (growth, allowed int64) {
	ctx := context.Background()
	before, err := snapshot.Open(ctx, in, snapshot.Config{SkipDigest: true})
	require.NoError(b, err)
	defer before.Close()
	after, err := snapshot.Open(ctx, out, snapshot.Config{SkipDigest: true})
	require.NoError(b, err)
	defer after.Close()
	revision, err := before.Revision(ctx)
	require.NoError(b, err)
	var changed int64
	for r, err := range after.Records(ctx) {
		require.NoError(b, err)
		if r.Revision.Main > revision {
			changed += int64(len(r.Key) + len(r.Value))
		}
	}
	return after.Size() - before.Size(), changed + changed/10 + 32<<10
}
