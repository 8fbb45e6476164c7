package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// dataManifest has a claim bound to a volume of an external driver, the single Pod that uses the
// claim, and a StatefulSet that deletes the claims of surplus Pods.
const dataManifest = `
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}
{"apiVersion":"v1","kind":"Node","metadata":{"name":"old"}}
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"disk","annotations":{"pv.kubernetes.io/provisioned-by":"csi.example.com"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Delete","csi":{"driver":"csi.example.com","volumeHandle":"h"}}}
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"},"spec":{"storageClassName":"","volumeName":"disk","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner","namespace":"shop"}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db","namespace":"shop"},"spec":{"nodeName":"old","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]}}
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"own","annotations":{"pv.kubernetes.io/provisioned-by":"csi.example.com"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Delete","csi":{"driver":"csi.example.com","volumeHandle":"o"}}}
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"spare"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Retain","csi":{"driver":"csi.example.com","volumeHandle":"s"},"claimRef":{"namespace":"shop","name":"later"}}}
{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"set","namespace":"shop"},"spec":{"replicas":1,"serviceName":"set","selector":{"matchLabels":{"a":"set"}},"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"},"template":{"metadata":{"labels":{"a":"set"}},"spec":{"containers":[{"name":"c","image":"i"}]}},"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"storageClassName":"","volumeName":"own","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}
`

// phase waits for a phase of an object: "" for a deleted object.
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

// dyingClaim returns a snapshot of a cluster with a claim that is being deleted but used by a Pod
// with an owner.
func dyingClaim(t testing.TB) (saved string) {
	t.Helper()
	c := startCluster(t, filepath.Join(t.TempDir(), "etcd"))
	p := c.controllers(t)
	c.create(t, dataManifest)
	c.phase(t, "persistentvolumeclaims", shop, "data", "Bound")
	c.phase(t, "persistentvolumes", "", "disk", "Bound")
	c.phase(t, "persistentvolumeclaims", shop, "v-set-0", "Bound")
	owner, err := c.client(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		shop).Get(context.Background(), "owner", metav1.GetOptions{})
	require.NoError(t, err)
	owned := fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`,
		owner.GetUID())
	_, err = c.client(pods(), shop).Patch(context.Background(), "db", types.MergePatchType, []byte(owned),
		metav1.PatchOptions{})
	require.NoError(t, err)
	claims := c.client(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, shop)
	require.NoError(t, claims.Delete(context.Background(), "data", metav1.DeleteOptions{}))
	p.stop()
	saved = c.store.save(t)
	c.stop()
	return saved
}

// endPod waits until the Pod is being deleted, and then deletes the Pod, as a kubelet does.
func (c *cluster) endPod(t testing.TB) {
	t.Helper()
	client := c.client(pods(), shop)
	eventually(t, serveTimeout, "the Pod is to be deleted", func() error {
		pod, err := client.Get(context.Background(), "db", metav1.GetOptions{})
		if err == nil && pod.GetDeletionTimestamp() == nil {
			err = errors.New("it stays")
		}
		return err
	})
	now := int64(0)
	require.NoError(t, client.Delete(context.Background(), "db", metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// TestVolumeFreed checks that real controllers act as volume-freed predicts: the claim stays with
// its user and is deleted after the user, and the volume is released. The garbage collectors delete
// the user too, after its owner or its Node.
func TestVolumeFreed(t *testing.T) {
	t.Parallel()
	saved, dir := dyingClaim(t), t.TempDir()
	var files []string
	for i, args := range [][]string{
		{"prepare-restore"}, {"prepare-restore", "--only", "nodes"}, {"delete", "pod/db"}, {"delete", "cm/owner"},
		{"delete", "node/old"}, {"patch", "pod/db", "--type", "merge", "-p", `{"spec":{"nodeName":null}}`},
		{"patch", "pvc/data", "--type", "merge", "-p", `{"metadata":{"finalizers":null}}`},
		{"patch", "pod/db", "--type", "merge", "-p",
			`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0}}`},
		{"patch", "sts/set", "-p", `{"spec":{"replicas":0}}`},
		{"patch", "pvc/v-set-0", "--type", "merge", "-p", `{"spec":{"volumeName":"spare"}}`},
	} {
		refused := "error volume-freed: /registry/persistentvolumeclaims/shop/data: "
		name := args[len(args)-1]
		if args[0] != "prepare-restore" {
			name = args[1]
		}
		switch name {
		case "sts/set":
			refused = "error volume-freed: /registry/persistentvolumeclaims/shop/v-set-0: "
		case "pvc/v-set-0":
			refused = "error volume-freed: /registry/persistentvolumes/own: "
		}
		file := filepath.Join(dir, fmt.Sprint(i, strings.ReplaceAll(name, "/", "-"), ".db"))
		if args = append(args, saved, file); args[0] != "prepare-restore" {
			args = append([]string{args[0], saved, file, "-n", shop}, args[1:len(args)-2]...)
		}
		said, err := exec.Command(etcdshift(t), args...).CombinedOutput()
		require.EqualError(t, err, "exit status 3", "%s", said)
		require.Contains(t, string(said), refused)
		said, err = exec.Command(etcdshift(t), append(args, "--allow", "volume-freed")...).CombinedOutput()
		require.NoError(t, err, "%s", said)
		files = append(files, file)
	}

	kept := startCluster(t, runMigration(t, "prepare-restore", saved, "--keep-node", "old").restore(t))
	p := kept.controllers(t)
	time.Sleep(calm)
	kept.phase(t, "persistentvolumeclaims", shop, "data", "Bound")
	require.False(t, p.ended(), p.tail(t))
	p.stop()
	kept.stop()

	for _, file := range files {
		freed := startCluster(t, restoreAsIs(t, file))
		p := freed.controllers(t)
		claim, volume := "data", "disk"
		switch {
		case strings.HasSuffix(file, "cm-owner.db"), strings.HasSuffix(file, "7pod-db.db"): // a kubelet ends the Pod
			freed.endPod(t)
		case strings.HasSuffix(file, "sts-set.db"):
			claim, volume = "v-set-0", "own"
		case strings.HasSuffix(file, "pvc-v-set-0.db"):
			claim, volume = "", "own"
		case strings.HasSuffix(file, "pvc-data.db"): // its next update deletes it
			claims := freed.client(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, shop)
			_, err := claims.Patch(context.Background(), "data", types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		}
		if claim != "" {
			freed.phase(t, "persistentvolumeclaims", shop, claim, "")
		}
		freed.phase(t, "persistentvolumes", "", volume, "Released")
		p.stop()
		freed.stop()
	}
}
