package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// peerVerdict holds the results of etcd's own programs for a file: an empty text is a pass.
type peerVerdict struct {
	Check   string // bbolt check
	Restore string // etcdutl snapshot restore
	Start   string // a server on the restored file: start, answer, write, compact, start again
	Served  string // see servedSum
	Lies    string // the fault in the served numbers
}

// dies reports whether the file cannot be restored and served.
func (p peerVerdict) dies() bool { return p.Restore != "" || p.Start != "" }

const (
	// the path, set in a child that runs as peer; a leading "-" skips bbolt's check
	peerVariable = "SNAPSHOT_TEST_PEER"
	peerMemory   = 3 << 30         // maximum bytes for a child
	peerPatience = 2 * time.Minute // for a child; the machine may be busy
)

// askPeers checks the file at path in a child process: a bad file can end the process, hang it or
// fill memory. A child that crashes or hangs in a phase has failed the phase.
func askPeers(t testing.TB, path string) (v peerVerdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), peerPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, must(os.Executable())(t), "-test.run", "^TestPeer$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), peerVariable+"="+path, "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} // the child ends with its parent
	var log strings.Builder
	cmd.Stderr = &log
	said, _ := cmd.Output()
	phase := ""
	for line := range strings.Lines(string(said)) {
		if rest, ours := strings.CutPrefix(line, "peer "); ours {
			var known string
			phase, known, _ = strings.Cut(rest, " ")
			require.NoError(t, json.Unmarshal([]byte(known), &v))
		}
	}
	failed := "died: " + lastWords(log.String())
	if ctx.Err() != nil {
		failed = "hung"
	}
	switch phase {
	case "end":
	case "check": // a fault in bbolt's check says nothing about the other phases
		v = askPeers(t, "-"+path)
		v.Check = failed
	case "restore":
		v.Restore = failed
	default:
		v.Start, v.Served = failed, ""
	}
	return v
}

// lastWords returns the first message of an ended process: Go prints the panic before the stacks.
func lastWords(log string) string {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "panic") || strings.HasPrefix(line, "fatal") ||
			strings.HasPrefix(line, "unexpected fault") {
			return strings.TrimSpace(line[:min(len(line), 200)])
		}
	}
	return "without a word"
}

// TestPeer is the child: TestPeer checks the file named in the environment, and prints each phase
// at its beginning and the results so far.
func TestPeer(t *testing.T) {
	path, skip := strings.CutPrefix(os.Getenv(peerVariable), "-")
	if path == "" {
		t.Skip("run by TestMutants")
	}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: peerMemory, Max: peerMemory}))
	var v peerVerdict
	say := func(phase string) { fmt.Printf("\npeer %s %s\n", phase, must(json.Marshal(v))(t)) }
	if !skip {
		say("check")
		v.Check = caught(func() error { return boltCheck(t, path) })
	}
	say("restore")
	var dir string
	v.Restore = caught(func() (err error) {
		if _, err = etcdtest.TryRestore(t, path, etcdtest.BumpRevision(1000)); err != nil { // the command that we print
			return err
		}
		dir, err = etcdtest.TryRestore(t, path)
		return err
	})
	if v.Restore == "" {
		say("start")
		v.Start = caught(func() (err error) {
			v.Served, v.Lies, err = serve(t, dir)
			return err
		})
	}
	say("end")
	os.Exit(0) // the rest of a server may hang
}

// caught returns the error or panic of fn as text.
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

// boltCheck runs "bbolt check" on a copy.
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

// serve starts a server, reads everything, writes and compacts, checks the saved file, and restarts
// the server.
func serve(t testing.TB, dir string) (served, lies string, err error) {
	server, err := etcdtest.TryStart(t, dir)
	if err != nil {
		return "", "", err
	}
	kvs, err := etcdtest.Range(t.Context(), server, "\x00", clientv3.WithFromKey())
	if err != nil {
		return "", "", err
	}
	served, lies = servedSum(kvs), wrongRevisions(t, server, kvs)
	if err := use(t, server); err != nil {
		return served, lies, err
	}
	lies = cmp.Or(lies, wrongVersions(t, server, kvs))
	last, err := etcdtest.Range(t.Context(), server, "\x00", clientv3.WithFromKey())
	if err != nil {
		return served, lies, err
	}
	server.Stop()
	if server, err = etcdtest.TryStart(t, dir); err != nil {
		return served, lies, err
	}
	defer server.Stop()
	again, err := etcdtest.Range(t.Context(), server, "\x00", clientv3.WithFromKey())
	if err == nil && servedSum(again) != servedSum(last) {
		err = fmt.Errorf("started again it serves %s", servedSum(again))
	}
	return served, lies, err
}

