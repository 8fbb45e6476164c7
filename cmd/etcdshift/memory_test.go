package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A small heap grows to leastHeap, a large one by heapGrowth, and none to more than the larger of
// the two.
func TestGrowth(t *testing.T) {
	require.Equal(t, heapGrowth, growth(0))
	for live := uint64(1 << 10); live < 1<<33; live += 1 + live/7 {
		goal := live + live*uint64(growth(live))/100
		want := max(leastHeap, live+live*heapGrowth/100)
		require.LessOrEqual(t, goal, want, "%d live", live)
		require.GreaterOrEqual(t, goal, want-live/100-1, "%d live", live)
	}
}
