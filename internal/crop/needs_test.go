package crop

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// put returns a script line that writes an object with the UID u-NAME; more is JSON.
func put(kind, key, metadata, more string) string {
	parts := strings.Split(key, "/")
	name, namespace := parts[len(parts)-1], ""
	apiVersion := map[string]string{"Deployment": "apps/v1", "ReplicaSet": "apps/v1",
		"StorageClass": "storage.k8s.io/v1", "Widget": "demo.example.com/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1",
		"ClusterRole":              "rbac.authorization.k8s.io/v1",
		"ClusterRoleBinding":       "rbac.authorization.k8s.io/v1"}[kind]
	if apiVersion == "" {
		apiVersion = "v1"
	}
	if parts[len(parts)-2] == "a" || parts[len(parts)-2] == "b" {
		namespace = `,"namespace":"` + parts[len(parts)-2] + `"`
	}
	return fmt.Sprintf("put /registry/%s %q", key, fmt.Sprintf(
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"uid":"u-%s"%s%s}%s}`, apiVersion, kind, name, name, namespace,
		metadata, more))
}

func owner(kind, apiVersion, name, uid string) string {
	return fmt.Sprintf(`,"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]`, apiVersion, kind, name, uid)
}

// shop returns a snapshot of a namespace with a history, and of the objects around it.
func shop(t testing.TB) string {
	return etcdtest.Build(t, strings.Join([]string{
		"put /registry/secrets/a/gone swordfish-1",
		"put /registry/secrets/b/other swordfish-2",
		"del /registry/secrets/a/gone",
		put("CustomResourceDefinition", "apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com", "",
			`,"spec":{"group":"demo.example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget",`+
				`"kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":`+
				`{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}`),
		put("Namespace", "namespaces/a", "", ""), put("Namespace", "namespaces/b", "", ""),
		put("Widget", "demo.example.com/widgets/a/w", `,"labels":{"x":"swordfish-3"}`, ""),
		put("Widget", "demo.example.com/widgets/a/w", `,"labels":{"x":"kept"}`, ""),
		put("Deployment", "deployments/a/web", "", ""),
		put("ReplicaSet", "replicasets/a/web-1", owner("Deployment", "apps/v1", "web", "u-web"), ""),
		put("Pod", "pods/a/web-1-x", `,"labels":{"app":"web"}`+owner("ReplicaSet", "apps/v1", "web-1", "u-web-1"),
			`,"spec":{"serviceAccountName":"sa","nodeName":"n1","volumes":[{"name":"v","persistentVolumeClaim":`+
				`{"claimName":"data"}},{"name":"w","secret":{"secretName":"missing"}}]}`),
		put("ServiceAccount", "serviceaccounts/a/sa", "", ""),
		put("PersistentVolumeClaim", "persistentvolumeclaims/a/data", "",
			`,"spec":{"storageClassName":"fast","volumeName":"pv"}`),
		put("PersistentVolume", "persistentvolumes/pv", "", `,"spec":{"storageClassName":"slow",`+
			`"claimRef":{"namespace":"a","name":"data"}}`),
		put("StorageClass", "storageclasses/fast", "", ""), put("StorageClass", "storageclasses/slow", "", ""),
		put("Node", "minions/n1", "", ""), put("Node", "minions/n2", "", ""),
		put("ClusterRole", "clusterroles/reads", "", ""), put("ClusterRole", "clusterroles/writes", "", ""),
		put("ClusterRoleBinding", "clusterrolebindings/of-sa", "", `,"roleRef":{"kind":"ClusterRole","name":"reads"},`+
			`"subjects":[{"kind":"ServiceAccount","namespace":"a","name":"sa"}]`),
		put("ClusterRoleBinding", "clusterrolebindings/of-b", "", `,"roleRef":{"kind":"ClusterRole","name":"writes"},`+
			`"subjects":[{"kind":"ServiceAccount","namespace":"b","name":"sa"}]`),
		put("ConfigMap", "configmaps/a/on-node", owner("Node", "v1", "n2", "u-n2"), ""),
		put("ConfigMap", "configmaps/a/lost", owner("ConfigMap", "v1", "web", "u-lost"), ""),
		"put /registry/configmaps/a/encrypted k8s:enc:aescbc:v1:key1:abc",
		"put /registry/configmaps/a/odd/key x",
		"grant 77 3600", "put /registry/masterleases/1 x", "grant 78 60",
		put("Event", "events/a/e", "", "") + " lease=77",
		"put /outside swordfish-4",
	}, "\n"))
}

// needed returns the section of needs, as "is key (first of objects)".
func needed(r *transform.Report) (all []string) {
	short := strings.NewReplacer("/registry/", "", "apiextensions.k8s.io/customresourcedefinitions", "crds")
	for _, n := range transformtest.Section[Needs](r).Needs {
		text := fmt.Sprintf("%s %s by %d", n.Is, n.Key, n.Objects)
		if n.Owner {
			text += " owner"
		}
		all = append(all, short.Replace(text))
	}
	return all
}

func problems(r *transform.Report) (all []string) {
	for _, p := range r.Problems {
		all = append(all, strings.TrimSpace(p.Code.Name+" "+strings.TrimPrefix(p.Key, "/registry/")))
	}
	slices.Sort(all)
	return all
}

