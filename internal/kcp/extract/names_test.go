package extract

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
)

// TestExtractNames: what is too long for a name, and what is no part of a path.
func TestExtractNames(t *testing.T) {
	for name, ok := range map[string]bool{"": false, "a": true, "a/b": false, "a\nb": false, "\xff": false, strings.Repeat("a", 254): false} {
		require.Equal(t, ok, isName(name), name)
	}
	require.True(t, clusters.IsSystem("system:shard") && isName("system:shard"))
}
