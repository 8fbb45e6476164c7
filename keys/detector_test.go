package keys

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// detectPrefix returns the Kubernetes prefix of a key.
func detectPrefix(key []byte) (string, bool) {
	prefix, flavour, _, ok := sign(key)
	if !ok || flavour != FlavourKubernetes {
		return "", false
	}
	return prefix, true
}

func TestDetectPrefix(t *testing.T) {
	for _, rest := range []string{
		"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
		"/apiregistration.k8s.io/apiservices/v1.",
		"/apiregistration.k8s.io/apiservices/v1beta1.example.com",
		"/namespaces/default",
		"/namespaces/kube-system",
		"/namespaces/kube-node-lease",
	} {
		for _, prefix := range []string{"/registry", "/kubernetes.io", "/a/b", "/a/b/c", "registry", "a/b", ""} {
			got, ok := detectPrefix([]byte(prefix + rest))
			require.True(t, ok, prefix+rest)
			require.Equal(t, prefix, got)
		}
	}
	for _, key := range []string{
		"",
		"compact_rev_key",
		"/registry/pods/ns/p",
		"/registry/namespaces/team-a",
		"/registry/pods/namespaces/default",
		"/registry/serviceaccounts/namespaces/default",
		"/registry/services/specs/namespaces/default",
		"/registry/example.com/widgets/namespaces/default",
		"namespaces/default",
		"//namespaces/default",
		"/a//b/namespaces/default",
		"/registry//namespaces/default",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/widgets",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/root/widgets.example.com", // kcp
		"/registry/apiregistration.k8s.io/apiservices/x",
		"apiregistration.k8s.io/apiservices/v1.",
		"/registry/\xff/namespaces/default",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.\xff",
	} {
		prefix, ok := detectPrefix([]byte(key))
		require.False(t, ok, "%q gave %q", key, prefix)
	}
}
