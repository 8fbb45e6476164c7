package keys

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	anIdentity = "ae72113263cfba10b52e8ac474cd523aef79051fe7eca94547f19059d2da90cc"
	victim     = "2y3qvnqz5ga11oc4"
	other      = "11iehthilu5atzgl"
)

func TestParseKCP(t *testing.T) {
	const r = "/registry/"
	shard, cache := KCPShard{"/registry"}, KCPCache{"/registry"}
	for _, c := range []struct {
		layout   Layout
		key      string
		resource string
		want     Key
	}{
		{shard, r + "core/configmaps/" + other + "/" + victim + "/trap", "configmaps",
			Key{Cluster: other, Namespace: victim, Name: "trap"}},
		{shard, r + "core/namespaces/" + other + "/" + victim, "namespaces", Key{Cluster: other, Name: victim}},
		{shard, r + "core/events/c1/default/e", "events", Key{Cluster: "c1", Namespace: "default", Name: "e"}},
		{shard, r + "core/secrets/customers/ns/" + anIdentity, "secrets",
			Key{Cluster: "customers", Namespace: "ns", Name: anIdentity}},
		{shard, r + "core/configmaps/c1/customresources/c", "configmaps",
			Key{Cluster: "c1", Namespace: "customresources", Name: "c"}},
		{shard, r + "rbac.authorization.k8s.io/clusterroles/system:admin/system:node",
			"clusterroles.rbac.authorization.k8s.io", Key{Cluster: "system:admin", Name: "system:node"}},
		{shard, r + "rbac.authorization.k8s.io/clusterroles/c1/" + anIdentity, "clusterroles.rbac.authorization.k8s.io",
			Key{Cluster: "c1", Name: anIdentity}},
		{shard, r + "apiextensions.k8s.io/customresourcedefinitions/system:system-crds/apiexports.apis.kcp.io",
			"customresourcedefinitions.apiextensions.k8s.io",
			Key{Cluster: "system:system-crds", Name: "apiexports.apis.kcp.io"}},
		{shard, r + "core.kcp.io/logicalclusters/customresources/root:org:ws/cluster", "logicalclusters.core.kcp.io",
			Key{Custom: true, Cluster: "root:org:ws", Name: "cluster"}},
		{shard, r + "example.org/gizmos/customresources/" + other + "/" + victim + "/g", "gizmos.example.org",
			Key{Custom: true, Cluster: other, Namespace: victim, Name: "g"}},
		{shard, r + "example.dev/widgets/" + anIdentity + "/" + other + "/" + victim + "/w", "widgets.example.dev",
			Key{Identity: anIdentity, Cluster: other, Namespace: victim, Name: "w"}},
		{shard, r + "example.dev/sprockets/" + anIdentity + "/c1/s", "sprockets.example.dev",
			Key{Identity: anIdentity, Cluster: "c1", Name: "s"}},
		{shard, r + "apps/deployments/" + anIdentity + "/c1/ns/d", "deployments.apps",
			Key{Identity: anIdentity, Cluster: "c1", Namespace: "ns", Name: "d"}},
		{shard, r + "apps/deployments/customresources/c1/ns/d", "deployments.apps",
			Key{Custom: true, Cluster: "c1", Namespace: "ns", Name: "d"}},
		{shard, r + "example.org/customresources/customresources/c1/x", "customresources.example.org",
			Key{Custom: true, Cluster: "c1", Name: "x"}},
		{shard, r + "pods/" + anIdentity + "/" + other + "/" + victim + "/p", "pods",
			Key{Identity: anIdentity, Cluster: other, Namespace: victim, Name: "p"}},
		{shard, r + "gadgets/customresources/c1/ns/g", "gadgets",
			Key{Custom: true, Cluster: "c1", Namespace: "ns", Name: "g"}},
		{shard, r + "globals/customresources/c1/" + anIdentity, "globals",
			Key{Custom: true, Cluster: "c1", Name: anIdentity}},
		{shard, r + "configmaps/customresources/c1/ns/g", "configmaps",
			Key{Custom: true, Cluster: "c1", Namespace: "ns", Name: "g"}},
		{cache, r + "apiextensions.k8s.io/customresourcedefinitions/system:cache:server/system:system-crds/" +
			"shards.core.kcp.io", "customresourcedefinitions.apiextensions.k8s.io",
			Key{Shard: "system:cache:server", Cluster: "system:system-crds", Name: "shards.core.kcp.io"}},
		{cache, r + "rbac.authorization.k8s.io/clusterroles/customresources/root/c1/r:1",
			"clusterroles.rbac.authorization.k8s.io", Key{Custom: true, Shard: "root", Cluster: "c1", Name: "r:1"}},
		{cache, r + "example.dev/widgets/" + anIdentity + "/shard-1/c1/ns/w", "widgets.example.dev",
			Key{Identity: anIdentity, Shard: "shard-1", Cluster: "c1", Namespace: "ns", Name: "w"}},
		{cache, r + "pods/customresources/root/c1/ns/p", "pods",
			Key{Custom: true, Shard: "root", Cluster: "c1", Namespace: "ns", Name: "p"}},
	} {
		t.Run(c.key, func(t *testing.T) {
			c.want.Prefix, c.want.Resource = "/registry", schema.ParseGroupResource(c.resource)
			got, err := c.layout.Parse([]byte(c.key))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.key, string(c.layout.Format(got)))
			requireInDirs(t, c.layout, c.key, got)
		})
	}
}

