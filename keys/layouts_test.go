package keys

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func detect(named []string, all ...string) Layouts {
	d := NewDetector(named...)
	for _, k := range all {
		d.Add([]byte(k))
	}
	return d.Layouts()
}

func storages(l Layouts) (out []string) {
	for _, s := range l.Storages() {
		out = append(out, fmt.Sprintf("%s=%s", s.Prefix, s.Flavour))
	}
	return out
}

func TestDetect(t *testing.T) {
	const (
		crds     = "/apiextensions.k8s.io/customresourcedefinitions"
		system   = crds + "/system:system-crds/apiexports.apis.kcp.io"
		cached   = crds + "/system:cache:server/system:system-crds/apiexports.apis.kcp.io"
		cluster  = "/core.kcp.io/logicalclusters/customresources/c1/cluster"
		copied   = "/core.kcp.io/logicalclusters/customresources/root/c1/cluster"
		services = "/apiregistration.k8s.io/apiservices/v1."
	)
	for name, c := range map[string]struct {
		named, keys, want []string
		flavour           Flavour
	}{
		"nothing": {nil, []string{"compact_rev_key", "/calico/ipam/v2/host/x", "", "/"}, nil, FlavourUnknown},
		"kubernetes": {nil, []string{"/registry/namespaces/default", "/registry/pods/ns/p"},
			[]string{"/registry=kubernetes"}, FlavourKubernetes},
		"no prefix": {nil, []string{"/namespaces/default", services}, []string{"=kubernetes"},
			FlavourKubernetes},
		"openshift": {nil, []string{"/openshift.io/routes/ns/r", "/kubernetes.io" + services,
			"/openshift.io/useridentities/x"}, []string{"/kubernetes.io=kubernetes", "/openshift.io=openshift"},
			FlavourOpenShift},
		"openshift's CRDs": {nil, []string{"/kubernetes.io" + crds + "/clusterversions.config.openshift.io"},
			[]string{"/kubernetes.io=kubernetes"}, FlavourOpenShift},
		"openshift, named": {[]string{"/os"}, []string{"/os/oauth/clients/x", "/os/users/y"}, []string{"/os=openshift"},
			FlavourOpenShift},
		"shard": {nil, []string{"/registry" + system, "/registry" + cluster},
			[]string{"/registry=kcp-shard"}, FlavourKCPShard},
		"bound": {nil, []string{"/registry" + crds + "/system:bound-crds/0f0e"},
			[]string{"/registry=kcp-shard"}, FlavourKCPShard},
		"shard, signs": {nil, []string{"/shard/root" + cluster}, []string{"/shard/root=kcp-shard"},
			FlavourKCPShard},
		"cache": {nil, []string{"/cache" + cached, "/cache" + copied}, []string{"/cache=kcp-cache"},
			FlavourKCPCache},
		"cache, signs": {nil, []string{"/cache" + copied}, []string{"/cache=kcp-cache"}, FlavourKCPCache},
		"one process": {nil, []string{"/cache" + cached, "/registry" + system},
			[]string{"/cache=kcp-cache", "/registry=kcp-shard"}, FlavourKCPShard},
		"two shards": {nil, []string{"/shard/a" + system, "/shard/b" + system, "/cache" + cached},
			[]string{"/shard/a=kcp-shard", "/shard/b=kcp-shard", "/cache=kcp-cache"}, FlavourKCPShard},
		"nested": {nil, []string{"/registry" + services, "/registry/kcp" + system,
			"/registry/kcp/a" + services}, []string{"/registry=kubernetes", "/registry/kcp=kcp-shard",
			"/registry/kcp/a=kubernetes"}, FlavourKCPShard},
		"nested, signs": {nil, []string{"/registry/tenant/namespaces/default", "/registry/namespaces/default"},
			[]string{"/registry/tenant=kubernetes", "/registry=kubernetes"}, FlavourKubernetes},
		"events alone": {nil, []string{"/registry/events/ns/e", "/registry/events/ns/f", "compact_rev_key"},
			[]string{"/registry=kubernetes"}, FlavourKubernetes},
		"kcp events alone": {nil, []string{"/registry/core/events/c1/ns/e"}, []string{"/registry=kcp-shard"},
			FlavourKCPShard},
		"named, looked at": {[]string{"/a/b", "/a", "/none"}, []string{"/a/events/ns/e", "/a/b/core/events/c1/ns/e"},
			[]string{"/a/b=kcp-shard", "/a=kubernetes", "/none=unknown"}, FlavourKCPShard},
		"named, twice": {[]string{"/a", "/a"}, []string{"/registry" + services},
			[]string{"/a=unknown", "/registry=kubernetes"}, FlavourKubernetes},
		"named, proved": {[]string{"/registry"}, []string{"/registry" + system}, []string{"/registry=kcp-shard"},
			FlavourKCPShard},
		"a program's": {nil, []string{"/cache/example.com/widgets/ns/w", "/openshift.io/pods/ns/p"}, nil,
			FlavourUnknown},
		"something else": {nil, []string{"/registry/a/b/c/d", "/registry/e"}, nil, FlavourUnknown},

		// objects named by a tenant to look like another prefix
		"a service account": {nil, []string{"/registry/core/serviceaccounts/c1/namespaces/default",
			"/registry" + cluster}, []string{"/registry=kcp-shard"}, FlavourKCPShard},
		"a custom resource": {nil, []string{"/registry/example.com/namespaces/default", "/registry" + services},
			[]string{"/registry=kubernetes"}, FlavourKubernetes},
		"one named cluster": {nil, []string{"/registry/core.kcp.io/logicalclusters/customresources/cluster",
			"/registry" + services}, []string{"/registry=kubernetes"}, FlavourKubernetes},
		"one in a namespace": {nil, []string{"/registry/core/configmaps/c1/ns/cluster", "/registry" + system},
			[]string{"/registry=kcp-shard"}, FlavourKCPShard},
		"kcp's beats the rest": {nil, []string{"/registry" + services, "/registry" + system, "/registry" + services},
			[]string{"/registry=kcp-shard"}, FlavourKCPShard},
	} {
		t.Run(name, func(t *testing.T) {
			l := detect(c.named, c.keys...)
			require.Equal(t, c.want, storages(l))
			require.Equal(t, c.flavour, l.Flavour())
			slices.Reverse(c.keys)
			require.ElementsMatch(t, c.want, storages(detect(c.named, c.keys...)))
		})
	}
}

