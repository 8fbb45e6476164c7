package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// crashes is the number of crashes of each release: CRASHES, or a few.
func crashes() int {
	if n, err := strconv.Atoi(os.Getenv("CRASHES")); err == nil {
		return n
	}
	return 4
}

// crashedStatus is a part of the documents of status and save.
type crashedStatus struct {
	Revision int64
	HashKV   string
	Keys     int
	Leases   int
	Warnings []string
	DataDir  struct{ Database, Entry, Uncommitted uint64 }
}

// statusOf saves a data directory and returns the status of both, which are equal.
func statusOf(t testing.TB, dir string) crashedStatus {
	t.Helper()
	out := filepath.Join(t.TempDir(), "saved.db")
	text, err := exec.Command(etcdshift(t), "save", "-q", "-o", "json", "--data-dir", dir, out).CombinedOutput()
	require.NoError(t, err, "%s", text)
	var answer crashedStatus
	require.NoError(t, json.Unmarshal(text, &answer))
	var of [2]crashedStatus
	for i, in := range []string{out, dir} {
		text, err = exec.Command(etcdshift(t), "status", "-q", "-o", "json", in).Output()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &of[i]))
	}
	require.NoError(t, os.Remove(out))
	saved, st := of[0], of[1]
	require.Equal(t, []any{st.Revision, st.HashKV, st.Keys, st.Leases},
		[]any{saved.Revision, saved.HashKV, saved.Keys, saved.Leases})
	st.Warnings = answer.Warnings
	return st
}

// TestCrashedMember kills each release of etcd under load, several times on the same data
// directory. Each time the directory, read before the restart, has the revision, HashKV, keys and
// leases of the restarted server.
func TestCrashedMember(t *testing.T) {
	for _, release := range releasesOfEtcd() {
		t.Run(release, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "crashed.etcd")
			server, behind, applied := startRelease(t, release, dir), 0, uint64(0)
			for n := range crashes() {
				stop := load(server.Client, uint64(n), workload{keys: 1000, size: 2000, leases: true, compacts: true})
				time.Sleep(time.Duration(300+rand.IntN(900)) * time.Millisecond)
				require.NoError(t, server.process.cmd.Process.Kill())
				<-server.process.done
				stop()
				st := statusOf(t, dir)
				require.Zero(t, st.DataDir.Uncommitted)
				if st.DataDir.Entry > st.DataDir.Database {
					behind++
					applied += st.DataDir.Entry - st.DataDir.Database
				}

				server = startRelease(t, release, dir)
				ctx := t.Context()
				r, err := server.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
				require.NoError(t, err)
				require.Equal(t, []int64{r.Header.Revision, r.Count}, []int64{st.Revision, int64(st.Keys)})
				hash, err := server.HashKV(ctx, server.url, st.Revision)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(hash.Hash), st.HashKV)
				leases, err := server.Leases(ctx)
				require.NoError(t, err)
				require.Len(t, leases.Leases, st.Leases)
			}
			t.Logf("the database was behind its log in %d of %d crashes, by %d entries", behind, crashes(), applied)
		})
	}
}

// TestCrashedCluster kills the three members of a cluster of each release under load. The
// directory of each member, read before the restart, has the content of the restarted cluster at
// its revision: nothing in it was lost. What the cluster has beyond it is in entries that were
// named as not known to be committed.
func TestCrashedCluster(t *testing.T) {
	for _, release := range releasesOfEtcd() {
		t.Run(release, func(t *testing.T) {
			m := newMembers(t, release, t.TempDir())
			m.start(t)
			behind, left, taken := 0, 0, int64(0)
			for n := range crashes() {
				stop := load(m.Client, uint64(n), workload{keys: 1000, size: 2000, leases: true})
				time.Sleep(time.Duration(300+rand.IntN(900)) * time.Millisecond)
				for _, p := range m.processes {
					require.NoError(t, p.cmd.Process.Kill())
				}
				for _, p := range m.processes {
					<-p.done
				}
				stop()
				var all []crashedStatus
				last, reach := int64(0), int64(0)
				for _, name := range m.names {
					st := statusOf(t, filepath.Join(m.dir, name))
					if all = append(all, st); st.DataDir.Entry > st.DataDir.Database {
						behind++
					}
					if st.DataDir.Uncommitted > 0 {
						left++
						require.Contains(t, strings.Join(st.Warnings, "\n"), fmt.Sprintf(
							"%d entries of the log after entry %d are left out: this member does not know whether "+
								"they are committed", st.DataDir.Uncommitted, st.DataDir.Entry))
					}
					last = max(last, st.Revision)
					reach = max(reach, st.Revision+int64(st.DataDir.Uncommitted))
				}
				proven := provenOf(t, m)
				require.GreaterOrEqual(t, proven.Revision, last)

				m.start(t)
				r, err := m.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
				require.NoError(t, err)
				require.GreaterOrEqual(t, r.Header.Revision, last)
				require.LessOrEqual(t, r.Header.Revision, reach)
				taken += r.Header.Revision - last
				require.GreaterOrEqual(t, r.Header.Revision, proven.Revision, "a proven entry was lost")
				hash, err := m.HashKV(t.Context(), m.urls[0], proven.Revision)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(hash.Hash), proven.HashKV)
				for i, st := range all {
					hash, err := m.HashKV(t.Context(), m.urls[i], st.Revision)
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(hash.Hash), st.HashKV, m.names[i])
				}
			}
			t.Logf("of %d directories %d were behind their log, and %d had uncommitted entries; the clusters "+
				"restored %d revisions of them", 3*crashes(), behind, left, taken)
		})
	}
}

