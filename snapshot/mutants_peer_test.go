package snapshot

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// peerVerdict is what etcd's own programs make of a file: an empty text is a pass.
type peerVerdict struct {
	Check   string // bbolt check
	Restore string // etcdutl snapshot restore
	Start   string // a server on what was restored: start, answer, write, compact, start again
	Served  string // see servedSum
	Lies    string // what is wrong with the numbers that it serves
}

// dies says whether the file cannot be restored and served.
func (p peerVerdict) dies() bool { return p.Restore != "" || p.Start != "" }

const (
	peerVariable = "SNAPSHOT_TEST_PEER" // set in a child that answers as peers
	peerMemory   = 3 << 30              // bytes a child may have
	peerPatience = 20 * time.Second     // of a child that says nothing; the machine may have other work
)

// peers are children that check files, because a bad one can end the process, hang it or fill
// memory.
type peers struct{ idle chan *peer }

type peer struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said chan string // closed when the child has ended
	log  *strings.Builder
	dir  string // for all that it writes; a child that dies leaves data directories behind
}

// end kills the child.
func (c *peer) end() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	_ = os.RemoveAll(c.dir)
}

func newPeers(t testing.TB, n int) *peers {
	p := &peers{idle: make(chan *peer, n)}
	for range n {
		p.idle <- nil
	}
	t.Cleanup(func() {
		for range n {
			if c := <-p.idle; c != nil {
				c.end()
			}
		}
	})
	return p
}

// ask has a child check the file at path. One that dies or hangs at a phase has failed it.
func (p *peers) ask(t testing.TB, path string) (v peerVerdict) {
	t.Helper()
	c := <-p.idle
	if c == nil {
		c = startPeer(t)
	}
	_, _ = fmt.Fprintln(c.in, path)
	for phase := ""; ; {
		end := ""
		select {
		case line, more := <-c.said:
			switch {
			case !more:
				end = "died: "
			case strings.HasPrefix(line, "{"):
				require.NoError(t, json.Unmarshal([]byte(line), &v))
				if v.dies() { // what is left of a server may still harm the next
					c.end()
					c = nil
				}
				p.idle <- c
				return v
			default:
				phase, _, _ = strings.Cut(line, " ")
				if _, text, done := strings.Cut(line, " "); done {
					require.NoError(t, json.Unmarshal([]byte(text), &v))
				}
				continue
			}
		case <-time.After(peerPatience):
			end = "hung"
		}
		c.end()
		if end != "hung" {
			end += lastWords(c.log.String()) // which is written until the end
		}
		if phase == "check" && v.Check == "" { // a fault of bbolt's check says nothing of the rest
			v.Check = end
			rest := p.askRest(t, path)
			rest.Check = v.Check
			return rest
		}
		p.idle <- nil
		v.Served = ""
		if phase == "restore" {
			v.Restore = end
		} else {
			v.Start = end
		}
		return v
	}
}

// askRest is ask without bbolt's check.
func (p *peers) askRest(t testing.TB, path string) peerVerdict {
	p.idle <- nil
	return p.ask(t, "-"+path)
}

// lastWords is what a process that ended said first: Go prints the panic before the stacks.
func lastWords(log string) string {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "panic") || strings.HasPrefix(line, "fatal") || strings.HasPrefix(line, "unexpected fault") {
			return strings.TrimSpace(line[:min(len(line), 200)])
		}
	}
	return "without a word"
}

func startPeer(t testing.TB) *peer {
	t.Helper()
	exe := must(os.Executable())(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	dir := must(os.MkdirTemp("", "peer"))(t)
	c := &peer{said: make(chan string, 16), log: &strings.Builder{}, dir: dir}
	c.cmd = exec.Command(exe, "-test.run", "^TestPeer$", "-test.timeout", "0")
	c.cmd.Env = append(os.Environ(), peerVariable+"=1", "TMPDIR="+dir)
	c.cmd.ExtraFiles, c.cmd.Stderr = []*os.File{w}, c.log
	c.in = must(c.cmd.StdinPipe())(t)
	require.NoError(t, c.cmd.Start())
	require.NoError(t, w.Close())
	go func() {
		defer close(c.said)
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			c.said <- lines.Text()
		}
	}()
	return c
}

