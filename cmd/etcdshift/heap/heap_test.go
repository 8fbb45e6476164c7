package heap

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A small heap grows to leastHeap, a large one by heapGrowth, and no heap exceeds the larger bound,
// not even a heap below the runtime's minimum.
func TestGrowth(t *testing.T) {
	for live := uint64(0); live < 1<<33; live += 1 + live/7 {
		goal := max(live+live*uint64(growth(live))/100, runtimeHeap*uint64(growth(live))/100)
		want := max(leastHeap, live+live*heapGrowth/100)
		require.LessOrEqual(t, goal, want, "%d live", live)
		require.GreaterOrEqual(t, goal, want-live/100-1, "%d live", live)
	}
}

// The percentage follows the live heap after each collection, until other code sets another. The
// test needs its own process: other tests keep much memory alive.
func TestLimitHeap(t *testing.T) {
	const alone = "TEST_LIMIT_HEAP"
	if os.Getenv(alone) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		c := exec.Command(self, "-test.run=^TestLimitHeap$", "-test.v")
		c.Env = append(os.Environ(), alone+"=1", "GOGC=100")
		said, err := c.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), "--- PASS: TestLimitHeap")
		return
	}
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	collected := func(becomes func(percent uint64) bool) func() bool {
		return func() bool { runtime.GC(); return becomes(percent()) }
	}
	limitHeap("")
	require.LessOrEqual(t, percent(), uint64(leastPercent))
	for range 2 {
		large := make([]byte, leastHeap)
		require.Eventually(t, collected(func(p uint64) bool { return p == heapGrowth }), 10*time.Second,
			time.Millisecond)
		runtime.KeepAlive(large)
		require.Eventually(t, collected(func(p uint64) bool { return p > heapGrowth && p <= leastPercent }),
			10*time.Second, time.Millisecond)
	}
	debug.SetGCPercent(400)
	for range 20 {
		runtime.GC()
		time.Sleep(time.Millisecond) // of finalizers
		require.EqualValues(t, 400, percent())
	}
}
