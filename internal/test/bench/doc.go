// Package bench measures whole commands of etcdshift beside their peers, on snapshots that it
// generates. "make bench" runs it; docs/project/performance.md says how to read the table.
//
// Invariants:
//   - No test fails on a time.
//   - The same size and variant give the same bytes, with the layout that a real server leaves:
//     pages filled to 0.9, no stored free list, holes of a compaction, tombstones, leases.
//   - A real API server serves the objects, and stores no update that changes nothing.
package bench
