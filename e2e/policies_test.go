package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// matched returns the resources matched by the policies of testdata/policies.
func matched() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{deployments(), configMaps(), {Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "pods"}}
}

// usePolicies creates the policies of a file at v1, because servers do not serve v1beta1 by
// default.
func (c *cluster) usePolicies(t testing.TB, name string) (path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "policies", name))
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text),
		"admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1")), 0o600))
	said, ok := c.kubectl(t).run(t, "apply", "-f", path)
	require.True(t, ok, said)
	return path
}

// touch updates every object of a resource without a change, and returns the refusals by
// NAMESPACE/NAME.
func (c *cluster) touch(
	t testing.TB, r schema.GroupVersionResource, o metav1.UpdateOptions,
) (refused map[string]string) {
	t.Helper()
	refused = map[string]string{}
	all, err := c.client(r, "").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, obj := range all.Items {
		if _, err := c.client(r, obj.GetNamespace()).Update(context.Background(), &obj, o); err != nil {
			refused[obj.GetNamespace()+"/"+obj.GetName()] = err.Error()
		}
	}
	return refused
}

// state returns the objects of a resource without the fields changed by each write.
func (c *cluster) state(t testing.TB, r schema.GroupVersionResource) map[string]any {
	t.Helper()
	all, err := c.client(r, "").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]any{}
	for _, obj := range all.Items {
		obj.SetManagedFields(nil)
		obj.SetResourceVersion("")
		out[obj.GetNamespace()+"/"+obj.GetName()] = obj.Object
	}
	return out
}

// TestMutatingPolicies checks that the examples of the Kubernetes documentation change updated
// objects on a real API server as "policy apply" changes them in a snapshot.
func TestMutatingPolicies(t *testing.T) {
	t.Parallel()
	c, _ := everyKind(t)
	for _, line := range []string{"create configmap team -n a --from-literal=team=red",
		"label configmap team -n a param=team"} {
		said, ok := c.kubectl(t).run(t, strings.Fields(line)...)
		require.True(t, ok, said)
	}
	c.store.waitQuiet(t)
	saved := c.store.save(t)
	policies := c.usePolicies(t, "mutating.yaml")
	eventually(t, serveTimeout, "the policies are enforced", func() error {
		d, err := c.client(deployments(), "a").Get(context.Background(), "d", metav1.GetOptions{})
		if err == nil {
			d, err = c.client(deployments(), "a").Update(context.Background(), d,
				metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		if err != nil {
			return err
		}
		added, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "initContainers")
		if len(added) == 0 || d.GetLabels()["example.com/team"] != "red" {
			return errors.New("not yet")
		}
		return nil
	})
	out := filepath.Join(t.TempDir(), "out.db")
	said, err := exec.Command(etcdshift(t), "policy", "apply", "-q", saved, out, "-f", policies,
		"--strict").CombinedOutput()
	require.NoError(t, err, "%s", said)
	offline := startCluster(t, restoreAsIs(t, out))
	for _, r := range matched()[:3] {
		require.Empty(t, c.touch(t, r, metav1.UpdateOptions{}), r)
		require.Equal(t, c.state(t, r), offline.state(t, r), r)
	}
}

// TestValidatingPolicies checks that "policy check" reports the updates refused by a real API
// server, with the same messages.
func TestValidatingPolicies(t *testing.T) {
	t.Parallel()
	c, saved := everyKind(t)
	policies := c.usePolicies(t, "validating.yaml")
	dryRun := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	eventually(t, serveTimeout, "the policies are enforced", func() error {
		if len(c.touch(t, deployments(), dryRun)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	text, err := exec.Command(etcdshift(t), "policy", "check", "-q", "-o", "json", saved, "-f", policies).Output()
	require.ErrorAs(t, err, new(*exec.ExitError))
	var checked struct{ Findings []found }
	require.NoError(t, json.Unmarshal(text, &checked))
	denied := map[string]string{}
	for _, f := range checked.Findings {
		if f.Code == "policy-denied" {
			denied[f.Key] = f.Message
		}
	}
	require.NotEmpty(t, denied)
	for _, r := range matched() {
		for name, message := range c.touch(t, r, dryRun) {
			if !strings.Contains(message, "ValidatingAdmissionPolicy") {
				continue // Pods refused by other rules
			}
			key := "/registry/" + r.Resource + "/" + name
			require.Contains(t, denied, key)
			require.Contains(t, message, denied[key])
			delete(denied, key)
		}
	}
	require.Empty(t, denied)
}
