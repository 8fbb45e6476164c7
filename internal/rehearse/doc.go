// Package rehearse restores a snapshot into a real etcd and real API servers of its own, tries what
// clients do, and reports what fails.
//
// Invariants; those of [compareServed] have a test of the same name:
//
//   - The snapshot is only read. Everything else lies in one folder of the user alone, and is gone
//     afterwards.
//   - etcd is compared with our reading of the file before anything else writes to it.
//   - Nothing outside of this machine is contacted, except a conversion webhook that was named.
//   - What could not be checked is named, with the reason; it is never counted as passed.
//   - A server that ends by itself is a finding with its last words, not an error of the run.
//   - Findings are in the same order in each run. Only times and memory differ.
//   - SameAsServed: a server of a sound file serves each live key with value, revisions, version
//     and lease, and gives the HashKV, as [snapshot.Snapshot] reads them; also after a bump that is
//     marked compacted, in the middle of a compaction, and while leases expire.
//   - ChangedIsNamed: a key that is missing, was added or has another value, revision, version or
//     lease is named.
//   - ValuesStaySecret: no value is in a difference.
//   - BoundedDifferences: some differences are kept and the rest counted; pages are read by their
//     size.
//   - Each write that is tried is a dry run: the store stays as it is. Any API server will do; the
//     client must be allowed everything.
//   - The same store and options give the same result, regardless of the order of answers. Of each
//     kind the same objects are tried, spread evenly over the list.
//   - No object is skipped silently: objects that are not tried are counted, by reason.
//   - A conversion that no webhook was asked for is never a failure.
//   - Memory is bounded by pages of some megabytes, one for each worker and version, by some
//     thousand failures of each code, and by one name for each object of a kind whose list fails.
//   - No reason quotes the value of a field.
//   - The garbage collector is a real one. Its result is complete only after it has proved twice
//     that it works: it deleted an object from before its first look, and one made after it.
//     Only objects with owners are in the result, or those whose owners cannot be read. A collector
//     that ends, or never begins to collect, is an error.
package rehearse