// provenOf returns the newest state that the logs of all members together prove.
func provenOf(t testing.TB, m *members) (newest crashedStatus) {
	t.Helper()
	args := []string{"status", "-q", "-o", "json"}
	for _, name := range m.names {
		args = append(args, filepath.Join(m.dir, name))
	}
	text, err := exec.Command(etcdshift(t), args...).Output()
	require.NoError(t, err, "%s", text)
	var answer struct {
		Snapshots []crashedStatus
		Verdict   string
	}
	require.NoError(t, json.Unmarshal(text, &answer))
	require.Len(t, answer.Snapshots, len(m.names))
	require.Contains(t, answer.Verdict, "all ")
	for _, st := range answer.Snapshots {
		if st.Revision > newest.Revision {
			newest = st
		}
	}
	return newest
}

// TestPurgedLog writes until etcd removes the first file of its log, and compacts all. A restored
// server serves the revisions that "save --wal-history" calls complete like the server before the
// compaction.
func TestPurgedLog(t *testing.T) {
	t.Parallel()
	const release, snapshots = "etcd-3.6", "--snapshot-count=100"
	dir := filepath.Join(t.TempDir(), "purged.etcd")
	first := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	server := startRelease(t, release, dir, snapshots)
	stop := load(server.Client, 1, workload{keys: 50, size: 40_000})
	begun := int64(0)
	eventually(t, time.Minute, "a second file of the log with some writes", func() error {
		files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
		require.NoError(t, err)
		switch now := server.revision(t); {
		case len(files) < 2:
			return errors.New("one file")
		case begun == 0:
			begun = now
			fallthrough
		case now < begun+2500:
			return fmt.Errorf("%d writes", now-begun)
		}
		return nil
	})
	stop()
	server.process.stop()
	server = startRelease(t, release, dir, snapshots, "--max-wals=1")
	eventually(t, time.Minute, "the first file of the log is removed", func() error {
		if _, err := os.Stat(first); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})

	newest, want := server.revision(t), map[int64]map[string]record{}
	for revision := newest - 1000; revision < newest; revision += 20 {
		want[revision] = server.recordsAt(t, revision)
	}
	_, err := server.Compact(t.Context(), newest, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	server.process.stop()
	out, again := filepath.Join(t.TempDir(), "all.db"), filepath.Join(t.TempDir(), "again")
	text, err := exec.Command(etcdshift(t), "save", "-q", "-o", "json", "--data-dir", dir, "--wal-history",
		out).CombinedOutput()
	require.NoError(t, err, "%s", text)
	var answer struct {
		History struct {
			Oldest   int64
			Inferred *struct{ Sure, Flagged int }
		}
	}
	require.NoError(t, json.Unmarshal(text, &answer))
	require.NotNil(t, answer.History.Inferred)
	require.Less(t, answer.History.Oldest, newest-500)

	restored(t, out, "--data-dir", again, "--bump-revision", "0", "--mark-compacted=false")
	server = startRelease(t, release, again)
	compared := 0
	for revision, want := range want {
		if revision >= answer.History.Oldest {
			require.Equal(t, want, server.recordsAt(t, revision), revision)
			compared++
		}
	}
	t.Logf("%d of the revisions %d to %d: %d writes sure, %d not", compared, answer.History.Oldest, newest,
		answer.History.Inferred.Sure, answer.History.Inferred.Flagged)
}

// workload describes what load writes.
type workload struct {
	keys, size       int // size: of values, at most
	leases, compacts bool
}

// load writes to a server like API servers do, until it dies: conditional puts and deletions, and
// perhaps leases and compactions.
func load(s *clientv3.Client, seed uint64, w workload) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for client := range uint64(4) {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, client))
			var lease clientv3.LeaseID
			for i := 0; ctx.Err() == nil; i++ {
				within, done := context.WithTimeout(ctx, time.Second)
				key := fmt.Sprintf("/registry/configmaps/ns-%d/cm-%d", r.IntN(5), r.IntN(w.keys/5))
				rev, value := int64(0), strings.Repeat("x", r.IntN(w.size))
				if old, err := s.Get(within, key); err == nil && len(old.Kvs) > 0 {
					rev = old.Kvs[0].ModRevision
				}
				op := clientv3.OpPut(key, value)
				switch n := r.IntN(20); {
				case n < 4:
					op = clientv3.OpDelete(key)
				case n < 8 && lease != 0:
					op = clientv3.OpPut(key, value, clientv3.WithLease(lease))
				case n == 19 && w.leases:
					if granted, err := s.Grant(within, 3600); err == nil {
						lease = granted.ID
					}
				case n == 18 && lease != 0 && r.IntN(4) == 0:
					_, _ = s.Revoke(within, lease)
				case n == 17 && w.compacts && r.IntN(8) == 0:
					_, _ = s.Compact(within, rev)
				}
				_, _ = s.Txn(within).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).Then(op).Commit()
				done()
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// TestLargeMember reads a data directory with a database of LARGE MiB and 320 MiB of log after it,
// in 256 MiB of memory: the pages of mapped files are not counted. It needs three times the space.
func TestLargeMember(t *testing.T) {
	size, _ := strconv.ParseInt(os.Getenv("LARGE"), 10, 64)
	if size == 0 {
		t.Skip("LARGE is not set")
	}
	dir := filepath.Join(t.TempDir(), "large.etcd")
	db, before := filepath.Join(dir, "member", "snap", "db"), filepath.Join(t.TempDir(), "before.db")
	server := startRelease(t, "etcd", dir, "--quota-backend-bytes=8589934592", "--snapshot-count=10000")
	fill(t, server, size<<20)
	time.Sleep(40 * time.Second) // until etcd has removed old files of the log
	server.process.stop()
	text, err := exec.Command("cp", db, before).CombinedOutput()
	require.NoError(t, err, "%s", text)
	server = startRelease(t, "etcd", dir, "--quota-backend-bytes=8589934592", "--max-wals=0")
	fill(t, server, 320<<20)
	require.NoError(t, server.process.cmd.Process.Kill())
	<-server.process.done
	require.NoError(t, os.Rename(before, db))

	for _, line := range []string{"status DIR -q", "verify DIR -q", "history DIR /registry/configmaps/ns-7/cm-7 -q",
		"save -q --data-dir DIR OUT"} {
		words := strings.NewReplacer("DIR", dir, "OUT", filepath.Join(t.TempDir(), "out.db")).Replace(line)
		cmd := exec.Command(etcdshift(t), strings.Fields(words)...)
		require.NoError(t, cmd.Start())
		ended := make(chan error)
		go func() { ended <- cmd.Wait() }()
		peak, running := int64(0), true
		for running {
			select {
			case err := <-ended:
				require.NoError(t, err, line)
				running = false
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, anonymous(cmd.Process.Pid))
			}
		}
		t.Logf("%s: %d MiB, %v of CPU time", line, peak>>20, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		require.Less(t, peak, int64(256<<20), line)
	}
}

// fill puts keys of 8 KiB until they have a size.
func fill(t testing.TB, s *store, size int64) {
	t.Helper()
	const value = 8 << 10
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			data := make([]byte, value)
			r := rand.NewChaCha8([32]byte{1})
			for n := next.Add(1); n*value < size; n = next.Add(1) {
				_, _ = r.Read(data)
				key := fmt.Sprintf("/registry/configmaps/ns-%d/cm-%d", n%1000, n)
				if _, err := s.Put(t.Context(), key, string(data)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// anonymous returns the memory of a process without the pages of mapped files.
func anonymous(pid int) (bytes int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	_, _ = fmt.Sscanf(rest, "%d", &bytes)
	return bytes << 10
}
