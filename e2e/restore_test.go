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

// TestRestoredMembers checks that three restored members form a cluster with the announced content
// that takes writes, for each release of etcd that "etcdshift restore" is for.
func TestRestoredMembers(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"etcd-3.5", "etcd-3.6", "etcd"} {
		t.Run(server, func(t *testing.T) {
			dir := t.TempDir()
			peers, cluster := map[string]string{}, []string{}
			for _, name := range []string{"m1", "m2", "m3"} {
				peers[name] = "http://127.0.0.1:" + freePort(t)
				cluster = append(cluster, name+"="+peers[name])
			}
			together := strings.Join(cluster, ",")
			hashKV, revision := restored(t, "../testdata/etcd/etcd-3.5.db", "--all", dir, "--initial-cluster", together)
			var urls []string
			for name, peer := range peers {
				url := "http://127.0.0.1:" + freePort(t)
				urls = append(urls, url)
				start(t, server, "--name="+name, "--data-dir="+filepath.Join(dir, name), "--log-level=warn",
					"--unsafe-no-fsync", "--initial-cluster="+together, "--listen-peer-urls="+peer,
					"--initial-advertise-peer-urls="+peer, "--listen-client-urls="+url, "--advertise-client-urls="+url)
			}
			client, err := clientv3.New(clientv3.Config{Endpoints: urls, Logger: zap.NewNop()})
			require.NoError(t, err)
			defer client.Close()
			ctx := context.Background()
			eventually(t, startTimeout, "three members serve", func() error {
				within, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				for _, url := range urls {
					if _, err := client.HashKV(within, url, revision); err != nil {
						return err
					}
				}
				return nil
			})
			for _, url := range urls {
				got, err := client.HashKV(ctx, url, revision)
				require.NoError(t, err)
				require.Equal(t, hashKV, fmt.Sprint(got.Hash), url)
			}
			_, err = client.Put(ctx, "new", "value")
			require.NoError(t, err)
			for _, url := range urls {
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
