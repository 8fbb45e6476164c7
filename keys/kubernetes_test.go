package keys

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ key, resource, namespace, name string }{
		{"/registry/namespaces/default", "namespaces", "", "default"},
		{"/registry/minions/node-a", "nodes", "", "node-a"},
		{"/registry/controllers/ns/rc", "replicationcontrollers", "ns", "rc"},
		{"/registry/services/specs/default/kubernetes", "services", "default", "kubernetes"},
		{"/registry/services/endpoints/default/kubernetes", "endpoints", "default", "kubernetes"},
		{"/registry/services/specs/specs/endpoints", "services", "specs", "endpoints"},
		{"/registry/ingress/ns/web", "ingresses.networking.k8s.io", "ns", "web"},
		{"/registry/podsecuritypolicy/psp", "podsecuritypolicies.policy", "", "psp"},
		{"/registry/deployments/ns/web", "deployments.apps", "ns", "web"},
		{"/registry/deployments/minions/nodes", "deployments.apps", "minions", "nodes"},
		{"/registry/events/ns/e.17a", "events", "ns", "e.17a"},
		{"/registry/leases/kube-node-lease/node-a", "leases.coordination.k8s.io", "kube-node-lease", "node-a"},
		{"/registry/masterleases/10.0.0.1", "masterleases", "", "10.0.0.1"},
		{"/registry/masterleases/fd00::1", "masterleases", "", "fd00::1"},
		{"/registry/peerserverleases/apiserver-x", "peerserverleases", "", "apiserver-x"},
		{"/registry/ranges/serviceips", "ranges", "", "serviceips"},
		{"/registry/ranges/secondaryserviceips", "ranges", "", "secondaryserviceips"},
		{"/registry/ranges/servicenodeports", "ranges", "", "servicenodeports"},
		{"/registry/storageversions/apps.deployments", "storageversions.internal.apiserver.k8s.io", "",
			"apps.deployments"},
		{"/registry/storageversionmigrations/m", "storageversionmigrations.storagemigration.k8s.io", "", "m"},
		{"/registry/mutatingadmissionpolicies/p.example.com", "mutatingadmissionpolicies.admissionregistration.k8s.io",
			"", "p.example.com"},
		{"/registry/horizontalpodautoscalers/ns/h", "horizontalpodautoscalers.autoscaling", "ns", "h"},
		{"/registry/clusterroles/system:node", "clusterroles.rbac.authorization.k8s.io", "", "system:node"},
		{"/registry/clusterroles/Rôle", "clusterroles.rbac.authorization.k8s.io", "", "Rôle"},
		{"/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
			"customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com"},
		{"/registry/apiregistration.k8s.io/apiservices/v1.", "apiservices.apiregistration.k8s.io", "", "v1."},
		{"/registry/projectcalico.org/tiers/default", "tiers.projectcalico.org", "", "default"},
		{"/registry/projectcalico.org/networkpolicies/ns/p", "networkpolicies.projectcalico.org", "ns", "p"},
		{"/registry/example.com/nodes/n", "nodes.example.com", "", "n"},
		{"/registry/example.com/services/specs/x", "services.example.com", "specs", "x"},
		// resources newer than the table
		{"/registry/gizmos/g", "gizmos", "", "g"},
		{"/registry/gizmos/ns/g", "gizmos", "ns", "g"},
	} {
		t.Run(c.key, func(t *testing.T) {
			layout := Kubernetes{Prefix: "/registry"}
			key, err := layout.Parse([]byte(c.key))
			require.NoError(t, err)
			require.Equal(t, Key{
				Prefix:    "/registry",
				Resource:  schema.ParseGroupResource(c.resource),
				Namespace: c.namespace,
				Name:      c.name,
			}, key)
			require.Equal(t, c.key, string(layout.Format(key)))
			require.True(t, strings.HasPrefix(c.key, string(layout.Dir(key.Resource))))
		})
	}
}

