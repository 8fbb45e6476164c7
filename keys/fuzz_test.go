package keys

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzParseFormat checks the first invariant: Format restores every parsed key byte for byte.
func FuzzParseFormat(f *testing.F) {
	for _, b := range builtins() {
		f.Add("/registry", []byte("/registry/"+b.dir+"/name"))
		f.Add("/registry", []byte("/registry/"+b.dir+"/ns/name"))
		f.Add("/registry", []byte("/registry/"+b.Group+"/"+b.Resource+"/ns/name"))
		f.Add("", []byte("/"+b.Resource+"/name"))
	}
	f.Add("a/b.c", []byte("a/b.c/example.com/widgets/ns/w"))
	f.Add("/registry", []byte("compact_rev_key"))
	f.Fuzz(func(t *testing.T, prefix string, k []byte) {
		layout := Kubernetes{Prefix: prefix}
		key, err := layout.Parse(k)
		if err != nil {
			require.ErrorIs(t, err, ErrUnknownKey)
			require.Zero(t, key)
			return
		}
		require.Equal(t, string(k), string(layout.Format(key)))
		require.NotEmpty(t, key.Name)
		require.NotEmpty(t, key.Resource.Resource)
		require.True(t, strings.HasPrefix(string(k), string(layout.Dir(key.Resource))))
		again, err := layout.Parse(layout.Format(key))
		require.NoError(t, err)
		require.Equal(t, key, again)
	})
}

// FuzzFormatParse checks the second invariant: Parse restores every formatted key of a resource in
// the table.
func FuzzFormatParse(f *testing.F) {
	for i := range builtins() {
		f.Add(uint(i), "/registry", "ns", "name")
	}
	f.Add(uint(0), "", "specs", "endpoints")
	table := builtins()
	f.Fuzz(func(t *testing.T, i uint, prefix, namespace, name string) {
		for _, s := range []string{namespace, name} {
			if s == "" || s == "." || s == ".." || strings.Contains(s, "/") || !utf8.ValidString(s) {
				t.Skip("no API server takes that name")
			}
		}
		if !utf8.ValidString(prefix) {
			t.Skip("no API server takes that prefix")
		}
		checkFormatParse(t, table[i%uint(len(table))], prefix, namespace, name)
	})
}

// FuzzDetectPrefix checks that a key parses under its detected prefix.
func FuzzDetectPrefix(f *testing.F) {
	f.Add([]byte("/registry/namespaces/default"))
	f.Add([]byte("/a/b/apiregistration.k8s.io/apiservices/v1."))
	f.Add([]byte("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"))
	f.Fuzz(func(t *testing.T, k []byte) {
		prefix, ok := detectPrefix(k)
		if !ok {
			require.Empty(t, prefix)
			return
		}
		key, err := Kubernetes{Prefix: prefix}.Parse(k)
		require.NoError(t, err)
		require.Contains(t, []string{"customresourcedefinitions", "apiservices", "namespaces"}, key.Resource.Resource)
	})
}

