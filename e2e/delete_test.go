package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deletions returns command lines for "kubectl delete" and "etcdshift delete".
func deletions() []string {
	return []string{
		"secret/root -n a", "configmap web-1 web-2 -n a", "configmaps -n a -l app=old", "namespace gone",
		"gizmos.example.com old-0",
		"secret/left -n a --cascade=orphan", "secrets --all-namespaces --field-selector type=example.com/kind",
		"configmaps,secrets --all -n b",
	}
}

// createFamily creates the objects of the deletions, and their dependents.
func (c *cluster) createFamily(t testing.TB) {
	t.Helper()
	c.createGizmos(t)
	k := c.kubectl(t)
	for _, line := range []string{
		"create namespace a", "create namespace b", "create namespace gone",
		"create secret generic root -n a", "create secret generic other -n a", "create secret generic left -n a",
		"create secret generic typed -n a --type=example.com/kind",
		"create secret generic stays -n a --type=example.com/other",
		"create configmap web-1 -n a", "create configmap web-2 -n a", "create configmap web-3 -n a",
		"create configmap old -n a",
		"label configmap old -n a app=old", "create configmap one -n b", "create secret generic two -n b",
		"create serviceaccount three -n b",
		"create configmap inside -n gone", "create deployment inside -n gone --image=example.com/none",
	} {
		text, ok := k.run(t, strings.Fields(line)...)
		require.True(t, ok, text)
	}
	secret, configMap := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, configMaps()
	c.own(t, "child", nil, secret, "root")
	c.own(t, "grandchild", nil, configMap, "child")
	c.own(t, "both", nil, secret, "root", "other")
	c.own(t, "held", []string{"example.com/hold"}, secret, "root")
	c.own(t, "of-held", nil, configMap, "held")
	c.own(t, "of-web", nil, configMap, "web-1")
	c.own(t, "of-web-3", nil, configMap, "web-3")
	c.own(t, "of-left", nil, secret, "left")
	c.own(t, "of-left-and-other", nil, secret, "left", "other")
}

// own creates a ConfigMap in namespace a with finalizers and owners.
func (c *cluster) own(t testing.TB, name string, finalizers []string, r schema.GroupVersionResource, owners ...string) {
	t.Helper()
	ctx := context.Background()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}}}
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		of, err := c.client(r, "a").Get(ctx, owner, metav1.GetOptions{})
		require.NoError(t, err)
		refs = append(refs, metav1.OwnerReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: owner,
			UID: of.GetUID()})
	}
	obj.SetOwnerReferences(refs)
	obj.SetFinalizers(finalizers)
	_, err := c.client(configMaps(), "a").Create(ctx, obj, metav1.CreateOptions{})
	require.NoError(t, err)
}

// deletion has the fields of a report of "etcdshift delete" used in these tests.
type deletion struct {
	Outcome  string
	Deletion struct{ Collected []struct{ Key, Does string } }
}

// changes returns the garbage collector's reported actions in the form of difference.
func (d deletion) changes() (all []string) {
	for _, c := range d.Deletion.Collected {
		what := map[string]string{"deleted": "deleted ", "released": "changed ",
			"marked for deletion": "changed "}[c.Does]
		if what != "" {
			all = append(all, what+c.Key)
		}
	}
	return all
}

