// Package same compares a running etcd with the snapshot that it was restored from.
//
// Invariants, each with a test of the same name:
//   - SameAsServed: a server of a sound file serves each live key with value, revisions, version
//     and lease, and gives the HashKV, as [snapshot.Snapshot] reads them; also after a bump that is
//     marked compacted, in the middle of a compaction, and while leases expire.
//   - ChangedIsNamed: a key that is missing, was added or has another value, revision, version or
//     lease is named.
//   - ValuesStaySecret: no value is in a Result.
//   - BoundedDifferences: a Result keeps some differences and counts the rest; pages are read by
//     their size.
package same