func BenchmarkParse(b *testing.B) {
	layout := Kubernetes{Prefix: "/registry"}
	for _, k := range []string{"/registry/pods/kube-system/coredns-0",
		"/registry/crd.projectcalico.org/ipamblocks/10-0-0-0-26"} {
		b.Run(k, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := layout.Parse([]byte(k)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzLayouts checks that Format restores every parsed key byte for byte, below a dir of its
// resource, and that no key of kcp belongs to two logical clusters or to a cluster named like an
// identity.
func FuzzLayouts(f *testing.F) {
	for _, k := range []string{"core/configmaps/a/b/c", "pods/customresources/a/b/c", "g.io/r/customresources/a/b/c",
		"g.io/r/customresources", "g.io/r/" + anIdentity + "/a/b/c",
		"pods/" + anIdentity + "/a/b", "a/customresources/customresources/b/c", "oauth/clients/x",
		"authorization/local/policies/ns/x", "apiextensions.k8s.io/customresourcedefinitions/a/b/c"} {
		f.Add("/registry", []byte("/registry/"+k))
	}
	f.Fuzz(func(t *testing.T, prefix string, k []byte) {
		for _, flavour := range countedFlavours() {
			layout := flavour.Layout(prefix)
			key, err := layout.Parse(k)
			if err != nil {
				require.ErrorIs(t, err, ErrUnknownKey)
				require.Zero(t, key)
				continue
			}
			require.Equal(t, string(k), string(layout.Format(key)), flavour)
			again, err := layout.Parse(layout.Format(key))
			require.NoError(t, err)
			require.Equal(t, key, again)
			require.NotEmpty(t, key.Name)
			requireInDirs(t, layout, string(k), key)
			require.Equal(t, flavour.KCP(), key.Cluster != "")
			require.Equal(t, flavour == FlavourKCPCache, key.Shard != "")
			require.False(t, isMark(key.Cluster) || isMark(key.Shard))
			require.False(t, key.Custom && key.Identity != "")
		}
	})
}

// FuzzFormatParseKCP checks the second invariant for kcp: Parse restores every formatted key with
// names that kcp accepts.
func FuzzFormatParseKCP(f *testing.F) {
	f.Add("/registry", "g.io", "widgets", anIdentity, false, "", "c1", "ns", "n")
	f.Add("/cache", "", "pods", "", true, "root", "c1", "", "n")
	f.Add("/registry", "core", "pods", "", true, "", "c1", "", "n")
	f.Fuzz(func(t *testing.T, prefix, group, resource, identity string, custom bool, shard, cluster,
		namespace, name string) {
		for _, s := range []string{cluster, name, "x" + namespace, "x" + shard} {
			if s == "" || s == "." || s == ".." || strings.Contains(s, "/") || !utf8.ValidString(s) || isMark(s) {
				t.Skip("kcp takes no such name")
			}
		}
		if namespace == "." || namespace == ".." || shard == "." || shard == ".." || isMark(shard) ||
			!utf8.ValidString(prefix) {
			t.Skip("nor this one")
		}
		if !isLabel(resource) || isMark(resource) || (group != "" && !isGroup(group)) ||
			(identity != "" && !isIdentity(identity)) || (identity == "" && !custom) {
			t.Skip("no custom resource")
		}
		want := Key{Prefix: prefix, Resource: schema.GroupResource{Group: group, Resource: resource},
			Identity: identity,
			Custom:   identity == "", Shard: shard, Cluster: cluster, Namespace: namespace, Name: name}
		layout := Layout(KCPShard{prefix})
		if shard != "" {
			layout = KCPCache{prefix}
		}
		got, err := layout.Parse(layout.Format(want))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// FuzzDetect checks that each key belongs to the longest detected prefix, for any keys in any
// order.
func FuzzDetect(f *testing.F) {
	f.Add("", "/registry/namespaces/default\n/registry/core.kcp.io/logicalclusters/customresources/c/cluster\n"+
		"/x/namespaces/default")
	f.Add("/z",
		"/z/core/configmaps/a/b/c\n/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/a.b\n"+
			"/registry/core/serviceaccounts/a/namespaces/default")
	f.Fuzz(func(t *testing.T, named, text string) {
		lines := strings.Split(text, "\n")
		var names []string
		if named != "" {
			names = []string{named}
		}
		found := detect(names, lines...)
		slices.Reverse(lines)
		backwards := detect(names, lines...)
		require.ElementsMatch(t, found.Storages(), backwards.Storages())
		require.Equal(t, found.Flavour(), backwards.Flavour())
		for _, line := range lines {
			key, layout, err := found.Parse([]byte(line))
			at, in := found.Of([]byte(line))
			for _, s := range found.Storages() {
				if strings.HasPrefix(line, s.Prefix+"/") {
					require.True(t, in)
					require.LessOrEqual(t, len(s.Prefix), len(at.Prefix))
				}
			}
			if err != nil {
				require.ErrorIs(t, err, ErrUnknownKey)
				continue
			}
			require.Equal(t, at.Prefix, key.Prefix)
			require.Equal(t, at.Layout, layout)
			require.Equal(t, line, string(layout.Format(key)))
		}
	})
}