// TestLayouts checks that only the layout of the longest prefix parses a key.
func TestLayouts(t *testing.T) {
	l := NewLayouts(Storage{Prefix: "/a", Flavour: FlavourKubernetes},
		Storage{Prefix: "/a/b", Flavour: FlavourKCPShard}, Storage{Flavour: FlavourUnknown},
		Storage{Prefix: "/a", Flavour: FlavourKCPCache})
	require.Equal(t, []string{"/a=kubernetes", "/a/b=kcp-shard", "=unknown"}, storages(l))
	for k, want := range map[string]Key{
		"/a/pods/ns/p": {Prefix: "/a", Resource: schema.GroupResource{Resource: "pods"},
			Namespace: "ns", Name: "p"},
		"/a/b/core/secrets/c1/ns/s": {Prefix: "/a/b", Resource: schema.GroupResource{Resource: "secrets"},
			Cluster: "c1", Namespace: "ns", Name: "s"},
		"/aa/ns/p": {Resource: schema.GroupResource{Resource: "aa"}, Namespace: "ns", Name: "p"},
	} {
		got, layout, err := l.Parse([]byte(k))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, k, string(layout.Format(got)))
	}
	for _, k := range []string{"", "a", "/a/b/pods/ns", "/a/b/ns/p", "/a", "/a/b", "/a/"} {
		_, _, err := l.Parse([]byte(k))
		require.ErrorIs(t, err, ErrUnknownKey, k)
	}
	_, layout, err := Layouts{}.Parse([]byte("/a/pods/ns/p"))
	require.ErrorContains(t, err, "under no storage prefix")
	require.Nil(t, layout)
	var dirs []string
	for _, dir := range l.Dirs(schema.GroupResource{Resource: "pods"}) {
		dirs = append(dirs, string(dir))
	}
	require.Equal(t, []string{"/a/pods/", "/a/b/core/pods/", "/a/b/pods/", "/pods/"}, dirs)
}

func BenchmarkDetect(b *testing.B) {
	list := [][]byte{[]byte("/registry/namespaces/default")}
	for i := range 10_000 {
		list = append(list, fmt.Appendf(nil, "/registry/core/configmaps/c%d/team-a/settings-%d", i%100, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		d := NewDetector()
		for _, key := range list {
			d.Add(key)
		}
		d.Layouts()
	}
}

func TestOnly(t *testing.T) {
	const services = "/apiregistration.k8s.io/apiservices/v1."
	all := detect([]string{"/none"}, "/registry"+services, "/registry/inner"+services, "/kube"+services)
	require.Equal(t, []string{"/registry=kubernetes"}, storages(all.Only("/registry")))
	require.Equal(t, []string{"/none=unknown"}, storages(all.Only("/none")))
	require.Equal(t, []string{"/kube", "/none", "/registry"}, all.Only("/registry/inner").LeftOut())
	for key, want := range map[string]bool{
		"/registry/pods/ns/p": true, "/registry/inner/pods/ns/p": false, "/kube/pods/ns/p": false,
		"compact_rev_key": false, "/registry": false,
	} {
		s, ok := all.Only("/registry").Of([]byte(key))
		require.Equal(t, want, ok, key)
		_, _, err := all.Only("/registry").Parse([]byte(key))
		require.Equal(t, want, err == nil, key)
		require.Equal(t, want, s.Prefix == "/registry", key)
	}
	inner, ok := all.Only("/registry", "/registry/inner").Of([]byte("/registry/inner/pods/ns/p"))
	require.True(t, ok)
	require.Equal(t, "/registry/inner", inner.Prefix)
}
