// Package bench measures whole etcdshift commands beside comparable programs (peers), on generated
// snapshots. "make bench" runs it, and "make bench-live" reads its snapshots:
// docs/project/performance.md explains the tables.
//
// Invariants:
//   - No test fails because of a time.
//   - The same size and variant give the same bytes, with the layout of a real server's file: pages
//     filled to 0.9, no stored free list, holes of a compaction, tombstones, leases.
//   - A real API server serves the objects, and stores no unchanged update.
package bench