func requireInDirs(t *testing.T, layout Layout, key string, parsed Key) {
	t.Helper()
	for _, dir := range layout.Dirs(parsed.Resource) {
		if strings.HasPrefix(key, string(dir)) {
			return
		}
	}
	t.Fatalf("%q is in none of the folders of %s", key, parsed.Resource)
}

func TestUnknownKCPKey(t *testing.T) {
	shard, cache := KCPShard{"/registry"}, KCPCache{"/registry"}
	for _, c := range []struct {
		layout      Layout
		key, reason string
	}{
		{shard, "", "not under"},
		{shard, "compact_rev_key", "not under"},
		{shard, "/registry", "not under"},
		{shard, "/registry/", "segment is"},
		{shard, "/registry/core", "neither"},
		{shard, "/registry/core/", "segment is"},
		{shard, "/registry/core/configmaps", "ends before"},
		{shard, "/registry/core/configmaps/c1", "wrong number"},
		{shard, "/registry/core/configmaps/c1/x", "wrong number"},
		{shard, "/registry/core/configmaps/c1//x", "segment is"},
		{shard, "/registry/core/configmaps/c1/../x", "segment is"},
		{shard, "/registry/core/configmaps/c1/ns/x/y", "wrong number"},
		{shard, "/registry/core/configmaps/c1/ns/x/y/z/a/b//", "wrong number"},
		{shard, "/registry/core/namespaces/c1/ns/x", "wrong number"},
		{shard, "/registry/core/configmaps/c1/ns/\xff", "not UTF-8"},
		{shard, "/registry/core/pods/c1/ns/p", "neither"},
		{shard, "/registry/pods/ns/p", "neither"},
		{shard, "/registry/services/specs/c1/ns/s", "neither"},
		{shard, "/registry/apps/deployments/c1/ns/d", "neither"},
		{shard, "/registry/example.org/gizmos/c1/ns/g", "neither"},
		{shard, "/registry/example.org/gizmos/placeholder/c1/g", "neither"},
		{shard, "/registry/customresources", "neither"},
		{shard, "/registry/g.io/customresources", "neither"},
		{shard, "/registry/g.io/widgets/customresources", "ends before"},
		{shard, "/registry/g.io/widgets/customresources/c1", "wrong number"},
		{shard, "/registry/g.io/widgets/" + anIdentity, "ends before"},
		{shard, "/registry/g.io/widgets/" + anIdentity + "/c1", "wrong number"},
		{shard, "/registry/g.io/widgets/" + anIdentity + "/c1/a/b/c", "wrong number"},
		{shard, "/registry/pods/customresources", "ends before"},
		{shard, "/registry/pods/customresources/c1", "wrong number"},
		{shard, "/registry/pods/customresources/customresources/c1/p", "where a logical cluster should"},
		{shard, "/registry/pods/customresources/" + anIdentity + "/p", "where a logical cluster should"},
		{shard, "/registry/g.io/widgets/customresources/customresources/w", "where a logical cluster should"},
		{shard, "/registry/g.io/Widgets/customresources/c1/w", "not a group and a resource"},
		{shard, "/registry/g.io/" + anIdentity + "/customresources/c1/w", "not a group and a resource"},
		{shard, "/registry/-/customresources/c1/w", "not a group and a resource"},
		{shard, "/registry/g..io/widgets/customresources/c1/w", "not a group and a resource"},
		{shard, "/registry/core/configmaps/" + strings.ToUpper(anIdentity) + "/c1/ns/x", "wrong number"},
		{cache, "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/a.b", "wrong number"},
		{cache, "/registry/apiextensions.k8s.io/customresourcedefinitions/root", "ends before"},
		{cache, "/registry/core/configmaps/root/c1/ns/x", "neither"},
		{cache, "/registry/rbac.authorization.k8s.io/clusterroles/root/c1/r", "neither"},
		{cache, "/registry/g.io/widgets/customresources", "ends before"},
		{cache, "/registry/g.io/widgets/customresources/root", "ends before"},
		{cache, "/registry/g.io/widgets/customresources/root/c1", "wrong number"},
		{cache, "/registry/g.io/widgets/customresources/root/" + anIdentity + "/x", "where a logical cluster should"},
		{cache, "/registry/g.io/widgets/customresources/root/c1/a/b/c", "wrong number"},
	} {
		_, err := c.layout.Parse([]byte(c.key))
		require.ErrorIs(t, err, ErrUnknownKey, c.key)
		require.ErrorContains(t, err, c.reason, c.key)
	}
}

