package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dataManifest is a claim of a volume whose driver runs elsewhere, and its one user.
const dataManifest = `
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}
{"apiVersion":"v1","kind":"Node","metadata":{"name":"old"}}
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"disk","annotations":{"pv.kubernetes.io/provisioned-by":"csi.example.com"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Delete","csi":{"driver":"csi.example.com","volumeHandle":"h"}}}
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"},"spec":{"storageClassName":"","volumeName":"disk","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db","namespace":"shop"},"spec":{"nodeName":"old","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]}}
`

// phase waits for a phase of an object: "" for an object that is gone.
func (c *cluster) phase(t testing.TB, resource, namespace, name, want string) {
	t.Helper()
	client := c.client(schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace)
	eventually(t, serveTimeout, fmt.Sprintf("%s %s is %q", resource, name, want), func() error {
		is := ""
		obj, err := client.Get(context.Background(), name, metav1.GetOptions{})
		if err == nil {
			is, _, _ = unstructured.NestedString(obj.Object, "status", "phase")
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		if is != want || err == nil && want == "" {
			return fmt.Errorf("it is %q", is)
		}
		return nil
	})
}

// dyingClaim is a snapshot of a cluster with a claim that is being deleted, held by a Pod.
func dyingClaim(t testing.TB) (saved string) {
	t.Helper()
	c := startCluster(t, filepath.Join(t.TempDir(), "etcd"))
	p := c.controllers(t)
	c.create(t, dataManifest)
	c.phase(t, "persistentvolumeclaims", shop, "data", "Bound")
	c.phase(t, "persistentvolumes", "", "disk", "Bound")
	claims := c.client(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, shop)
	require.NoError(t, claims.Delete(context.Background(), "data", metav1.DeleteOptions{}))
	p.stop()
	saved = c.store.save(t)
	c.stop()
	return saved
}

// TestVolumeFreed: what volume-freed refuses is what a real controller does: the claim stays while
// its user does, and goes with it, and the volume is given free.
func TestVolumeFreed(t *testing.T) {
	t.Parallel()
	saved, dir := dyingClaim(t), t.TempDir()
	const refused = "error volume-freed: /registry/persistentvolumeclaims/shop/data: "
	for _, args := range [][]string{{"migrate", "prepare-restore", saved, filepath.Join(dir, "no.db")}, {"delete", saved, filepath.Join(dir, "no.db"), "pod/db", "-n", shop}} {
		said, err := exec.Command(etcdshift(t), args...).CombinedOutput()
		require.EqualError(t, err, "exit status 3", "%s", said)
		require.Contains(t, string(said), refused)
	}

	kept := startCluster(t, runMigration(t, "prepare-restore", saved, "--keep-node", "old").restore(t))
	p := kept.controllers(t)
	time.Sleep(calm)
	kept.phase(t, "persistentvolumeclaims", shop, "data", "Bound")
	require.False(t, p.ended(), p.tail(t))
	p.stop()
	kept.stop()

	freed := startCluster(t, runMigration(t, "prepare-restore", saved, "--allow", "volume-freed").restore(t))
	freed.controllers(t)
	freed.phase(t, "pods", shop, "db", "")
	freed.phase(t, "persistentvolumeclaims", shop, "data", "")
	freed.phase(t, "persistentvolumes", "", "disk", "Released")
}
