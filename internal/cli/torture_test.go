package cli

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// tortureVariable sets the number of damaged copies of TestTorture, and the first copy: "10000", or
// "10000 from 500". "make torture" sets it.
const (
	tortureVariable = "TORTURE"
	tortureOnly     = "TORTURE_ONLY" // prefix of the command lines to repeat
	tortureDefault  = 6
	tortureEnough   = 200 // broken promises
)

// TestTorture runs every command with a file argument on damaged copies of recorded snapshots, with
// wrong and right digests. A number always makes the same copy and the same command lines.
func TestTorture(t *testing.T) {
	if testing.Short() {
		t.Skip("starts workers")
	}
	n, from := tortureCopies(t)
	c := newCampaign(t)
	numbers := make(chan int)
	var workers sync.WaitGroup
	for i := range min(runtime.GOMAXPROCS(0), n) {
		w := &torturer{dir: filepath.Join(c.dir, "w"+strconv.Itoa(i))}
		require.NoError(t, os.Mkdir(w.dir, 0o700))
		require.NoError(t, os.Mkdir(w.dir+".tmp", 0o700))
		workers.Go(func() {
			defer w.end()
			for number := range numbers {
				c.copy(t, w, number)
			}
		})
	}
	ended := make(chan struct{}) // all workers; a fatal failure ends only one
	go func() { workers.Wait(); close(ended) }()
	for number := from; number < from+n && c.broken.Load() < tortureEnough; number++ {
		select {
		case numbers <- number:
		case <-ended:
			t.FailNow()
		}
		if number%250 == 249 {
			c.print(t, number+1-from)
		}
	}
	close(numbers)
	<-ended
	c.print(t, n)
}

// tortureCopies returns the number of copies, and the number of the first one.
func tortureCopies(t testing.TB) (n, from int) {
	text := os.Getenv(tortureVariable)
	if text == "" {
		return tortureDefault, 0
	}
	_, err := fmt.Sscanf(text+" from 0", "%d from %d", &n, &from)
	require.NoError(t, err)
	return n, from
}

// campaign counts the outcomes of command lines.
type campaign struct {
	dir    string
	bases  []tortureBase // repeated by weight
	files  map[string][]byte
	member *etcdtest.Member

	broken atomic.Int64 // promises

	mu       sync.Mutex
	statuses map[string]map[int]int // of commands
	took     map[string]time.Duration
	slowest  map[string]tortured
	largest  map[string]tortured
	restored int
	messages map[string]int
}

func newCampaign(t testing.TB) *campaign {
	c := &campaign{dir: t.TempDir(), files: map[string][]byte{}, statuses: map[string]map[int]int{},
		took: map[string]time.Duration{}, slowest: map[string]tortured{}, largest: map[string]tortured{},
		messages: map[string]int{}}
	fix := filepath.Join(c.dir, "fix")
	tortureFixtures(t, fix)
	c.member = tortureMember(t)
	for _, b := range tortureBases() {
		c.bases = append(c.bases, slices.Repeat([]tortureBase{b}, b.weight)...)
		if b.folder {
			continue
		}
		var err error
		c.files[b.name], err = os.ReadFile(filepath.Join(fix, b.name+".db"))
		require.NoError(t, err)
	}
	return c
}

// copy makes a damaged copy and runs all command lines on it.
func (c *campaign) copy(t *testing.T, w *torturer, number int) {
	base := c.bases[number*11%len(c.bases)]
	in := filepath.Join(w.dir, "in.db")
	what := ""
	if base.folder {
		what = c.member.WriteDamaged(t, in, number)
	} else {
		var file []byte
		what, file = etcdtest.Damage(number, c.files[base.name])
		require.NoError(t, os.WriteFile(in, file, 0o400))
	}
	before, content := tortureState(t, in)
	for _, line := range tortureLines(base, number) {
		if !strings.HasPrefix(strings.Join(line, " "), os.Getenv(tortureOnly)) {
			continue
		}
		o := w.run(t, line)
		wrong := c.check(t, w, base, o)
		if now, _ := tortureState(t, in); now != before {
			wrong = append(wrong, "the input is another file")
		}
		c.count(t, fmt.Sprintf("copy %d of %s, %s", number, base.name, what), o, wrong)
	}
	if _, now := tortureState(t, in); now != content {
		t.Errorf("copy %d: its bytes changed", number)
	}
	require.NoError(t, os.RemoveAll(in))
}

// tortureState returns the names, modes, sizes and times of a file, or of all files in a folder,
// and the digest of their content.
func tortureState(t testing.TB, path string) (files, content string) {
	t.Helper()
	digest := sha256.New()
	require.NoError(t, filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files += fmt.Sprintln(path, info.Mode(), info.Size(), info.ModTime(), info.Sys().(*syscall.Stat_t).Ino)
		if !info.Mode().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		_, _ = digest.Write(data)
		return err
	}))
	return files, string(digest.Sum(nil))
}

var (
	tortureTraces = regexp.MustCompile(`panic: |runtime error|goroutine \d+ \[|fatal error: |SIGSEGV|SIGBUS|\.go:\d+`)
	tortureVaries = regexp.MustCompile(`[0-9a-f]{8,}|\d+|"[^"]*"|/[^ :]*`)
)