func TestOpenShift(t *testing.T) {
	layout := OpenShift{"/openshift.io"}
	for _, c := range []struct{ key, resource, namespace, name string }{
		{"oauth/accesstokens/sha256~x", "oauthaccesstokens.oauth.openshift.io", "", "sha256~x"},
		{"oauth/clients/openshift-browser-client", "oauthclients.oauth.openshift.io", "", "openshift-browser-client"},
		{"useridentities/ldap:me", "identities.user.openshift.io", "", "ldap:me"},
		{"users/me", "users.user.openshift.io", "", "me"},
		{"images/sha256:00", "images.image.openshift.io", "", "sha256:00"},
		{"imagestreams/openshift/cli", "imagestreams.image.openshift.io", "openshift", "cli"},
		{"routes/openshift-console/console", "routes.route.openshift.io", "openshift-console", "console"},
		{"authorization/local/policies/ns/default", "policies.authorization.openshift.io", "ns", "default"},
		{"authorization/cluster/policybindings/:default", "clusterpolicybindings.authorization.openshift.io",
			"", ":default"},
		{"registry/sdnnetworks/default", "clusternetworks.network.openshift.io", "", "default"},
		{"novelties/ns/n", "novelties", "ns", "n"},
	} {
		k := "/openshift.io/" + c.key
		key, err := layout.Parse([]byte(k))
		require.NoError(t, err, k)
		require.Equal(t, Key{Prefix: "/openshift.io", Resource: schema.ParseGroupResource(c.resource),
			Namespace: c.namespace, Name: c.name}, key)
		require.Equal(t, k, string(layout.Format(key)))
		requireInDirs(t, layout, k, key)
	}
	for _, k := range []string{"", "/kubernetes.io/pods/ns/p", "/openshift.io/routes/r", "/openshift.io/routes/ns/r/x",
		"/openshift.io/oauth/tokens/x", "/openshift.io/authorization/local/policies/default", "/openshift.io/Users/me",
		"/openshift.io/useridentities/ns/me", "/openshift.io/example.com/widgets/w"} {
		_, err := layout.Parse([]byte(k))
		require.ErrorIs(t, err, ErrUnknownKey, k)
	}
	require.Len(t, openshiftTable.byDir, len(openshiftBuiltins()))
}

// TestTablesOfKCP checks that each built-in of kcp has its own dir, below its group.
func TestTablesOfKCP(t *testing.T) {
	require.Len(t, shardTable.byDir, len(shardBuiltins()))
	for _, b := range shardBuiltins() {
		checkFormatParseIn(t, KCPShard{"/registry"}, Key{Prefix: "/registry", Resource: b.GroupResource, Cluster: "c1",
			Name: "n"}, b.scope)
	}
	require.Len(t, cacheTable.byDir, 1)
	for _, r := range []string{"limitranges", "nodes", "pods", "services"} {
		require.NotContains(t, shardTable.byResource, schema.GroupResource{Resource: r})
	}
}

func checkFormatParseIn(t *testing.T, layout Layout, want Key, scope scope) {
	t.Helper()
	if scope == namespaced {
		want.Namespace = "ns"
	}
	got, err := layout.Parse(layout.Format(want))
	require.NoError(t, err)
	require.Equal(t, want, got)
}
