package kcptest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMany: each logical cluster is whole, and two runs make the same.
func TestMany(t *testing.T) {
	kvs, _ := Dump(t, Many(t, 3))
	counts := byCluster(t, kvs)
	for i := range 3 {
		require.Equal(t, counts[ManyName(0)], counts[ManyName(i)])
		require.NotNil(t, find(kvs, LogicalClusterKey(ManyName(i))))
	}
	require.GreaterOrEqual(t, counts[ManyName(0)], 36)
	again, _ := Dump(t, Many(t, 3))
	require.Equal(t, kvs, again)
}
