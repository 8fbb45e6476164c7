package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const apiGroup = "CALICO_API_GROUP"

// installed returns the recorded cluster with a manifest install of Calico, stored by the API
// server itself, with the defaults and the encoding of a live cluster.
func installed(t testing.TB) (snapshot string) {
	t.Helper()
	c := startCluster(t, restoreAsIs(t, snapshotOf(t, "before")))
	c.install(t)
	stored := c.store.waitQuiet(t)
	require.True(t, strings.HasPrefix(stored["/registry/daemonsets/kube-system/calico-node"].value, "k8s\x00"),
		"stored as protobuf")
	snapshot = c.store.save(t)
	c.stop()
	return snapshot
}

// install creates the objects of the manifest.
func (c *cluster) install(t testing.TB) {
	t.Helper()
	for _, obj := range manifest(t) {
		// not by discovery: the server of the old v3 group does not run
		resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		client := c.client(resource, obj.GetNamespace())
		// the server creates kube-system with a delay
		eventually(t, serveTimeout, "create "+obj.GetName(), func() error {
			_, err := client.Create(context.Background(), obj, metav1.CreateOptions{})
			return err
		})
	}
}

// manifest reads the objects of testdata/manifest-install.yaml.
func manifest(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "manifest-install.yaml"))
	require.NoError(t, err)
	defer f.Close()
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, obj)
	}
}

// requireRolling requires that the API server serves Calico's workloads as after a change of their
// Pod templates: the new group in each container, all other fields unchanged, and a generation that
// makes controllers roll.
func requireRolling(t testing.TB, c *cluster) {
	t.Helper()
	for _, want := range manifest(t) {
		if want.GroupVersionKind().Group != "apps" {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(want.GroupVersionKind())
		obj := c.get(t, resource, want.GetName())
		calico := want.GetName() != "bystander"
		generation := int64(1)
		if calico {
			generation = 2
		}
		require.Equal(t, generation, obj.GetGeneration(), want.GetName())
		for _, list := range []string{"initContainers", "containers"} {
			requireContainers(t, containers(t, want, list), containers(t, obj, list), calico)
		}
	}
	config := c.get(t, configMaps(), "calico-config")
	text, _, err := unstructured.NestedString(config.Object, "data", "cni_network_config")
	require.NoError(t, err)
	require.Contains(t, text, `"calico_api_group": "projectcalico.org/v3"`)
	require.NotContains(t, text, groupV1)
}

func (c *cluster) get(t testing.TB, r schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := c.client(r, "kube-system").Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(t, err, "%s %s", r.Resource, name)
	return obj
}

func containers(t testing.TB, obj *unstructured.Unstructured, list string) []any {
	t.Helper()
	out, _, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", list)
	require.NoError(t, err)
	return out
}

// requireContainers compares a workload's containers in the manifest with the served containers.
func requireContainers(t testing.TB, want, served []any, calico bool) {
	t.Helper()
	require.Len(t, served, len(want))
	for i := range want {
		want, served := want[i].(map[string]any), served[i].(map[string]any)
		require.Equal(t, want["name"], served["name"])
		require.Equal(t, want["image"], served["image"])
		wantEnv, env := environment(want), environment(served)
		if calico {
			wantEnv[apiGroup] = map[string]any{"name": apiGroup, "value": groupV3 + "/v3"}
		}
		require.Len(t, env, len(wantEnv), want["name"])
		for name, variable := range wantEnv {
			if variable["value"] != nil { // references get defaults
				require.Equal(t, variable, env[name], "%s of %s", name, want["name"])
			}
			require.Contains(t, env, name, want["name"])
		}
	}
}

// environment returns a container's variables by name.
func environment(container map[string]any) map[string]map[string]any {
	out := make(map[string]map[string]any)
	list, _ := container["env"].([]any)
	for _, variable := range list {
		if v, isMap := variable.(map[string]any); isMap {
			out[v["name"].(string)] = v
		}
	}
	return out
}
