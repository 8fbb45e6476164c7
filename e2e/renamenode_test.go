package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// nodeObjects is a node with its objects and references. No kubelet runs: the heartbeat is in the
// far future, and the test renews the Lease, so that controllers consider the node alive.
const nodeObjects = `{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old", "labels": {"kubernetes.io/hostname": "old"}}},
{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}},
{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "old", "ownerReferences": [OWNER]}, "spec": {"drivers": []}},
{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "old", "namespace": "kube-node-lease", "ownerReferences": [OWNER]},
  "spec": {"holderIdentity": "old", "leaseDurationSeconds": 40, "renewTime": "2099-01-01T00:00:00.000000Z"}},
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "etcd-old", "namespace": "default", "ownerReferences": [OWNER],
  "annotations": {"kubernetes.io/config.mirror": "h"}}, "spec": {"nodeName": "old", "containers": [{"name": "c", "image": "i"}]}},
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bound", "namespace": "default"}, "spec": {"nodeName": "old",
  "nodeSelector": {"kubernetes.io/hostname": "old"}, "containers": [{"name": "c", "image": "i"}]}},
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waiting", "namespace": "default"}, "spec": {"schedulingGates": [{"name": "example.com/gate"}],
  "nodeSelector": {"kubernetes.io/hostname": "old"}, "containers": [{"name": "c", "image": "i"}]}},
{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "local"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
  "local": {"path": "/data"}, "storageClassName": "local", "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
  [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["old"]}]}]}}}}
]}`

// createNode creates nodeObjects on an API server, and sets the Node ready.
func (c *cluster) createNode(t testing.TB) {
	t.Helper()
	k, file := c.kubectl(t), filepath.Join(t.TempDir(), "objects.json")
	apply := func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		said, ok := k.run(t, "apply", "-f", file)
		require.True(t, ok, said)
	}
	apply(
		`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old", "labels": {"kubernetes.io/hostname": ` +
			`"old"}}}`)
	uid, ok := k.run(t, "get", "node", "old", "-o", "jsonpath={.metadata.uid}")
	require.True(t, ok, uid)
	apply(strings.ReplaceAll(nodeObjects, "OWNER",
		fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "name": "old", "uid": %q, "controller": true}`, uid)))
	said, ok := k.run(t, "patch", "node", "old", "--subresource=status",
		"-p", `{"status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
		"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
		"lastHeartbeatTime": "2099-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	require.True(t, ok, said)
}

// nodeWatch returns the time in which controllers may find a problem with a renamed node.
func nodeWatch(t testing.TB) time.Duration {
	t.Helper()
	long, err := time.ParseDuration(os.Getenv("E2E_NODE_WATCH"))
	if err != nil {
		return 15 * time.Second
	}
	return long
}

// TestRenamedNode checks that scheduler, garbage collector and node controllers accept a renamed
// node, and that a Pod waiting for the node is bound to the new name.
func TestRenamedNode(t *testing.T) {
	t.Parallel()
	live := startCluster(t, filepath.Join(t.TempDir(), "empty"))
	live.createNode(t)
	saved, out := live.store.save(t), filepath.Join(t.TempDir(), "renamed.db")
	live.stop()
	said, err := exec.Command(etcdshift(t), "rename-node", saved, out, "old=new").CombinedOutput()
	require.NoError(t, err, "%s", said)
	c := startCluster(t, restoreAsIs(t, out, "--bump-revision", "1000000000", "--mark-compacted"))
	before := c.store.waitQuiet(t)
	flags := c.collectorFlags(t)
	flags[1] = "--controllers=garbage-collector-controller,node-lifecycle-controller," +
		"pod-garbage-collector-controller,taint-eviction-controller"
	manager := start(t, "kube-controller-manager", flags...)
	k := c.kubectl(t)
	told, ok := k.run(t, "patch", "pod", "waiting", "--type=json", "-p",
		`[{"op": "remove", "path": "/spec/schedulingGates"}]`)
	require.True(t, ok, told)
	scheduler := start(t, "kube-scheduler", flags[0], "--leader-elect=false", "--secure-port=0")
	pods := configMaps().GroupVersion().WithResource("pods")
	eventually(t, collectTimeout, "the waiting Pod is bound", func() error {
		pod, err := c.client(pods, "default").Get(context.Background(), "waiting", metav1.GetOptions{})
		if err == nil && child(pod.Object, "spec")["nodeName"] != "new" {
			err = fmt.Errorf("it is not bound: %v", child(pod.Object, "status")["conditions"])
		}
		return err
	})
	c.renew(t, "new", nodeWatch(t))
	require.False(t, manager.ended() || scheduler.ended(), "%s\n%s", manager.tail(t), scheduler.tail(t))
	var changes []string
	for _, change := range difference(before, c.store.records(t)) {
		if change != "changed /registry/pods/default/waiting" &&
			change != "changed /registry/leases/kube-node-lease/new" {
			changes = append(changes, change)
		}
	}
	require.Equal(t, []string{"changed /registry/minions/new"}, changes) // it is ready: a new Node's taint is removed
	node, err := c.client(configMaps().GroupVersion().WithResource("nodes"), "").Get(context.Background(), "new",
		metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, child(node.Object, "spec")["taints"])
	for _, name := range []string{"etcd-new", "bound"} {
		pod, err := c.client(pods, "default").Get(context.Background(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "new", child(pod.Object, "spec")["nodeName"])
	}
}

// renew renews the Lease of a node for some time, like a kubelet.
func (c *cluster) renew(t testing.TB, node string, howLong time.Duration) {
	t.Helper()
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	for end := time.Now().Add(howLong); time.Now().Before(end); time.Sleep(5 * time.Second) {
		renewed := fmt.Sprintf(`{"spec":{"renewTime":%q}}`,
			time.Now().AddDate(100, 0, 0).UTC().Format(metav1.RFC3339Micro))
		_, err := c.client(leases, "kube-node-lease").Patch(context.Background(), node, types.MergePatchType,
			[]byte(renewed), metav1.PatchOptions{})
		require.NoError(t, err)
	}
}

func child(m map[string]any, name string) map[string]any {
	is, _ := m[name].(map[string]any)
	return is
}
