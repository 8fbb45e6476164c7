package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aPlan migrates Gadgets to their storage version, changes a Gadget at that version, and deletes
// objects like kubectl.
const aPlan = `apiVersion: etcdshift/v1
kind: Plan
steps:
- command: migrate storage-versions
  flags: {crd: [gadgets.example.com]}
- command: patch
  args: [gadget/g-old]
  flags: {namespace: team-a, type: merge, patch: '{"spec": {"a": 7}, "metadata": {"labels": {"changed": "yes"}}}'}
- command: delete
  args: [networkpolicies.networking.k8s.io]
  flags: {all: true, all-namespaces: true}
`

// runPlan runs a plan with bin/etcdshift.
func runPlan(t testing.TB, plan, in string) report {
	t.Helper()
	dir := t.TempDir()
	path, reportPath, out := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "report.json"),
		filepath.Join(dir, "after.db")
	require.NoError(t, os.WriteFile(path, []byte(plan), 0o600))
	said, err := exec.Command(etcdshift(t), "run", path, in, out, "--report", reportPath).CombinedOutput()
	require.NoError(t, err, "%s", said)
	text, err := os.ReadFile(reportPath)
	require.NoError(t, err)
	r := report{path: out}
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, "written", r.Outcome)
	return r
}

// TestPlan checks that the changes of several commands in one run are served, and can be changed
// again.
func TestPlan(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := startCluster(t, runPlan(t, aPlan, snapshotOf(t, "before")).restore(t))
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	list, err := c.client(gadgets, "team-a").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
	for _, gadget := range list.Items {
		want, generation := int64(2), int64(1)
		if gadget.GetName() == "g-old" {
			want, generation = 7, 2
			require.Equal(t, map[string]string{"changed": "yes"}, gadget.GetLabels())
		}
		require.Equal(t, map[string]any{"a": want}, gadget.Object["spec"], gadget.GetName())
		require.Equal(t, generation, gadget.GetGeneration(), gadget.GetName())
		require.NoError(t, c.change(gadgets, &gadget))
	}
	crd, err := c.client(definitions(), "").Get(ctx, "gadgets.example.com", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []any{"v1"}, crd.Object["status"].(map[string]any)["storedVersions"])
	policies := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	list, err = c.client(policies, "").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}