func TestUnknownKey(t *testing.T) {
	for _, c := range []struct{ prefix, key, reason string }{
		{"/registry", "", "not under"},
		{"/registry", "compact_rev_key", "not under"},
		{"/registry", "/registry", "not under"},
		{"/registry", "/registryx/pods/ns/p", "not under"},
		{"/registry", "/kubernetes.io/pods/ns/p", "not under"},
		{"/registry", "registry/pods/ns/p", "not under"},
		{"/registry/", "/registry/pods/ns/p", "not under"},
		{"/registry", "/registry/", "segment is"},
		{"/registry", "/registry//pods/ns/p", "segment is"},
		{"/registry", "/registry/pods", "wrong number"},
		{"/registry", "/registry/pods/", "segment is"},
		{"/registry", "/registry/pods/p", "wrong number"},
		{"/registry", "/registry/pods/ns/p/", "segment is"},
		{"/registry", "/registry/pods/ns/p/x", "wrong number"},
		{"/registry", "/registry/pods/ns/p/x/y/z/a/b/c//", "wrong number"},
		{"/registry", "/registry/pods/../p", "segment is"},
		{"/registry", "/registry/pods/./p", "segment is"},
		{"/registry", "/registry/pods/ns/\xff", "not UTF-8"},
		{"/registry", "/registry/namespaces/ns/default", "wrong number"},
		{"/registry", "/registry/health", "wrong number"},
		{"/registry", "/registry/gizmos/ns/g/x", "wrong number"},
		{"/registry", "/registry/Gizmos/ns/g", "not a resource"},
		{"/registry", "/registry/giz mos/g", "not a resource"},
		{"/registry", "/registry/-/g", "not a resource"},
		{"/registry", "/registry/services/default/kubernetes", "services are stored under services/specs/"},
		{"/registry", "/registry/services/specs/kubernetes", "wrong number"},
		{"/registry", "/registry/nodes/n", "nodes are stored under minions/"},
		{"/registry", "/registry/endpoints/ns/e", "stored under services/endpoints/"},
		{"/registry", "/registry/replicationcontrollers/ns/r", "stored under controllers/"},
		{"/registry", "/registry/networking.k8s.io/ingresses/ns/i", "stored under ingress/"},
		{"/registry", "/registry/events.k8s.io/events/ns/e", "stored under events/"},
		{"/registry", "/registry/example.com", "not a group and a resource"},
		{"/registry", "/registry/example.com/widgets", "wrong number"},
		{"/registry", "/registry/example.com/widgets/ns/w/x", "wrong number"},
		{"/registry", "/registry/example.com/Widgets/w", "not a group and a resource"},
		{"/registry", "/registry/.com/widgets/w", "not a group and a resource"},
		{"/registry", "/registry/apiregistration.k8s.io/apiservices/ns/v1.", "wrong number"},
		{"", "compact_rev_key", "not under"},
	} {
		t.Run(c.key, func(t *testing.T) {
			_, err := Kubernetes{Prefix: c.prefix}.Parse([]byte(c.key))
			require.ErrorIs(t, err, ErrUnknownKey)
			require.ErrorContains(t, err, c.reason)
		})
	}
}

func TestUnknownKeyIsQuoted(t *testing.T) {
	_, err := Kubernetes{Prefix: "/registry"}.Parse([]byte("compact\x00\n"))
	require.ErrorContains(t, err, `"compact\x00\n"`)
	_, err = Kubernetes{Prefix: "/registry"}.Parse([]byte(strings.Repeat("k", 1<<20)))
	require.ErrorContains(t, err, `" and 1048064 bytes more`)
	require.Less(t, len(err.Error()), 1000)
}

func TestPrefixes(t *testing.T) {
	for _, prefix := range []string{"/registry", "/kubernetes.io", "/a/b", "no-slash", "a/b.c/d", ""} {
		layout := Kubernetes{Prefix: prefix}
		for _, rest := range []string{"/pods/ns/p", "/example.com/widgets/w", "/minions/n"} {
			key, err := layout.Parse([]byte(prefix + rest))
			require.NoError(t, err)
			require.Equal(t, prefix, key.Prefix)
			require.Equal(t, prefix+rest, string(layout.Format(key)))
			require.Equal(t, "/new"+rest, string(Kubernetes{Prefix: "/new"}.Format(key)), "the layout's prefix counts")
		}
	}
}

func TestDir(t *testing.T) {
	for resource, want := range map[string]string{
		"pods":                        "/registry/pods/",
		"nodes":                       "/registry/minions/",
		"services":                    "/registry/services/specs/",
		"endpoints":                   "/registry/services/endpoints/",
		"events":                      "/registry/events/",
		"events.events.k8s.io":        "/registry/events/",
		"ingresses.extensions":        "/registry/ingress/",
		"ingresses.networking.k8s.io": "/registry/ingress/",
		"deployments.apps":            "/registry/deployments/",
		"deployments.extensions":      "/registry/deployments/",
		"customresourcedefinitions.apiextensions.k8s.io": "/registry/apiextensions.k8s.io/customresourcedefinitions/",
		"widget.example.com":                             "/registry/example.com/widget/",
		"gizmos":                                         "/registry/gizmos/",
	} {
		require.Equal(t, want, string(Kubernetes{Prefix: "/registry"}.Dir(schema.ParseGroupResource(resource))),
			resource)
	}
}

// TestTable checks the assumptions of the two indexes.
func TestTable(t *testing.T) {
	table := builtins()
	require.Len(t, kubernetesTable.byDir, len(table), "two built-ins in one place")
	byResource := kubernetesTable.byResource
	require.Len(t, byResource, len(table)+len(aliases()), "a built-in listed twice, or an alias that is in the table")
	for gr := range special() {
		require.Contains(t, byResource, gr)
	}
	for _, dir := range aliases() {
		require.Contains(t, kubernetesTable.byDir, dir)
	}
	for _, b := range table {
		require.NotEqual(t, anyScope, b.scope, b.String())
		require.True(t, isLabel(b.Resource), b.String())
	}
}

// TestFormatParse checks the second invariant for the whole table.
func TestFormatParse(t *testing.T) {
	for _, b := range builtins() {
		checkFormatParse(t, b, "/registry", "ns", "name")
	}
}

func checkFormatParse(t *testing.T, b builtin, prefix, namespace, name string) {
	t.Helper()
	want := Key{Prefix: prefix, Resource: b.GroupResource, Name: name}
	if b.scope == namespaced {
		want.Namespace = namespace
	}
	layout := Kubernetes{Prefix: prefix}
	got, err := layout.Parse(layout.Format(want))
	require.NoError(t, err)
	require.Equal(t, want, got)
}
