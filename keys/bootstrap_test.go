package keys_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/keys"
)

func TestIsBootstrap(t *testing.T) {
	for key, want := range map[string]bool{
		"/bootstrap/34a7b1c2d3e4": true, "/bootstrap": true, "/bootstrap/": true,
		"/registry/bootstrap/a": false, "/bootstraps/a": false, "bootstrap": false, "": false,
	} {
		require.Equal(t, want, keys.IsBootstrap([]byte(key)), key)
	}
}
