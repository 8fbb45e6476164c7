package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// restored runs "etcdshift restore" and returns the announced HashKV and revision.
func restored(t testing.TB, args ...string) (hashKV string, revision int64) {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(etcdshift(t), append([]string{"restore", "-o", "json"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var doc struct {
		HashKV   string `json:"hashKV"`
		Revision int64  `json:"revision"`
	}
	require.NoError(t, json.Unmarshal(out, &doc))
	return doc.HashKV, doc.Revision
}

// members are the three members of a cluster.
type members struct {
	*clientv3.Client
	server    string // of bin/
	dir       string // with a data directory for each name
	together  string // --initial-cluster
	names     []string
	peers     []string
	urls      []string // of clients
	processes []*process
}

// newMembers chooses the ports of a cluster in dir.
func newMembers(t testing.TB, server, dir string) *members {
	t.Helper()
	m := &members{server: server, dir: dir, names: []string{"m1", "m2", "m3"}}
	var cluster []string
	for _, name := range m.names {
		m.peers = append(m.peers, "http://127.0.0.1:"+freePort(t))
		m.urls = append(m.urls, "http://127.0.0.1:"+freePort(t))
		cluster = append(cluster, name+"="+m.peers[len(m.peers)-1])
	}
	m.together = strings.Join(cluster, ",")
	client, err := clientv3.New(clientv3.Config{Endpoints: m.urls, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	m.Client = client
	return m
}

// start starts the members and waits until each serves.
func (m *members) start(t testing.TB) {
	t.Helper()
	m.processes = nil
	for i, name := range m.names {
		m.processes = append(m.processes, start(t, m.server, "--name="+name, "--data-dir="+filepath.Join(m.dir, name),
			"--log-level=warn", "--unsafe-no-fsync", "--initial-cluster="+m.together, "--listen-peer-urls="+m.peers[i],
			"--initial-advertise-peer-urls="+m.peers[i], "--listen-client-urls="+m.urls[i],
			"--advertise-client-urls="+m.urls[i]))
	}
	eventually(t, startTimeout, "three members serve", func() error {
		within, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		for _, url := range m.urls {
			if _, err := m.HashKV(within, url, 0); err != nil {
				return err
			}
		}
		_, err := m.Get(within, "ready")
		return err
	})
}

// TestRestoredMembers checks that three restored members form a cluster with the announced content
// that takes writes, for each release of etcd that "etcdshift restore" is for.
func TestRestoredMembers(t *testing.T) {
	t.Parallel()
	for _, server := range releasesOfEtcd() {
		t.Run(server, func(t *testing.T) {
			m := newMembers(t, server, t.TempDir())
			hashKV, revision := restored(t, "../testdata/etcd/etcd-3.5.db", "--all", m.dir, "--initial-cluster",
				m.together)
			m.start(t)
			ctx := context.Background()
			for _, url := range m.urls {
				got, err := m.HashKV(ctx, url, revision)
				require.NoError(t, err)
				require.Equal(t, hashKV, fmt.Sprint(got.Hash), url)
			}
			_, err := m.Put(ctx, "new", "value")
			require.NoError(t, err)
			for _, url := range m.urls {
				one, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
				require.NoError(t, err)
				got, err := one.Get(ctx, "new")
				require.NoError(t, err)
				require.Equal(t, int64(1), got.Count, url)
				require.NoError(t, one.Close())
			}
		})
	}
}

// releasesOfEtcd are the servers for which "etcdshift restore" is.
func releasesOfEtcd() []string { return []string{"etcd-3.5", "etcd-3.6", "etcd"} }

// TestRefusedRelease checks that a server dies on a file that --etcd refuses.
func TestRefusedRelease(t *testing.T) {
	t.Parallel()
	file := "../testdata/etcd/etcd-3.7.db"
	dir := filepath.Join(t.TempDir(), "data")
	said, err := exec.Command(etcdshift(t), "restore", file, "--data-dir", dir, "--etcd", "3.6").CombinedOutput()
	require.ErrorContains(t, err, "exit status 3")
	require.Contains(t, string(said), "etcd 3.6 does not start on it: an etcd 3.7.0 wrote it")
	require.NoDirExists(t, dir)

	restored(t, file, "--data-dir", dir)
	p := start(t, "etcd-3.6", "--name=default", "--data-dir="+dir, "--listen-client-urls=http://127.0.0.1:"+freePort(t),
		"--advertise-client-urls=http://127.0.0.1:1", "--listen-peer-urls=http://127.0.0.1:"+freePort(t))
	select {
	case <-p.done:
	case <-time.After(startTimeout):
		require.Fail(t, "etcd 3.6 runs on a file of etcd 3.7")
	}
	require.Contains(t, p.tail(t), `version \"3.7.0\" is not supported`)
}

// TestRestoreTo checks that servers on the data directory of --restore-to and on a restored OUT
// serve the same.
func TestRestoreTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, beside, alone := filepath.Join(dir, "out.db"), filepath.Join(dir, "beside"), filepath.Join(dir, "alone")
	in := snapshotOf(t, "before")
	for out, data := range map[string]string{out: beside, "-": alone} {
		said, err := exec.Command(etcdshift(t), "compact", in, out, "--restore-to", data).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	want := startStore(t, restoreAsIs(t, out, "--bump-revision", "1000000000", "--mark-compacted")).records(t)
	require.NotEmpty(t, want)
	for _, data := range []string{beside, alone} {
		require.Equal(t, want, startStore(t, data).records(t))
	}
}
