package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	serveTimeout = 2 * time.Minute
	groupV3      = "projectcalico.org"
	groupV1      = "crd.projectcalico.org"
)

func v3(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: groupV3, Version: "v3", Resource: plural}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}

func apiServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// recorded returns the number of objects of each kind in the recorded cluster, 63 in total.
func recorded() map[string]int {
	return map[string]int{
		"tiers": 5, "felixconfigurations": 3, "bgpconfigurations": 2, "kubecontrollersconfigurations": 1, "ippools": 4,
		"ipreservations": 1, "bgppeers": 3, "bgpfilters": 1, "globalnetworkpolicies": 6, "networkpolicies": 5,
		"stagedglobalnetworkpolicies": 2, "stagednetworkpolicies": 1, "stagedkubernetesnetworkpolicies": 1,
		"hostendpoints":     2,
		"globalnetworksets": 2, "networksets": 2, "ipamconfigurations": 1, "blockaffinities": 8, "ipamblocks": 7,
		"ipamhandles": 4, "caliconodestatuses": 1, "clusterinformations": 1,
	}
}

// requireServed waits until the API server serves its resources, and returns every migrated object
// by plural. In its first seconds a server answers "storage is (re)initializing" for some kinds.
func (c *cluster) requireServed(t testing.TB) map[string][]unstructured.Unstructured {
	t.Helper()
	eventually(t, serveTimeout, "APIService v3."+groupV3, c.ownService)
	served, total := make(map[string][]unstructured.Unstructured), 0
	for plural, want := range recorded() {
		var list *unstructured.UnstructuredList
		eventually(t, serveTimeout, "list "+plural, func() (err error) {
			list, err = c.objects.Resource(v3(plural)).List(context.Background(), metav1.ListOptions{})
			return err
		})
		require.Len(t, list.Items, want, plural)
		served[plural] = list.Items
		total += len(list.Items)
	}
	require.Equal(t, 63, total)
	return served
}

// ownService returns nil once the APIService is the server's own for CRDs, and available.
func (c *cluster) ownService() error {
	obj, err := c.objects.Resource(apiServices()).Get(context.Background(), "v3."+groupV3, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, foreign, _ := unstructured.NestedMap(obj.Object, "spec", "service"); foreign {
		return errors.New("it belongs to an aggregated API server")
	}
	if managed := obj.GetLabels()["kube-aggregator.kubernetes.io/automanaged"]; managed != "true" {
		return fmt.Errorf("automanaged is %q", managed)
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c, isMap := c.(map[string]any); isMap && c["type"] == "Available" && c["status"] == "True" &&
			c["reason"] == "Local" {
			return nil
		}
	}
	return fmt.Errorf("not available: %v", conditions)
}

// requireNoV1 requires that the old group is gone: no APIService, no CRD, no record, no discovery.
func (c *cluster) requireNoV1(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	_, err := c.objects.Resource(apiServices()).Get(ctx, "v1."+groupV1, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "APIService v1.%s: %v", groupV1, err)
	crds, err := c.objects.Resource(definitions()).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	groups := make(map[string]int)
	for _, crd := range crds.Items {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		groups[group]++
	}
	require.Equal(t, len(recorded()), groups[groupV3])
	require.NotContains(t, groups, groupV1)
	require.Zero(t, c.store.count(t, "/registry/"+groupV1+"/"))
	found, err := c.discovery.ServerGroups()
	require.NoError(t, err)
	for _, group := range found.Groups {
		require.NotEqual(t, groupV1, group.Name)
	}
}

// useObject uses a migrated object like clients. A server skips an unchanged update only if the
// stored bytes are its own; it validates a changing update as a whole; an apply reads
// managedFields.
func (c *cluster) useObject(t testing.TB, plural string, obj *unstructured.Unstructured) {
	t.Helper()
	ctx, name := context.Background(), plural+" "+obj.GetNamespace()+"/"+obj.GetName()
	client := c.client(v3(plural), obj.GetNamespace())
	same, err := client.Update(ctx, obj.DeepCopy(), metav1.UpdateOptions{})
	require.NoError(t, err, name)
	require.Equal(t, obj.GetResourceVersion(), same.GetResourceVersion(), "%s: an update without a change was written",
		name)

	changed := same.DeepCopy()
	changed.SetAnnotations(map[string]string{"example.com/touched": "yes"})
	changed, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err, name)
	require.NotEqual(t, obj.GetResourceVersion(), changed.GetResourceVersion(), name)

	intent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(),
		"metadata": map[string]any{"name": obj.GetName(), "labels": map[string]any{"example.com/applied": "yes"}},
	}}
	applied, err := client.Apply(ctx, obj.GetName(), intent, metav1.ApplyOptions{FieldManager: "e2e"})
	require.NoError(t, err, name)
	require.Equal(t, "yes", applied.GetLabels()["example.com/applied"], name)
	require.Equal(t, obj.GetUID(), applied.GetUID(), name)
	require.Equal(t, obj.Object["spec"], applied.Object["spec"], name)
}