// use writes and compacts, and checks a snapshot of the server.
func use(t testing.TB, server *etcdtest.Server) error {
	for _, name := range []string{"/mutant", "/mutant", "/mutant2"} {
		if _, err := server.Client.Put(t.Context(), name, strings.Repeat("x", 5000)); err != nil &&
			!refusedByAlarm(err) {
			return fmt.Errorf("put: %w", err)
		}
	}
	if _, err := server.Client.Delete(t.Context(), "/mutant", clientv3.WithPrefix()); err != nil &&
		!refusedByAlarm(err) {
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

// wrongRevisions describes a key with impossible numbers, or a key that the server lacks at the
// mod_revision of the key, or already has before.
func wrongRevisions(t testing.TB, server *etcdtest.Server, kvs []etcdtest.KV) string {
	for _, kv := range kvs[:min(len(kvs), 20)] {
		if kv.CreateRevision < 1 || kv.ModRevision < kv.CreateRevision || kv.Version < 1 {
			return fmt.Sprintf("%q has create_revision %d, mod_revision %d, version %d", kv.Key, kv.CreateRevision,
				kv.ModRevision, kv.Version)
		}
		for _, rev := range []int64{kv.ModRevision, max(1, kv.ModRevision-1)} {
			r, err := server.Client.Get(t.Context(), string(kv.Key), clientv3.WithRev(rev))
			if err != nil && strings.Contains(err.Error(), "has been compacted") {
				continue
			}
			has := err == nil && len(r.Kvs) == 1 && r.Kvs[0].ModRevision == kv.ModRevision
			if has != (rev == kv.ModRevision) {
				return fmt.Sprintf("%q of mod_revision %d, asked for at %d: %t, %v", kv.Key,
					kv.ModRevision, rev, has, err)
			}
		}
	}
	return ""
}

// wrongVersions describes a key whose numbers after a put do not continue the served numbers.
func wrongVersions(t testing.TB, server *etcdtest.Server, kvs []etcdtest.KV) string {
	for _, kv := range kvs[:min(len(kvs), 20)] {
		r, err := server.Client.Put(t.Context(), string(kv.Key), "x", clientv3.WithPrevKV())
		if err != nil || r.PrevKv == nil {
			continue // an alarm, or an expired lease
		}
		now, err := server.Client.Get(t.Context(), string(kv.Key))
		if err != nil || len(now.Kvs) != 1 || now.Kvs[0].Version != kv.Version+1 ||
			now.Kvs[0].CreateRevision != kv.CreateRevision {
			return fmt.Sprintf("%q of version %d, created at %d, is after a put %v, %v", kv.Key, kv.Version,
				kv.CreateRevision, now, err)
		}
	}
	return ""
}

func refusedByAlarm(err error) bool {
	return strings.Contains(err.Error(), "database space exceeded") || strings.Contains(err.Error(), "corrupt cluster")
}

const (
	agreed      = "agreed: sound"
	agreedBad   = "agreed: fatal"
	agreedLies  = "agreed: lies, and the server lives"
	unexplained = "not explained"
)

// explanation is an intended difference between this package and its peers.
type explanation struct {
	match *regexp.Regexp // for a finding, an oddity or the text of a peer
	why   string
}

// accepts explains findings in files on which a 3.7 server starts, by the text of the finding.
func accepts() []explanation {
	return []explanation{
		{regexp.MustCompile(`meta page [01]:|bytes follow the image|file is truncated`),
			"a snapshot has two right metas and ends at their high-water mark; bbolt looks at one, and at no size " +
				"until it needs a page"},
		{regexp.MustCompile(`free list: .*(lies outside|is named free)`),
			"a server uses the page as soon as it needs one: it did not yet"},
		{regexp.MustCompile(`is not a KeyValue \(field [1-6]\)`), "etcd 3.4 to 3.6 die of it, 3.7 loses the field"},
		{regexp.MustCompile(`bucket "[a-zR]*": .*field \d has wire type`),
			"etcd 3.4 to 3.6 die of it, 3.7 loses the field"},
		{regexp.MustCompile(`holds a bucket of its own|is not a bucket`), "bbolt reads it as empty; etcd stores none"},
		{regexp.MustCompile(`lies in the page's own table|shares bytes with`),
			"bbolt reads what lies there, twice; it never writes such a page"},
		{regexp.MustCompile(`revision key of 18 bytes`),
			"a server dies when it reads the record by its revision, which nobody did yet"},
		{regexp.MustCompile(`does not sort after the one before it`),
			"bbolt check passes over inline buckets; a search misses entries"},
	}
}

// dies explains files without a finding but with an error of a peer, by the text of the oddity or
// the peer.
func dies() []explanation {
	return []explanation{
		{regexp.MustCompile(`its name is not UTF-8`), "warned of: the server runs, and cannot list its users or roles"},
		{regexp.MustCompile(`neither in use nor free`),
			"warned of: bbolt check finds lost pages, a server lives with them"},
	}
}

// compare returns the reason why both verdicts agree, or need not agree.
func compare(ours verdict, theirs peerVerdict) string {
	bad := theirs.dies() || theirs.Check != ""
	switch {
	case len(ours.Findings) == 0 && !bad && ours.Served == theirs.Served:
		return agreed
	case ours.worst() == Fatal && bad:
		return agreedBad
	case ours.worst() == Lies && !bad:
		return agreedLies
	case len(ours.Findings) > 0:
		return explain(accepts(), strings.Join(ours.Findings, "\n"))
	}
	return explain(dies(), strings.Join(append(ours.Odd, theirs.Check, theirs.Restore, theirs.Start), "\n"))
}

func explain(known []explanation, text string) string {
	for _, e := range known {
		if e.match.MatchString(text) {
			return e.why
		}
	}
	return unexplained
}
