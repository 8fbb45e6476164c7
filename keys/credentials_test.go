package keys

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHoldsCredentials(t *testing.T) {
	for key, want := range map[string]bool{
		"/registry/secrets/default/a":                              true,
		"/registry/secrets/bare":                                   true,
		"/registry/secrets/a/b/c":                                  true,
		"secrets/default/a":                                        true,
		"/some/where/secrets/ns/a":                                 true,
		"/registry/core/secrets/2y3qvnqz5ga11oc4/ns/a":             true,
		"/cache/core/secrets/customresources/shard/cluster/ns/a":   true,
		"/openshift.io/oauth/clients/c":                            true,
		"/openshift.io/oauth/accesstokens/t":                       true,
		"/kubernetes.io/oauth.openshift.io/oauthauthorizetokens/t": true,
		"/registry/pods/secrets/a":                                 false,
		"/registry/configmaps/secrets/a":                           false,
		"/registry/configmaps/default/secrets":                     false,
		"/registry/example.com/clients/ns/a":                       false,
		"":                                                         false,
		"/":                                                        false,
	} {
		require.Equal(t, want, HoldsCredentials([]byte(key)), key)
	}
}

func TestIsBootstrap(t *testing.T) {
	for key, want := range map[string]bool{
		"/bootstrap/34a7b1c2d3e4": true, "/bootstrap": true, "/bootstrap/": true,
		"/registry/bootstrap/a": false, "/bootstraps/a": false, "bootstrap": false, "": false,
	} {
		require.Equal(t, want, IsBootstrap([]byte(key)), key)
	}
}