// TestPeer is the child: it checks the files that standard input names and says on descriptor 3
// which phase begins, what is known by then, and the verdict.
func TestPeer(t *testing.T) {
	if os.Getenv(peerVariable) == "" {
		t.Skip("run by TestMutants")
	}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: peerMemory, Max: peerMemory}))
	wal.SegmentSizeBytes = 1 << 20 // of 64 MiB, which a restore and a server take from the disk at once
	out := os.NewFile(3, "verdicts")
	for path := range peerPaths() {
		t.Run("file", func(t *testing.T) {
			var v peerVerdict
			say := func(phase string) {
				text := must(json.Marshal(v))(t)
				must(fmt.Fprintf(out, "%s%s\n", phase, text))(t)
			}
			path, skip := strings.CutPrefix(path, "-")
			if !skip {
				say("check ")
				v.Check = caught(func() error { return boltCheck(t, path) })
			}
			say("restore ")
			var dir string
			v.Restore = caught(func() (err error) {
				if _, err = etcdtest.TryRestore(t, path, etcdtest.BumpRevision(1000)); err != nil { // the command that we print
					return err
				}
				dir, err = etcdtest.TryRestore(t, path)
				return err
			})
			if v.Restore == "" {
				say("start ")
				v.Start = caught(func() (err error) {
					v.Served, v.Lies, err = serve(t, dir)
					return err
				})
			}
			say("")
		})
	}
}

// peerPaths are the lines of standard input. Its end is that of the parent: the child goes too,
// whatever it hangs in, and leaves nothing.
func peerPaths() <-chan string {
	paths := make(chan string)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			paths <- lines.Text()
		}
		_ = os.RemoveAll(os.TempDir()) //lint:ignore SA9007 the parent gives the child a TMPDIR of its own
		os.Exit(1)
	}()
	return paths
}

// TestPeerEndsWithParent: a child goes when nothing can be asked of it any more, and takes what it
// wrote along.
func TestPeerEndsWithParent(t *testing.T) {
	c := startPeer(t)
	require.DirExists(t, c.dir)
	require.NoError(t, c.in.Close())
	for range c.said {
		t.Error("nothing was asked")
	}
	_ = c.cmd.Wait()
	require.NoDirExists(t, c.dir)
}

// caught is what went wrong with fn, in words.
func caught(fn func() error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("panic: %v", r)
		}
		text = text[:min(len(text), 400)]
	}()
	if err := fn(); err != nil {
		return err.Error()
	}
	return ""
}

// boltCheck is "bbolt check" on a copy.
func boltCheck(t testing.TB, path string) error {
	b := must(os.ReadFile(path))(t)
	copied := filepath.Join(t.TempDir(), "check.db")
	require.NoError(t, os.WriteFile(copied, b, 0o600))
	db, err := bbolt.Open(copied, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) (first error) {
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		return first
	})
}

// serve starts a server, reads everything, writes and compacts, looks at what it saved, and starts
// it again.
func serve(t testing.TB, dir string) (served, lies string, err error) {
	server, err := etcdtest.TryStart(t, dir)
	if err != nil {
		return "", "", err
	}
	kvs, err := readAllKeys(t, server)
	if err != nil {
		return "", "", err
	}
	served, lies = servedSum(kvs), wrongRevisions(t, server, kvs)
	if err := use(t, server); err != nil {
		return served, lies, err
	}
	lies = cmp.Or(lies, wrongVersions(t, server, kvs))
	last, err := readAllKeys(t, server)
	if err != nil {
		return served, lies, err
	}
	server.Stop()
	if server, err = etcdtest.TryStart(t, dir); err != nil {
		return served, lies, err
	}
	defer server.Stop()
	again, err := readAllKeys(t, server)
	if err == nil && servedSum(again) != servedSum(last) {
		err = fmt.Errorf("started again it serves %s", servedSum(again))
	}
	return served, lies, err
}

