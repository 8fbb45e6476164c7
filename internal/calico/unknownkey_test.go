package calico

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

// TestUnknownKeys: an invalid key among Calico's records and CRDs is kept and reported.
func TestUnknownKeys(t *testing.T) {
	in := newInput(t)
	odd := []string{"/registry/projectcalico.org/tiers/a/b/c",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/a/b"}
	for _, key := range odd {
		in.put(key, []byte("{}"))
	}
	got := planOn(t, in.write(), New(Options{SetAPIGroup: true}))
	require.NoError(t, got.err)
	for _, key := range odd {
		require.Equal(t, "{}", got.out[key])
		found := false
		for _, p := range got.Problems {
			found = found || p.Key == key && p.Code.Name == finding.UnknownKey.Name && p.Level == "warning"
		}
		require.True(t, found, key)
	}
}
