package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

const watchTimeout = 30 * time.Second

// newPolicy returns a policy without tier and types.
func newPolicy() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": groupV3 + "/v3", "kind": "NetworkPolicy",
		"metadata": map[string]any{"name": "made-afterwards", "namespace": "team-a"},
		"spec": map[string]any{
			"selector": "app == 'web'",
			"ingress":  []any{map[string]any{"action": "Allow", "protocol": "TCP"}},
		},
	}}
}

// usePolicy watches a new policy from creation to deletion. The recorded admission policies add its
// missing fields; for the first seconds, until the server knows their kind, it refuses every
// policy.
func (c *cluster) usePolicy(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	client := c.client(v3("networkpolicies"), "team-a")
	list, err := client.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	events, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	defer events.Stop()

	var made *unstructured.Unstructured
	eventually(t, serveTimeout, "create a policy", func() (err error) {
		made, err = client.Create(ctx, newPolicy(), metav1.CreateOptions{})
		return err
	})
	require.Equal(t, map[string]string{"projectcalico.org/tier": "default"}, made.GetLabels())
	spec := newPolicy().Object["spec"].(map[string]any)
	spec["tier"], spec["types"] = "default", []any{"Ingress"}
	require.Equal(t, spec, made.Object["spec"])
	require.Equal(t, made, next(t, events, watch.Added))

	intent := newPolicy()
	intent.Object["spec"] = map[string]any{"order": int64(7)}
	applied, err := client.Apply(ctx, made.GetName(), intent, metav1.ApplyOptions{FieldManager: "e2e"})
	require.NoError(t, err)
	spec["order"] = int64(7)
	require.Equal(t, spec, applied.Object["spec"])
	require.Equal(t, applied, next(t, events, watch.Modified))

	require.NoError(t, client.Delete(ctx, made.GetName(), metav1.DeleteOptions{}))
	require.Equal(t, made.GetUID(), next(t, events, watch.Deleted).GetUID())
}

func next(t testing.TB, events watch.Interface, want watch.EventType) *unstructured.Unstructured {
	t.Helper()
	select {
	case event := <-events.ResultChan():
		require.Equal(t, want, event.Type, "%v", event.Object)
		return event.Object.(*unstructured.Unstructured)
	case <-time.After(watchTimeout):
		require.Fail(t, "nothing seen", "a watch waited for %s", want)
		return nil
	}
}