// use writes and compacts, and looks at what the server saves.
func use(t testing.TB, server *etcdtest.Server) error {
	for _, name := range []string{"/mutant", "/mutant", "/mutant2"} {
		if _, err := server.Client.Put(t.Context(), name, strings.Repeat("x", 5000)); err != nil && !refusedByAlarm(err) {
			return fmt.Errorf("put: %w", err)
		}
	}
	if _, err := server.Client.Delete(t.Context(), "/mutant", clientv3.WithPrefix()); err != nil && !refusedByAlarm(err) {
		return fmt.Errorf("delete: %w", err)
	}
	_, err := server.Client.Compact(t.Context(), etcdtest.Revision(t, server), clientv3.WithCompactPhysical())
	if err != nil && !refusedByAlarm(err) && !strings.Contains(err.Error(), "has been compacted") {
		return fmt.Errorf("compact: %w", err)
	}
	if _, err := server.Client.RoleList(t.Context()); err != nil {
		return fmt.Errorf("roles: %w", err)
	}
	saved := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, server, saved)
	if err := boltCheck(t, saved); err != nil {
		return fmt.Errorf("saved again: %w", err)
	}
	return nil
}

// wrongRevisions tells of a key with impossible numbers, or one that the server does not have at
// its own mod_revision, or has before.
func wrongRevisions(t testing.TB, server *etcdtest.Server, kvs []etcdtest.KV) string {
	for _, kv := range kvs[:min(len(kvs), 20)] {
		if kv.CreateRevision < 1 || kv.ModRevision < kv.CreateRevision || kv.Version < 1 {
			return fmt.Sprintf("%q has create_revision %d, mod_revision %d, version %d", kv.Key, kv.CreateRevision, kv.ModRevision, kv.Version)
		}
		for _, rev := range []int64{kv.ModRevision, max(1, kv.ModRevision-1)} {
			r, err := server.Client.Get(t.Context(), string(kv.Key), clientv3.WithRev(rev))
			if err != nil && strings.Contains(err.Error(), "has been compacted") {
				continue
			}
			has := err == nil && len(r.Kvs) == 1 && r.Kvs[0].ModRevision == kv.ModRevision
			if has != (rev == kv.ModRevision) {
				return fmt.Sprintf("%q of mod_revision %d, asked for at %d: %t, %v", kv.Key, kv.ModRevision, rev, has, err)
			}
		}
	}
	return ""
}

// wrongVersions tells of a key whose numbers do not go on from those that were served.
func wrongVersions(t testing.TB, server *etcdtest.Server, kvs []etcdtest.KV) string {
	for _, kv := range kvs[:min(len(kvs), 20)] {
		r, err := server.Client.Put(t.Context(), string(kv.Key), "x", clientv3.WithPrevKV())
		if err != nil || r.PrevKv == nil {
			continue // an alarm, or a lease that has expired
		}
		now, err := server.Client.Get(t.Context(), string(kv.Key))
		if err != nil || len(now.Kvs) != 1 || now.Kvs[0].Version != kv.Version+1 || now.Kvs[0].CreateRevision != kv.CreateRevision {
			return fmt.Sprintf("%q of version %d, created at %d, is after a put %v, %v", kv.Key, kv.Version, kv.CreateRevision, now, err)
		}
	}
	return ""
}

func refusedByAlarm(err error) bool {
	return strings.Contains(err.Error(), "database space exceeded") || strings.Contains(err.Error(), "corrupt cluster")
}

func readAllKeys(t testing.TB, server *etcdtest.Server) (kvs []etcdtest.KV, err error) {
	r, err := server.Client.Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	for _, kv := range r.Kvs {
		kvs = append(kvs, etcdtest.KV{
			Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease,
		})
	}
	return kvs, nil
}
