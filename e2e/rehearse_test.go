package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	brokenKey = "/registry/deployments/default/broken"
	orphanKey = "/registry/configmaps/default/orphan"
)

func deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// rehearsal has the fields of a rehearsal's report used in these tests.
type rehearsal struct {
	Passed      bool
	Findings    []found
	Differences struct{ Broken, Mended []found }
}

type found struct{ Code, Key, Message string }

// named returns the findings as "code key".
func named(all []found) (out []string) {
	for _, f := range all {
		out = append(out, f.Code+" "+f.Key)
	}
	return out
}

// rehearse runs "etcdshift rehearse" and requires an exit status and an empty folder afterwards.
func rehearse(t testing.TB, status int, args ...string) (r rehearsal) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(etcdshift(t), append([]string{"rehearse", "-q", "-o", "json", "--dir", dir}, args...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	require.Equal(t, status, cmd.ProcessState.ExitCode(), "%s", text)
	require.NoError(t, json.Unmarshal(text, &r))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	return r
}

// programs returns the flags for the servers of these tests.
func programs(t testing.TB) []string {
	return []string{"--kube-apiserver", tool(t, "kube-apiserver"), "--kube-controller-manager",
		tool(t, "kube-controller-manager")}
}

// requireRehearsed requires that nothing fails, including native kinds and garbage collection.
func requireRehearsed(t testing.TB, path string) {
	t.Helper()
	r := rehearse(t, 0, append(programs(t), path)...)
	require.True(t, r.Passed)
	require.Empty(t, r.Findings)
}

// change updates and applies an object.
func (c *cluster) change(r schema.GroupVersionResource, obj *unstructured.Unstructured) error {
	ctx, client := context.Background(), c.client(r, obj.GetNamespace())
	obj, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(obj.Object, "yes", "metadata", "annotations",
		"example.com/touched"); err != nil {
		return err
	}
	if obj, err = client.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = client.Apply(ctx, obj.GetName(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(),
		"metadata": map[string]any{"name": obj.GetName(), "labels": map[string]any{"example.com/applied": "yes"}},
	}}, metav1.ApplyOptions{FieldManager: "e2e"})
	return err
}

// useEveryKind lists every kind at every version, and changes an object of each kind.
func (c *cluster) useEveryKind(t testing.TB) {
	t.Helper()
	changed := 0
	for _, r := range c.kinds(t) {
		if !r.listed {
			continue
		}
		eventually(t, serveTimeout, r.String(), func() error {
			list, err := c.client(r.GroupVersionResource, "").List(context.Background(), metav1.ListOptions{})
			if err != nil || !r.updated || len(list.Items) == 0 {
				return err
			}
			changed++
			return c.change(r.GroupVersionResource, &list.Items[0])
		})
	}
	require.Greater(t, changed, 15, "a new API server has as many kinds of its own")
}

// requireUnread requires that all lists of a kind fail, and each get fails with the rehearsal's
// text.
func requireUnread(t testing.TB, client dynamic.ResourceInterface, all []found) {
	t.Helper()
	soon, cancel := context.WithTimeout(context.Background(), 10*time.Second) // clients retry such a list
	defer cancel()
	_, err := client.List(soon, metav1.ListOptions{})
	require.Error(t, err)
	for _, f := range all {
		if f.Code == "rehearse-list" {
			_, err := client.Get(context.Background(), path.Base(f.Key), metav1.GetOptions{})
			require.Error(t, err, f.Key)
			require.Contains(t, f.Message, err.Error(), f.Key)
		}
	}
}

// TestRehearsed checks that a cluster that is saved, migrated in each way and rehearsed
// successfully works after the restore.
func TestRehearsed(t *testing.T) {
	t.Parallel()
	c := startCluster(t, restoreAsIs(t, snapshotOf(t, "before")))
	c.install(t)
	c.createGizmos(t)
	saved := c.store.save(t)
	c.stop()
	for _, migrations := range [][]string{{"calico-v3"}, {"calico-v3", "storage-versions"}} {
		t.Run(migrations[len(migrations)-1], func(t *testing.T) {
			t.Parallel()
			r := report{path: saved}
			for _, name := range migrations {
				r = runMigration(t, "migrate "+name, r.path)
			}
			requireRehearsed(t, r.path)
			c := startCluster(t, r.restore(t))
			c.requireServed(t)
			c.useEveryKind(t)
			if !slices.Contains(migrations, "storage-versions") {
				require.ErrorContains(t, c.setGizmoVersions(gizmoVersion("v1", true)), "status.storedVersions")
				return // TestMigrated runs the garbage collector for this case
			}
			require.Empty(t, c.collect(t, v3("globalnetworkpolicies"), "allow-dns"))
			c.dropOldGizmos(t)
			c.requireGizmos(t, "v1")
		})
	}
}

