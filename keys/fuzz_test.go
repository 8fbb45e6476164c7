package keys

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzParseFormat is the first law: what parses comes back byte for byte.
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

// FuzzFormatParse is the second law: a key of a resource in the table comes back as it was.
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

// FuzzDetectPrefix: a prefix that a key gives away is one that the key parses under.
func FuzzDetectPrefix(f *testing.F) {
	f.Add([]byte("/registry/namespaces/default"))
	f.Add([]byte("/a/b/apiregistration.k8s.io/apiservices/v1."))
	f.Add([]byte("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"))
	f.Fuzz(func(t *testing.T, k []byte) {
		prefix, ok := DetectPrefix(k)
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
	for _, k := range []string{"/registry/pods/kube-system/coredns-0", "/registry/crd.projectcalico.org/ipamblocks/10-0-0-0-26"} {
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
