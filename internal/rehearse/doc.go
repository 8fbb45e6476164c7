// Package rehearse restores a snapshot into its own etcd and API servers, tries the requests of
// clients, and reports failures.
//
// Invariants; each law of [compareServed] has a test of the same name:
//
//   - The snapshot is only read. All other files are in one folder that only the user can read, and
//     are deleted at the end.
//   - etcd is compared with the file before anything else writes to etcd.
//   - Nothing outside of this machine is contacted, except a conversion webhook that was named.
//   - Skipped checks are listed with the reason, and never counted as passed.
//   - A server that exits is a finding with its last output, not an error of the run.
//   - Findings are in the same order in each run. Only times and memory differ.
//   - SameAsServed: a server of a sound file serves each live key with value, revisions, version
//     and lease, and gives the HashKV, as [snapshot.Snapshot] reads them; also after a bump that is
//     marked compacted, in the middle of a compaction, and while leases expire.
//   - ChangedIsNamed: a key that is missing, was added or has another value, revision, version or
//     lease is named.
//   - ValuesStaySecret: no value is in a difference.
//   - BoundedDifferences: some differences are kept and the rest counted; pages are read by their
//     size.
//   - Each tried write is a dry run: the store does not change. Any API server will do; the client
//     must be allowed everything.
//   - The same store and options give the same result, regardless of the order of answers. The
//     tried objects of a kind are always the same, spread evenly over the list.
//   - No object is skipped silently: objects that are not tried are counted, by reason.
//   - A conversion without a call of its webhook is never a failure.
//   - Memory is bounded by pages of some megabytes, one for each worker and version, by some
//     thousand failures of each code, and by one name for each object of a kind whose list fails.
//   - No reason quotes the value of a field.
//   - The garbage collector is a real one. Its result is complete only after two proofs that it
//     works: the deletion of an object from before its first look, and of an object made later.
//     The result has only objects with owners, or with unreadable owners. A collector that exits or
//     never begins to collect is an error.
package rehearse