// deleteOffline runs "etcdshift delete".
func deleteOffline(t testing.TB, in, line string) (out string, d deletion) {
	t.Helper()
	dir := t.TempDir()
	out = filepath.Join(dir, "out.db")
	cmd := exec.Command(etcdshift(t), append([]string{"delete", "-q", "-o", "json", in, out},
		strings.Fields(line)...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	require.NoError(t, err, "%s: %s", line, text)
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, "written", d.Outcome, line)
	return out, d
}

// deleteLive runs "kubectl delete" with the relevant controllers, until ConfigMaps in a namespace
// are collected.
func (c *cluster) deleteLive(t testing.TB, lines []string, namespace string, collected ...string) {
	t.Helper()
	flags := slices.DeleteFunc(c.collectorFlags(t),
		func(flag string) bool { return strings.HasPrefix(flag, "--controllers=") })
	manager := start(t, "kube-controller-manager", append(flags,
		"--controllers=garbage-collector-controller,namespace-controller,"+
			"persistentvolumeclaim-protection-controller,volumeattributesclass-protection-controller")...)
	defer manager.stop()
	k := c.kubectl(t)
	for _, line := range lines {
		args := append([]string{"delete"}, strings.Fields(line)...)
		if args[1] == "pods" { // no kubelet runs
			args = append(args, "--force", "--grace-period=0")
		}
		text, ok := k.run(t, args...)
		require.True(t, ok, text)
	}
	for _, name := range collected {
		eventually(t, collectTimeout, name+" is collected", func() error {
			_, err := c.client(configMaps(), namespace).Get(context.Background(), name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return errors.New("it is still there")
			}
			return nil
		})
	}
	c.store.waitQuiet(t)
}

// TestDelete checks that the objects deleted by kubectl on a server with a garbage collector and a
// namespace controller are also deleted by "etcdshift delete", a restore and a garbage collector,
// which acts as reported.
func TestDelete(t *testing.T) {
	t.Parallel()
	live := startCluster(t, filepath.Join(t.TempDir(), "live"))
	live.createFamily(t)
	live.store.waitQuiet(t)
	offline := live.store.save(t)
	var want []string
	for _, line := range deletions() {
		var d deletion
		offline, d = deleteOffline(t, offline, line)
		want = append(want, d.changes()...)
	}
	sortChanges(want)
	require.Equal(t, []string{
		"changed /registry/configmaps/a/both", "deleted /registry/configmaps/a/child",
		"deleted /registry/configmaps/a/grandchild",
		"changed /registry/configmaps/a/held", "deleted /registry/configmaps/a/of-web",
		"deleted /registry/configmaps/default/owned-by-gizmo",
	}, want)
	live.deleteLive(t, deletions(), "a", "grandchild", "of-web")
	after := live.store.save(t)
	live.stop()

	restored := startCluster(t, restoreAsIs(t, offline, "--bump-revision", "1000000000", "--mark-compacted"))
	require.Equal(t, want, restored.collect(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		"default"))
	require.Equal(t, []string{
		"changed configmaps a/held", "  metadata.deletionTimestamp", // a different time
	}, differences(t, after, restored.store.save(t)))
}

// differencesOfDelete returns fields that differ between an offline and a live deletion, with
// reasons.
func differencesOfDelete() map[string]string {
	return map[string]string{
		"  metadata.deletionTimestamp": "the collector marks a dependent at another time",
		"ranges servicenodeports  data": "an API server frees the node ports of missing Services within minutes " +
			"after its start",
	}
}

// TestDeleteKinds checks on a recorded control plane that "kubectl delete" leaves the same objects
// as "etcdshift delete", a restore and the garbage collector.
func TestDeleteKinds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "deletions.txt"))
	require.NoError(t, err)
	lines, kinds := strings.Split(strings.TrimSpace(string(text)), "\n"), map[string]bool{}
	live := startCluster(t, restoreAsIs(t, base(t)), baseFlags()...)
	live.store.waitQuiet(t)
	offline := live.store.save(t)
	for _, line := range lines {
		offline, _ = deleteOffline(t, offline, line)
		kinds[strings.Fields(line)[0]] = true
	}
	require.Greater(t, len(kinds), 40)
	live.deleteLive(t, lines, "shop", "own-own-w1", "own-web", "own-g1")
	after := live.store.save(t)
	live.stop()

	restored := startCluster(t, restoreAsIs(t, offline, "--bump-revision", "1000000000", "--mark-compacted"),
		baseFlags()...)
	restored.collect(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "default")
	changed := ""
	for _, line := range differences(t, after, restored.store.save(t)) {
		switch object, is := strings.CutPrefix(line, "changed "); {
		case is:
			changed = object
		case differencesOfDelete()[line] == "" && differencesOfDelete()[changed+line] == "":
			t.Errorf("%s: %s", changed, line)
		}
	}
}

// differences returns the objects and fields that differ between two files, by "etcdshift diff". It
// ignores an API server's own Lease, which is recreated at each start.
func differences(t testing.TB, a, b string) (all []string) {
	t.Helper()
	text, _ := exec.Command(etcdshift(t), "diff", "-q", a, b).Output() // the exit status reports differences
	lease := false
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "added", "removed", "changed", "recreated":
			if lease = strings.HasPrefix(rest, "leases.coordination.k8s.io kube-system/apiserver-"); !lease {
				all = append(all, word+" "+rest)
			}
		case "+", "-":
			field, _, _ := strings.Cut(rest, ":")
			if !lease && !slices.Contains(all, "  "+field) {
				all = append(all, "  "+field)
			}
		}
	}
	return all
}

// TestDeleteDefinition checks that a definition is deleted with its objects. Their dependents stay,
// as reported: no server knows the owner's kind any more.
func TestDeleteDefinition(t *testing.T) {
	t.Parallel()
	live := startCluster(t, filepath.Join(t.TempDir(), "live"))
	live.createGizmos(t)
	live.store.waitQuiet(t)
	saved := live.store.save(t)
	live.stop()
	out, d := deleteOffline(t, saved, "crd gizmos.example.com --allow crd-has-objects")
	require.Len(t, d.Deletion.Collected, 1)
	require.Equal(t, "kept", d.Deletion.Collected[0].Does)
	restored := startCluster(t, restoreAsIs(t, out, "--bump-revision", "1000000000", "--mark-compacted"))
	require.Zero(t, restored.store.count(t, "/registry/example.com/"))
	require.Empty(t, restored.collect(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "default"))
	require.Equal(t, 1, restored.store.count(t, d.Deletion.Collected[0].Key))
}