func keysIn(t testing.TB, path string) (all []string) {
	records, _, _ := live(t, path)
	for _, one := range records {
		all = append(all, strings.TrimPrefix(string(one.Record.Key), "/registry/"))
	}
	slices.Sort(all)
	return all
}

// TestNamespace checks a namespace with all its objects: its needs are listed or taken, and no byte
// of another record is in OUT.
func TestNamespace(t *testing.T) {
	in := shop(t)
	r, _, err := crop(t, in, "--namespace=a")
	require.ErrorIs(t, err, transform.ErrRefused)
	found := []string{"owner-outside configmaps/a/on-node", "owners-unread configmaps/a/encrypted",
		"unknown-key configmaps/a/odd/key"}
	require.Equal(t, found, problems(r))
	outside := []string{
		"left out crds/widgets.demo.example.com by 1",
		"left out clusterrolebindings/of-sa by 1",
		"left out clusterroles/reads by 1",
		"missing configmaps/a/web by 1 owner",
		"left out minions/n1 by 1", "left out minions/n2 by 1 owner",
		"left out persistentvolumes/pv by 1",
		"missing secrets/a/missing by 1",
		"left out storageclasses/fast by 1", "left out storageclasses/slow by 1",
	}
	require.ElementsMatch(t, outside, needed(r))

	r, out, err := crop(t, in, "--namespace=a", "owner-outside")
	require.NoError(t, err)
	require.Equal(t, found, problems(r))
	inside := []string{"configmaps/a/encrypted", "configmaps/a/lost", "configmaps/a/on-node",
		"demo.example.com/widgets/a/w", "deployments/a/web", "events/a/e", "namespaces/a",
		"persistentvolumeclaims/a/data", "pods/a/web-1-x", "replicasets/a/web-1", "serviceaccounts/a/sa"}
	require.Equal(t, inside, keysIn(t, out))
	raw := read(t, out)
	for n := range 4 {
		require.False(t, bytes.Contains(raw, fmt.Appendf(nil, "swordfish-%d", n+1)), "%d", n+1)
	}
	for _, other := range []string{"/registry/namespaces/b", "masterleases", "clusterroles", "default=http"} {
		require.NotContains(t, string(raw), other)
	}
	require.Equal(t, map[int64]int64{77: 3600}, leases(t, out))

	r, out, err = crop(t, in, "--namespace=a --needed")
	require.NoError(t, err)
	require.Equal(t, found[1:], problems(r))
	require.ElementsMatch(t, strings.Split(strings.ReplaceAll(strings.Join(outside, "\n"), "left out", "taken"), "\n"),
		needed(r))
	require.ElementsMatch(t, append(inside, "apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com",
		"clusterrolebindings/of-sa", "clusterroles/reads", "minions/n1", "minions/n2", "persistentvolumes/pv",
		"storageclasses/fast", "storageclasses/slow"), keysIn(t, out))
}

// leases returns the leases of a file.
func leases(t testing.TB, path string) map[int64]int64 {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	granted, err := s.Leases(context.Background())
	require.NoError(t, err)
	return granted
}

// TestOwners checks objects selected without their owners: --needed takes the owners of owners too.
func TestOwners(t *testing.T) {
	in := shop(t)
	for _, line := range []string{
		"pods --namespace=a", "pod/web-1-x --namespace=a", "--selector=app=web --namespace=a",
	} {
		allow := []string{"encrypted", "undecodable"} // labels of an encrypted object are unknown
		r, _, err := crop(t, in, line, allow...)
		require.ErrorIs(t, err, transform.ErrRefused)
		require.Contains(t, problems(r), "owner-outside pods/a/web-1-x", line)
		require.Contains(t, needed(r), "left out replicasets/a/web-1 by 1 owner", line)
		_, out, err := crop(t, in, line, append(allow, "owner-outside")...)
		require.NoError(t, err)
		require.Equal(t, []string{"pods/a/web-1-x"}, keysIn(t, out), line)
		_, out, err = crop(t, in, line+" --needed", allow...)
		require.NoError(t, err)
		require.Equal(t, []string{"deployments/a/web", "minions/n1", "namespaces/a", "persistentvolumeclaims/a/data",
			"persistentvolumes/pv", "pods/a/web-1-x", "replicasets/a/web-1", "serviceaccounts/a/sa",
			"storageclasses/fast", "storageclasses/slow"}, keysIn(t, out), line)
	}
}

// TestMissing checks names, namespaces and labels without an object.
func TestMissing(t *testing.T) {
	in := shop(t)
	for line, want := range map[string]string{
		"--namespace=c": "not-found", "--namespace=a,c": "not-found", "cm/none --namespace=a": "not-found",
		"cm --namespace=b": "nothing-chosen", "deployments": "nothing-chosen",
		"--selector=app=web --all-namespaces": "encrypted",
	} {
		r, _, err := crop(t, in, line, "owner-outside")
		require.ErrorIs(t, err, transform.ErrRefused, line)
		require.Contains(t, strings.Join(problems(r), "\n"), want, line)
	}
	_, _, err := crop(t, in, "wigets --namespace=a")
	require.ErrorContains(t, err, "no such type")
}
