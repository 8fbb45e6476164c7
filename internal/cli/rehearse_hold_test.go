package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// TestRehearseHold: with --hold a client with the kubeconfig reads and writes, a client without the
// token does neither, and an interrupt leaves no files.
func TestRehearseHold(t *testing.T) {
	dir := t.TempDir()
	scratch, err := os.MkdirTemp("", "hold") // sockets need short paths
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	in, kubeconfig := recordedFile(t, dir, "storage/flipped.db", "in.db"), filepath.Join(dir, "kubeconfig")
	stop := runUntil(t, kubeconfig, "rehearse", in, "--hold", "--kubeconfig", kubeconfig, "--dir", scratch)
	info, err := os.Stat(kubeconfig)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	widgets := schema.GroupVersionResource{Group: "demo.example.com", Version: "v1beta1", Resource: "widgets"}
	client := dynamic.NewForConfigOrDie(config).Resource(widgets).Namespace("default")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 10)
	require.NoError(t, client.Delete(t.Context(), list.Items[0].GetName(), metav1.DeleteOptions{}))
	config.BearerToken += "x"
	_, err = dynamic.NewForConfigOrDie(config).Resource(widgets).List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "provide credentials")

	status, stdout, stderr := stop()
	require.Equal(t, exitDone, status, stderr)
	require.Contains(t, stdout, "PASSED: "+in)
	require.Contains(t, stderr, "until Ctrl-C: kubectl --kubeconfig "+kubeconfig)
	require.NoFileExists(t, kubeconfig)
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left)
}