// TestRehearsalFails checks that real servers fail after a restore exactly as rehearsed, and that a
// migration repairs the failures that it can.
func TestRehearsalFails(t *testing.T) {
	t.Parallel()
	c := startCluster(t, filepath.Join(t.TempDir(), "empty"))
	c.createGizmos(t)
	whole := c.store.save(t)
	dropped := c.forgetOldGizmos(t)
	c.stop()
	t.Run("storage-versions", func(t *testing.T) {
		t.Parallel()
		r := runMigration(t, "migrate storage-versions", whole)
		requireRehearsed(t, r.path)
		c := startCluster(t, r.restore(t))
		c.useEveryKind(t)
		require.Empty(t, c.collect(t, gizmos("v1"), "old-0"))
		c.dropOldGizmos(t)
		c.requireGizmos(t, "v1")
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		broken := breakObjects(t, whole)
		r := rehearse(t, 1, append(programs(t), broken)...)
		require.Equal(t, []string{"rehearse-list " + brokenKey, "rehearse-collected " + orphanKey,
			"rehearse-records " + brokenKey}, named(r.Findings))
		c := startCluster(t, restoreAsIs(t, broken))
		requireUnread(t, c.client(deployments(), "default"), r.Findings)
		require.Equal(t, []string{"deleted " + orphanKey}, c.collect(t, gizmos("v1"), "old-0"))
	})
	t.Run("dropped", func(t *testing.T) {
		t.Parallel()
		r := rehearse(t, 1, dropped)
		var want []string
		for i := range oldGizmos {
			want = append(want, fmt.Sprintf("rehearse-list %sold-%d", gizmoFolder, i))
		}
		want = append(want, "rehearse-records "+gizmoFolder+"old-0")
		require.Equal(t, want, named(r.Findings))
		c := startCluster(t, restoreAsIs(t, dropped))
		requireUnread(t, c.client(gizmos("v1"), ""), r.Findings)
		c.stop()

		mended := runMigration(t, "migrate storage-versions", dropped, "--map", "example.com/v1alpha1=v1")
		after := rehearse(t, 0, dropped, "--after", mended.path)
		require.Empty(t, after.Differences.Broken)
		require.Equal(t, named(r.Findings), named(after.Differences.Mended))
		startCluster(t, mended.restore(t)).requireGizmos(t, "v1")
	})
}

// breakObjects adds an undecodable value to a file, and an object whose owner has another UID.
func breakObjects(t testing.TB, whole string) (broken string) {
	t.Helper()
	s := startStore(t, restoreAsIs(t, whole))
	defer s.process.stop()
	for key, value := range map[string]string{
		brokenKey: "k8s\x00no object",
		orphanKey: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"orphan","namespace":"default",` +
			`"uid":"u-orphan",` +
			`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Gizmo","name":"new","uid":"` + noUID + `"}]}}`,
	} {
		_, err := s.Put(context.Background(), key, value)
		require.NoError(t, err)
	}
	return s.save(t)
}

// forgetOldGizmos drops the old version as many users do, and saves: the server refuses while
// storedVersions has the version, so it is removed there first, although gizmos are stored at it.
func (c *cluster) forgetOldGizmos(t testing.TB) (path string) {
	t.Helper()
	ctx, client := context.Background(), c.client(definitions(), "")
	require.ErrorContains(t, c.setGizmoVersions(gizmoVersion("v1", true)), "status.storedVersions")
	crd, err := client.Get(ctx, "gizmos.example.com", metav1.GetOptions{})
	require.NoError(t, err)
	crd.Object["status"].(map[string]any)["storedVersions"] = []any{"v1"}
	_, err = client.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.dropOldGizmos(t)
	return c.store.save(t)
}

// TestRehearsalCauses checks that a rehearsal names the finding of doctor about an object that the
// API server cannot decode.
func TestRehearsalCauses(t *testing.T) {
	files, err := filepath.Glob("../testdata/reports/p4-only-*.db.gz")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, file := range files {
		r := rehearse(t, 1, "--kube-apiserver", tool(t, "kube-apiserver"), file)
		i := slices.IndexFunc(r.Findings, func(f found) bool { return f.Code == "rehearse-records" })
		require.GreaterOrEqual(t, i, 0, "%s: %v", file, named(r.Findings))
		require.Contains(t, r.Findings[i].Message, "dead-version: 1 finding of doctor, the first: 1 object of ")
	}
}
