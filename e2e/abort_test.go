package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func v1Of(plural string) schema.GroupVersionResource {
	if plural == "ipamconfigurations" {
		plural = "ipamconfigs"
	}
	return schema.GroupVersionResource{Group: groupV1, Version: "v1", Resource: plural}
}

// TestAborted checks that after aborting a live migration Calico can run as v1: each v1 object is
// served, the datastore is ready, and the v3 group is served by Calico's API server. The garbage
// collector changes nothing.
func TestAborted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := migrate(t, snapshotOf(t, "after"), "--abort")
	c := startCluster(t, r.restore(t))
	for plural, want := range recorded() {
		var list *unstructured.UnstructuredList
		eventually(t, serveTimeout, "list "+plural, func() (err error) {
			list, err = c.objects.Resource(v1Of(plural)).List(ctx, metav1.ListOptions{})
			return err
		})
		require.Len(t, list.Items, want, plural)
	}
	lock, err := c.objects.Resource(v1Of("clusterinformations")).Get(ctx, "default", metav1.GetOptions{})
	require.NoError(t, err)
	ready, _, _ := unstructured.NestedBool(lock.Object, "spec", "datastoreReady")
	require.True(t, ready)
	require.Zero(t, c.store.count(t, "/registry/"+groupV3+"/"))
	require.Zero(t, c.store.count(t, "/registry/migration.projectcalico.org/"))

	require.Empty(t, c.collect(t, v1Of("globalnetworkpolicies"), "default.bare-raw"),
		"nothing else writes to the cluster")
	service, err := c.objects.Resource(apiServices()).Get(ctx, "v3."+groupV3, metav1.GetOptions{})
	require.NoError(t, err)
	name, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
	require.Equal(t, "calico-api", name, "the server has not made one of its own")
}
