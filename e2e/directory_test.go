package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestCrashedMember kills an etcd under load, several times on the same data directory. Each time
// the directory, read before the restart, has the revision, HashKV, keys and leases of the
// restarted server. CRASHES sets the number.
func TestCrashedMember(t *testing.T) {
	crashes, _ := strconv.Atoi(os.Getenv("CRASHES"))
	dir := filepath.Join(t.TempDir(), "crashed.etcd")
	server, behind, applied := startStore(t, dir), 0, uint64(0)
	for n := range max(crashes, 5) {
		stop := load(server, uint64(n))
		time.Sleep(time.Duration(300+rand.IntN(900)) * time.Millisecond)
		require.NoError(t, server.process.cmd.Process.Kill())
		<-server.process.done
		stop()

		out := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n))
		text, err := exec.Command(etcdshift(t), "save", "-q", "-o", "json", "--data-dir", dir, out).CombinedOutput()
		require.NoError(t, err, "%s", text)
		var saved struct {
			DataDir struct{ Database, Entry uint64 }
		}
		require.NoError(t, json.Unmarshal(text, &saved))
		if saved.DataDir.Entry > saved.DataDir.Database {
			behind++
			applied += saved.DataDir.Entry - saved.DataDir.Database
		}
		var st struct {
			Revision int64
			HashKV   string
			Keys     int
			Leases   int
		}
		for _, in := range []string{out, dir} {
			text, err = exec.Command(etcdshift(t), "status", "-q", "-o", "json", in).Output()
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &st))
		}

		server = startStore(t, dir)
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
	t.Logf("the database was behind its log in %d of %d crashes, by %d entries", behind, max(crashes, 5), applied)
}

// load writes to a server like API servers do, until it dies: conditional puts and deletions,
// leases, and compactions.
func load(s *store, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for client := range uint64(4) {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, client))
			var lease clientv3.LeaseID
			for i := 0; ctx.Err() == nil; i++ {
				within, done := context.WithTimeout(ctx, time.Second)
				key := fmt.Sprintf("/registry/configmaps/ns-%d/cm-%d", r.IntN(5), r.IntN(200))
				rev, value := int64(0), strings.Repeat("x", r.IntN(2000))
				if old, err := s.Get(within, key); err == nil && len(old.Kvs) > 0 {
					rev = old.Kvs[0].ModRevision
				}
				op := clientv3.OpPut(key, value)
				switch n := r.IntN(20); {
				case n < 4:
					op = clientv3.OpDelete(key)
				case n < 8 && lease != 0:
					op = clientv3.OpPut(key, value, clientv3.WithLease(lease))
				case n == 19:
					if granted, err := s.Grant(within, 3600); err == nil {
						lease = granted.ID
					}
				case n == 18 && lease != 0 && r.IntN(4) == 0:
					_, _ = s.Revoke(within, lease)
				case n == 17 && r.IntN(8) == 0:
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