// check returns the promises broken by a line, and removes its output.
func (c *campaign) check(t testing.TB, w *torturer, b tortureBase, o tortured) (wrong []string) {
	path, law := tortureLawOf(o.Args)
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	switch {
	case o.Died != "":
		return append(wrong, o.Died)
	case !slices.Contains(law.statuses, o.Status):
		say("status %d is none of %v in tortureLaws: %s", o.Status, law.statuses, o.Stderr)
	}
	if trace := tortureTraces.FindString(o.Stderr); trace != "" {
		say("stderr has %q", trace)
	}
	if strings.ContainsAny(o.Stderr, "\x1b\x00\x07") || strings.ContainsAny(o.Stdout, "\x1b") && o.Args[0] != "keys" {
		say("prints control characters")
	}
	for line := range strings.Lines(o.Stderr) {
		if strings.HasPrefix(line, "etcdshift: ") && !strings.Contains(line, "in.db") && path != "kcp verify" &&
			o.Status != exitInterrupted && o.Status != exitAllowed &&
			!(path == "import" && strings.Contains(line, ": refused: ")) { // names B, and each problem its key
			say("an error does not name the file: %s", strings.TrimSpace(line))
		}
	}
	for _, name := range w.files(t) {
		if name == "in.db" {
			continue
		}
		whole := name == "out" || strings.HasPrefix(name, "out.")
		if !whole || !slices.Contains(law.written, o.Status) && name != "out.json" {
			say("%s is there with status %d", name, o.Status)
		}
		if name == "out" {
			wrong = append(wrong, c.sound(t, w, b, o)...)
		}
		require.NoError(t, os.RemoveAll(filepath.Join(w.dir, name)))
	}
	return wrong
}

// names reports whether salvage named the value of a finding of verify, or did not show all.
func (o *tortured) names(finding string) bool {
	key, _, _ := strings.Cut(strings.Trim(finding, "\"\n"), ": ")
	key, _, _ = strings.Cut(key, `\x`) // JSON has U+FFFD for it
	return o.Status == exitAllowed && (strings.Contains(o.Stdout, key) ||
		strings.Contains(o.Stdout, "more; -o json lists them all"))
}

// sound checks an output: its mode, the result of "verify", and for one of fifty a restore.
func (c *campaign) sound(t testing.TB, w *torturer, b tortureBase, o tortured) (wrong []string) {
	if info, err := os.Stat(filepath.Join(w.dir, "out")); err != nil || info.Mode() != 0o600 {
		wrong = append(wrong, fmt.Sprint("out: ", info, err))
	}
	if o.Args[1] == "extract" {
		return wrong
	}
	verified := w.run(t, withFlags([]string{"verify", "out"}, strings.Fields(b.flags)))
	if verified.Status != 0 { // undecryptable values outside the named types stay unchanged
		input := w.run(t, withFlags([]string{"verify", "in.db"}, strings.Fields(b.flags)))
		for finding := range strings.Lines(verified.Stdout + verified.Died) {
			if o.Args[0] == "salvage" && o.names(finding) {
				continue
			}
			if !strings.Contains(strings.ReplaceAll(input.Stdout, "in.db", "out"), finding) {
				wrong = append(wrong, "verify of the output: "+finding)
			}
		}
	}
	c.mu.Lock()
	c.restored++
	try := c.restored%50 == 1
	c.mu.Unlock()
	if try && verified.Status == 0 {
		restored := filepath.Join(w.dir, "restored")
		if r := w.run(t, []string{"etcdutl", "out", "restored"}); r.Status != 0 &&
			!strings.Contains(verified.Stderr, "no digest") {
			wrong = append(wrong, "etcdutl: "+r.Died+r.Stderr)
		}
		require.NoError(t, os.RemoveAll(restored))
	}
	return wrong
}

// count adds the outcome of a line, and reports broken promises.
func (c *campaign) count(t testing.TB, what string, o tortured, wrong []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := o.Args[0]
	if slices.Contains([]string{"migrate", "kcp", "policy"}, name) {
		name += " " + o.Args[1]
	}
	if c.statuses[name] == nil {
		c.statuses[name] = map[int]int{}
	}
	c.statuses[name][o.Status]++
	c.took[name] += o.Took
	if o.Took > c.slowest[name].Took {
		c.slowest[name] = o
	}
	if o.Allocated > c.largest[name].Allocated {
		c.largest[name] = o
	}
	for line := range strings.Lines(o.Stderr) {
		if strings.HasPrefix(line, "etcdshift: ") {
			c.messages[tortureVaries.ReplaceAllString(strings.TrimSpace(line), "_")]++
		}
	}
	for _, w := range wrong {
		c.broken.Add(1)
		t.Errorf("%s: etcdshift %s: %s", what, strings.Join(o.Args, " "), w)
	}
}

func (c *campaign) print(t testing.TB, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := 0
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.statuses)) {
		for _, k := range c.statuses[name] {
			lines += k
		}
		fmt.Fprintf(&table, "%-26s %v, %v, at most %v and %d MB\n", name, c.statuses[name], c.took[name].Round(1e9),
			c.slowest[name].Took.Round(1e6), c.largest[name].Allocated>>20)
	}
	t.Logf("%d copies, %d command lines, %d broken promises, %d outputs\n%s", n, lines, c.broken.Load(),
		c.restored, table.String())
	if os.Getenv("TORTURE_MESSAGES") != "" {
		for _, m := range slices.Sorted(maps.Keys(c.messages)) {
			t.Logf("%6d %s", c.messages[m], m)
		}
	}
}
