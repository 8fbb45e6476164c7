package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapGrowth is the percentage by which a large heap grows between two collections: less than
	// half of Go's default, for a third less memory. The machine may be that of a member.
	heapGrowth = 40
	// leastHeap is the size in bytes that every heap may reach before a collection. Libraries keep
	// some 10 MiB alive: looking through them after each few MiB of garbage takes a tenth of the
	// time of most commands.
	leastHeap = 28 << 20
	// runtimeHeap is the least heap of Go's runtime in bytes, at 100 %.
	runtimeHeap  = 4 << 20
	leastPercent = leastHeap * 100 / runtimeHeap
)

// limitHeap sets how often memory is collected: when the heap has grown by heapGrowth, and not
// before it has leastHeap. A percentage that other code sets later is kept.
func limitHeap() {
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
}

// growth returns the percentage by which a heap with that many live bytes may grow. The runtime
// lets no heap be smaller than runtimeHeap by that percentage, so more than leastPercent is more
// than leastHeap.
func growth(live uint64) int {
	if live >= leastHeap {
		return heapGrowth
	}
	return int(max(heapGrowth, min((leastHeap-live)*100/max(live, 1), leastPercent)))
}

// liveHeap is how many bytes the last collection found live.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
