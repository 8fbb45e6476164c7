package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// listable returns the resources of a server that informers support.
func listable(t testing.TB, config *rest.Config) (all []schema.GroupVersionResource) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	lists, err := client.ServerPreferredResources()
	if !discovery.IsGroupDiscoveryFailedError(err) { // an APIService whose server is missing
		require.NoError(t, err)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			all = append(all, gv.WithResource(r.Name))
		}
	}
	return all
}

// informed returns the objects of informers for all resources, started concurrently: dynamic and
// metadata informers, and typed informers for client-go types. Objects are JSON, by informer and
// name.
func informed(t testing.TB, config *rest.Config, resources []schema.GroupVersionResource) map[string]map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), serveTimeout)
	defer cancel()
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	partial, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	inProtobuf := rest.CopyConfig(config)
	inProtobuf.ContentType = runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfig(inProtobuf)
	require.NoError(t, err)
	dynamics, partials := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0),
		metadatainformer.NewSharedInformerFactory(partial, 0)
	typed := informers.NewSharedInformerFactory(clients, 0)
	all := map[string]cache.SharedIndexInformer{}
	for _, r := range resources {
		all["dynamic "+r.String()] = dynamics.ForResource(r).Informer()
		all["metadata "+r.String()] = partials.ForResource(r).Informer()
		if informer, err := typed.ForResource(r); err == nil {
			all["typed "+r.String()] = informer.Informer()
		}
	}
	dynamics.Start(ctx.Done())
	partials.Start(ctx.Done())
	typed.Start(ctx.Done())
	out := map[string]map[string]string{}
	for name, informer := range all {
		require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), name)
		out[name] = map[string]string{}
		for _, key := range informer.GetStore().ListKeys() {
			obj, _, _ := informer.GetStore().GetByKey(key)
			text, err := json.Marshal(obj)
			require.NoError(t, err)
			out[name][key] = string(text)
		}
	}
	return out
}

// requireSameInformers requires that informers have the same objects from both servers.
func requireSameInformers(t *testing.T, live, served *rest.Config) {
	t.Helper()
	resources := listable(t, live)
	have := map[schema.GroupVersionResource]bool{}
	for _, r := range listable(t, served) {
		have[r] = true
	}
	var both []schema.GroupVersionResource
	for _, r := range resources {
		if !have[r] {
			require.True(t, justified("", r.Resource), "%s is not served", r)
			continue
		}
		if r.Resource != "leases" { // renewed by the running server
			both = append(both, r)
		}
	}
	require.Greater(t, len(both), 50)
	for _, watchList := range []bool{true, false} {
		featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
		want, got := informed(t, live, both), informed(t, served, both)
		objects := 0
		for name, known := range want {
			require.Equal(t, slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(got[name])), name)
			for key, text := range known {
				require.JSONEq(t, withoutDefaults(t, name, text), withoutDefaults(t, name, got[name][key]),
					"%s %s", name, key)
				objects++
			}
		}
		t.Logf("WatchList %t: %d informers have %d objects", watchList, len(want), objects)
	}
}

// withoutDefaults returns an object without the fields that a live server adds on read.
func withoutDefaults(t testing.TB, name, text string) string {
	t.Helper()
	obj := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(text), &obj))
	for resource, path := range map[string][]string{
		"=jobs": {"metadata", "labels"}, "=persistentvolumeclaims": {"status"}, "=csinodes": {"status"},
		"metadata apps/v1, Resource=daemonsets": {"metadata", "annotations"}, // omitted by a live server
	} {
		if strings.HasSuffix(name, resource) {
			unstructured.RemoveNestedField(obj, path...)
		}
	}
	out, err := json.Marshal(obj)
	require.NoError(t, err)
	return string(out)
}

// requireHelm requires that helm's query finds the stored releases.
func requireHelm(t testing.TB, served *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(served)
	require.NoError(t, err)
	list, err := client.CoreV1().Secrets("").List(context.Background(), metav1.ListOptions{LabelSelector: "owner=helm"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "sh.helm.release.v1.web.v1", list.Items[0].Name)
	require.Equal(t, "made-up", string(list.Items[0].Data["release"]))
	require.Less(t, time.Since(list.Items[0].CreationTimestamp.Time), time.Hour)
}
