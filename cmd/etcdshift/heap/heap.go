// Package heap sets when memory is collected. Its invariant: no collection runs while packages are
// initialized. Those of libraries allocate 11 MiB and keep most of it. Go initializes packages in
// the order of their paths, each after its imports: this package before those of Kubernetes, main
// last.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapGrowth is the percentage by which a large heap grows between two collections: less than
	// half of Go's default, for a third less memory. The machine may be a member's.
	heapGrowth = 40
	// leastHeap is the size in bytes that every heap may reach before a collection. Libraries keep
	// some 10 MiB alive: scanning them after every few MiB of garbage takes a tenth of the time of
	// most commands.
	leastHeap = 28 << 20
	// runtimeHeap is the minimum heap of Go's runtime in bytes, at 100 %.
	runtimeHeap  = 4 << 20
	leastPercent = leastHeap * 100 / runtimeHeap
)

var _ = limitHeap(os.Getenv("GOGC"))

// limitHeap sets when memory is collected: after the heap has grown by heapGrowth, but not below
// leastHeap. A percentage set later by other code is kept. That of the user, GOGC, is not changed.
func limitHeap(gogc string) struct{} {
	if gogc != "" {
		return struct{}{}
	}
	percent := growth(liveHeap())
	debug.SetGCPercent(percent)
	type collected struct{ _ *byte } // with a pointer, so that it is allocated alone
	var after func(c *collected)
	after = func(c *collected) {
		now := growth(liveHeap())
		if before := debug.SetGCPercent(now); before != percent {
			debug.SetGCPercent(before)
			return
		}
		percent = now
		runtime.SetFinalizer(c, after) // the next collection finds c dead again
	}
	runtime.SetFinalizer(new(collected), after)
	return struct{}{}
}

// growth returns the percentage by which a heap with that many live bytes may grow. The runtime
// scales its minimum runtimeHeap by that percentage, so more than leastPercent would exceed
// leastHeap.
func growth(live uint64) int {
	if live >= leastHeap {
		return heapGrowth
	}
	return int(max(heapGrowth, min((leastHeap-live)*100/max(live, 1), leastPercent)))
}

// liveHeap returns the number of live bytes in the last collection.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
