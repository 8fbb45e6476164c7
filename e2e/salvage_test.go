package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSalvaged checks that an API server becomes ready on what "etcdshift salvage" wrote from a
// file with a zeroed page, and that it has the objects of the undamaged file, except for those in
// the page.
func TestSalvaged(t *testing.T) {
	t.Parallel()
	whole := snapshotOf(t, "before")
	want := startStore(t, restoreAsIs(t, whole)).records(t)
	data, err := os.ReadFile(whole)
	require.NoError(t, err)
	const page = 4096
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	lost := 0
	for at := 40 * page; lost == 0; at += page { // until a leaf of live keys is hit
		require.Less(t, at, len(data))
		bytes := append([]byte(nil), data...)
		copy(bytes[at:], make([]byte, page))
		require.NoError(t, os.WriteFile(damaged, bytes, 0o600))
		out := filepath.Join(t.TempDir(), "out.db")
		cmd := exec.Command(etcdshift(t), "salvage", damaged, out, "-o", "json")
		text, err := cmd.Output()
		if err == nil {
			continue // a free page
		}
		require.Equal(t, 4, cmd.ProcessState.ExitCode(), "%s", text)
		said, err := exec.Command(tool(t, "etcdutl"), "snapshot", "restore", damaged, "--data-dir",
			filepath.Join(t.TempDir(), "etcd")).CombinedOutput()
		require.Error(t, err, "%s", said)

		c := startCluster(t, restoreAsIs(t, out, "--bump-revision", "1000000000", "--mark-compacted"))
		got := c.store.untouched(t, want)
		lost = len(want) - len(got)
		for key, is := range got {
			if is != want[key] { // the newest record was in the page
				require.Less(t, is.modRevision, want[key].modRevision, key)
				lost++
			}
		}
		require.Less(t, lost, 40)
		t.Logf("%d of %d keys are lost", lost, len(want))
	}
}

// untouched returns the records of those keys that no server has written since the restore, which
// raised the revision.
func (s *store) untouched(t testing.TB, keys map[string]record) map[string]record {
	t.Helper()
	out := map[string]record{}
	for key, is := range s.records(t) {
		if _, wanted := keys[key]; wanted && is.modRevision < 1_000_000_000 {
			out[key] = is
		}
	}
	return out
}

// TestFreePages checks that objects that were deleted and compacted away are found in the free
// pages of a snapshot, as the server had them.
func TestFreePages(t *testing.T) {
	t.Parallel()
	c := startCluster(t, filepath.Join(t.TempDir(), "empty"))
	ctx := context.Background()
	configs := c.client(configMaps(), "default")
	want := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name}, "data": map[string]any{"name": name}}}
		made, err := configs.Create(ctx, obj, metav1.CreateOptions{})
		require.NoError(t, err)
		want[name] = string(made.GetUID())
	}
	for name := range want {
		require.NoError(t, configs.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	_, err := c.store.Compact(ctx, c.store.revision(t), clientv3.WithCompactPhysical())
	require.NoError(t, err)
	file := c.store.save(t)
	text, _ := exec.Command(etcdshift(t), "get", "-q", file, "configmaps", "-n", "default", "--deleted", "-o",
		"json").Output()
	require.NotContains(t, string(text), want["one"], "compacted away")
	text, err = exec.Command(etcdshift(t), "get", "-q", file, "configmaps", "-n", "default", "--deleted",
		"--free-pages", "-o", "json").Output()
	require.NoError(t, err)
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Data     map[string]string `json:"data"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal(text, &list))
	found := 0
	for _, item := range list.Items {
		if _, is := want[item.Metadata.Name]; is {
			require.Equal(t, item.Metadata.Name, item.Data["name"])
			require.Equal(t, want[item.Metadata.Name], string(item.Metadata.UID))
			found++
		}
	}
	require.Positive(t, found, "the server may have used some of the pages again, but not all within a second")
}

// TestNamespaceBack deletes a namespace and compacts the store. The manifests from the log of the
// member, and those from the free pages of a snapshot, make a new API server accept the namespace
// again. Free pages may lack objects, and those found are as they were.
func TestNamespaceBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	c := startCluster(t, dir)
	controllers, k := c.controllers(t), c.kubectl(t)
	run := func(k kubectl, line string) string {
		text, ok := k.run(t, strings.Fields(line)...)
		require.True(t, ok, text)
		return text
	}
	for _, line := range []string{"create namespace shop", "create configmap prices -n shop --from-literal=apple=1",
		"create secret generic key -n shop --from-literal=a=secret", "create serviceaccount till -n shop",
		"create service clusterip web -n shop --tcp=80:80", "create deployment web -n shop --image=example.com/none",
		"create role reads -n shop --verb=get --resource=secrets"} {
		run(k, line)
	}
	run(k, "wait -n shop deployment/web --for=jsonpath={.status.replicas}=1 --timeout=1m")
	run(k, "delete namespace shop --timeout=2m")
	_, err := c.store.Compact(t.Context(), c.store.revision(t), clientv3.WithCompactPhysical())
	require.NoError(t, err)
	saved := c.store.save(t)
	controllers.stop()
	c.stop()

	fromPages := filepath.Join(t.TempDir(), "pages.yaml")
	found, err := exec.Command(etcdshift(t), "export", saved, "-n", "shop", "--deleted", "--free-pages",
		"--show-secrets").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) { // the page of the Namespace was used again
		require.Contains(t, string(exit.Stderr), `namespaces "shop" not found`)
	}
	require.NoError(t, os.WriteFile(fromPages, found, 0o600))
	all := filepath.Join(t.TempDir(), "all.db")
	text, err := exec.Command(etcdshift(t), "save", "--data-dir", dir, "--wal-history", all).CombinedOutput()
	require.NoError(t, err, "%s", text)
	text, err = exec.Command(etcdshift(t), "get", "-q", all, "*", "-n", "shop", "--deleted", "-o", "json").Output()
	require.NoError(t, err)
	first := int64(math.MaxInt64)
	for _, m := range regexp.MustCompile(`"revision": (\d+)`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		require.NoError(t, err)
		if n > 0 {
			first = min(first, n)
		}
	}
	fromLog := exported(t, all, "-n", "shop", "--at", strconv.FormatInt(first-1, 10))

	whole := "configmap/prices secret/key serviceaccount/till service/web deployment.apps/web " +
		"role.rbac.authorization.k8s.io/reads"
	for source, path := range map[string]string{"the log": fromLog, "the log, deleted": exported(t, all, "-n", "shop",
		"--deleted"), "free pages": fromPages} {
		k := startCluster(t, filepath.Join(t.TempDir(), "empty")).kubectl(t)
		if source == "free pages" && !strings.Contains(string(readFile(t, path)), "kind: Namespace\n") {
			run(k, "create namespace shop")
		}
		run(k, "apply -f "+path)
		found := 0
		for _, object := range strings.Fields(whole) {
			if _, ok := k.run(t, "get", object, "-n", "shop"); ok {
				found++
			}
		}
		t.Logf("%s: %d of 6 objects", source, found)
		require.True(t, found == 6 || source == "free pages" && found > 0, "%s: %d of 6", source, found)
		if text, ok := k.run(t, "get", "configmap/prices", "-n", "shop", "-o", "jsonpath={.data.apple}"); ok {
			require.Equal(t, "1", text)
		}
	}
}
