package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	quiet        = 5 * time.Second // without a change: an API server has completed its startup
	quietTimeout = 2 * time.Minute
)

// store is a running etcd.
type store struct {
	*clientv3.Client
	url     string
	process *process
}

// startStore runs etcd on a restored data directory, without syncs because the directory is
// temporary.
func startStore(t testing.TB, dataDir string) *store {
	t.Helper()
	return startRelease(t, "etcd", dataDir)
}

// startRelease is startStore for an etcd of bin/, with more flags.
func startRelease(t testing.TB, server, dataDir string, more ...string) *store {
	t.Helper()
	s := &store{}
	s.process, _ = startReady(t, server, func(port string) bool {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://127.0.0.1:" + port},
			Logger: zap.NewNop()})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := client.Get(ctx, "ready"); err != nil {
			_ = client.Close()
			return false
		}
		s.Client, s.url = client, client.Endpoints()[0]
		return true
	}, func(port string) []string {
		return append([]string{
			"--name=default", "--data-dir=" + dataDir, "--log-level=warn", "--unsafe-no-fsync",
			"--listen-client-urls=http://127.0.0.1:" + port, "--advertise-client-urls=http://127.0.0.1:" + port,
			"--listen-peer-urls=http://127.0.0.1:" + freePort(t),
		}, more...)
	})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// record is the state of a key. Writing the same value again also changes the revision.
type record struct {
	modRevision int64
	value       string
}

// records returns all live keys except those that servers continuously renew or write.
func (s *store) records(t testing.TB) map[string]record {
	t.Helper()
	return s.recordsAt(t, 0)
}

// recordsAt is records for an older revision.
func (s *store) recordsAt(t testing.TB, revision int64) map[string]record {
	t.Helper()
	r, err := s.Get(context.Background(), "\x00", clientv3.WithFromKey(), clientv3.WithRev(revision))
	require.NoError(t, err)
	out := make(map[string]record, len(r.Kvs))
	for _, kv := range r.Kvs {
		if !restless(string(kv.Key)) {
			out[string(kv.Key)] = record{modRevision: kv.ModRevision, value: string(kv.Value)}
		}
	}
	return out
}

// revision returns the newest revision.
func (s *store) revision(t testing.TB) int64 {
	t.Helper()
	r, err := s.Get(context.Background(), "x")
	require.NoError(t, err)
	return r.Header.Revision
}

func restless(key string) bool {
	if key == "compact_rev_key" {
		return true
	}
	return slices.ContainsFunc([]string{"leases", "masterleases", "peerserverleases", "events"}, func(dir string) bool {
		return strings.HasPrefix(key, "/registry/"+dir+"/") || strings.HasPrefix(key, secondPrefix+"/"+dir+"/")
	})
}

// count returns the number of live keys below a prefix.
func (s *store) count(t testing.TB, prefix string) int {
	t.Helper()
	r, err := s.Get(context.Background(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	return int(r.Count)
}

// waitQuiet waits until no key has changed for a while, and returns the records.
func (s *store) waitQuiet(t testing.TB) map[string]record {
	t.Helper()
	last, since := s.records(t), time.Now()
	for deadline := time.Now().Add(quietTimeout); time.Since(since) < quiet; time.Sleep(pollInterval) {
		now := s.records(t)
		if changes := difference(last, now); len(changes) > 0 {
			require.True(t, time.Now().Before(deadline), "never quiet: %s", changes)
			last, since = now, time.Now()
		}
	}
	return last
}

// difference returns the keys that were "deleted", "created" or "changed", sorted, as "what key".
func difference(before, after map[string]record) []string {
	var out []string
	for key, was := range before {
		if is, there := after[key]; !there {
			out = append(out, "deleted "+key)
		} else if is != was {
			out = append(out, "changed "+key)
		}
	}
	for key := range after {
		if _, there := before[key]; !there {
			out = append(out, "created "+key)
		}
	}
	sortChanges(out)
	return out
}

// sortChanges sorts by key; each key occurs once.
func sortChanges(changes []string) {
	slices.SortFunc(changes, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
}

// save runs "etcdshift save" on the running etcd.
func (s *store) save(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "saved.db")
	said, err := exec.Command(etcdshift(t), "save", path, "--endpoints", s.url).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return path
}
