package cli

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// recordedFile copies a recorded snapshot into a folder.
func recordedFile(t testing.TB, dir, src, name string) string {
	t.Helper()
	data, err := readFixture(testdata(src))
	require.NoError(t, err)
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, data, 0o400))
	return path
}

// serving runs "serve" with runUntil.
func serving(t *testing.T, until string, args ...string) (stop func() (status int, stdout, stderr string)) {
	t.Helper()
	return runUntil(t, until, append([]string{"serve"}, args...)...)
}

// runUntil runs a command until the test stops it, and returns when the file until exists.
func runUntil(t *testing.T, until string, args ...string) (stop func() (status int, stdout, stderr string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var stdout, stderr bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- Run(ctx, append([]string{"etcdshift"}, args...), nil, &stdout, &stderr)
	}()
	t.Cleanup(cancel)
	stop = func() (int, string, string) {
		cancel()
		return <-status, stdout.String(), stderr.String()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(until); err == nil {
			return stop
		}
		if len(status) > 0 || time.Now().After(deadline) {
			n, out, errs := stop()
			require.Fail(t, "not serving", "%d %s %s", n, out, errs)
		}
	}
}

// TestServe: each snapshot has a context; the kubeconfig is private to the user, and removed at the
// end.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	all, cluster := recordedFile(t, dir, "kubectl/all.db", "all.db"),
		recordedFile(t, dir, "calico/before.db", "all.before.db")
	kubeconfig := filepath.Join(dir, "kubeconfig")
	stop := serving(t, kubeconfig, "--listen", ":0", "-q", "--kubeconfig", kubeconfig, all, cluster)
	info, err := os.Stat(kubeconfig)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	for name, pods := range map[string]int{"all": 11, "all-2": 0} {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
		require.NoError(t, err)
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, pods, name)
		config.BearerToken += "x"
		client, err = kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.ErrorContains(t, err, "Unauthorized")
	}
	status, _, stderr := runWords("serve", "--kubeconfig", kubeconfig, all)
	require.Equal(t, exitFailed, status)
	require.Contains(t, stderr, "file already exists")
	status, out, _ := stop()
	require.Equal(t, exitInterrupted, status)
	require.Contains(t, out, "all.db at revision 385: https://localhost:")
	require.Contains(t, out, "export KUBECONFIG="+kubeconfig+"\n")
	require.NoFileExists(t, kubeconfig)
}

// TestServeUnix: the socket is private to the user, and needs no token.
func TestServeUnix(t *testing.T) {
	dir := t.TempDir()
	all, socket := recordedFile(t, dir, "kubectl/all.db", "all.db"), filepath.Join(dir, "s")
	stop := serving(t, socket, "--unix", socket, all)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	var resp *http.Response
	require.Eventually(t, func() bool { // the socket exists shortly before it listens
		resp, err = client.Get("http://localhost/api/v1/pods?limit=1")
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "%v", err)
	require.Equal(t, 200, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	stop()
	require.NoFileExists(t, socket)
}

// TestServeRemoves: the kubeconfig and the socket are removed at the end, but not a replacement of
// the same name.
func TestServeRemoves(t *testing.T) {
	dir := t.TempDir()
	all := recordedFile(t, dir, "kubectl/all.db", "all.db")
	for _, flag := range []string{"--kubeconfig", "--unix"} {
		path := filepath.Join(dir, flag)
		stop := serving(t, path, flag, path, all)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
		status, _, stderr := stop()
		require.Equal(t, exitInterrupted, status)
		require.FileExists(t, path)
		require.Contains(t, stderr, "was changed or replaced: it is not removed")
	}
}

// TestServeRefuses: usage errors, a compacted time or revision, and storages of kcp.
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	all, root := recordedFile(t, dir, "kubectl/all.db", "all.db"), recordedFile(t, dir, "kcp/root-before.db", "root.db")
	for line, want := range map[string]string{
		"--unix s --listen 127.0.0.1:0 " + all: "--unix serves one snapshot",
		"--listen x " + all:                    `--listen is "x"`,
		"--at x " + all:                        `--at is "x"`,
		"--at 5 " + all + " " + all:            "--at takes one snapshot",
		"--at 99999 " + all:                    "is in the future",
		root:                                   "kcp serves each logical cluster by itself",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		status, _, stderr := runWithin(ctx, strings.Fields("serve "+line)...)
		cancel()
		require.Contains(t, stderr, want, line)
		require.Contains(t, []int{exitUsage, exitFailed}, status)
	}
}
