// Package snapshot reads and writes the file that "etcdctl snapshot save" makes: a bbolt database
// image of an etcd member followed by the SHA-256 of that image. It knows bbolt pages and etcd's
// MVCC records and nothing of Kubernetes.
//
// [Open] maps a file. [Snapshot.Live], [Snapshot.History] and [Snapshot.Deleted] read its records,
// [Write] puts changes on top and can leave out keys and history, [Build] makes a file of records,
// and [Verify] checks one.
//
// Invariants, each with a test of the same name:
//
//   - InputUntouched: a file is opened read-only; bytes, size and modification time never change.
//     It is never opened through bbolt: reading goes through this package's own bounds checks.
//   - ReachablePagesSound: only pages that the root leads to must be sound, each is used once. Free
//     pages hold stale bytes and prove nothing.
//   - Entries: Verify finds each entry of a bucket on which a restore or a start of etcd 3.4 to 3.7
//     dies; Odd finds odd ones that etcd accepts.
//   - Classes: of a fatal error a restore or a server dies; one that lies starts and serves wrong
//     numbers; it lives with a warning.
//   - Mutants: Verify agrees with bbolt's check, etcdutl and a real server on changed snapshots.
//   - LatestRecord: the latest record of each key is right with tombstones, re-creations, leases
//     and interrupted compactions; the current revision is the highest of the last record and both
//     compact revisions.
//   - OldPagesKept: Write keeps every old page below the high-water mark byte for byte and only
//     appends; both metas are renewed.
//   - LikeALiveServer: appended records are, byte for byte, those that a live Put or Delete stores.
//   - Granted: a lease that Write grants is stored, byte for byte, as a live server stores it; the
//     others stay.
//   - Scrubbed: no record of a scrubbed key is left, all other records and buckets stay, and the
//     revision goes on.
//   - NoByteIsLeft: a scrubbed file has new pages alone, each of which holds its elements and
//     zeros: nothing of a scrubbed key is left in a superseded record, a free page or behind the
//     end, unless a record or bucket that stays says the same.
//   - Compacted: a compacted file holds, entry by entry, what a real server has after the same
//     writes, compaction and defragmentation, and is no larger; HashKV is the same.
//   - NoHistoryIsLeft: it has no byte of what was compacted, unless a record that stays has it too.
//   - Built: a file of Build is restored and served with all numbers of its records, and answers
//     for no revision before.
//   - VerifiedBeforePublished: an output has its name only after it was read back and compared.
//   - EveryWriter: a writer that is cut, killed, cancelled or out of disk space leaves nothing.
//   - NeverPanics: damaged or hostile bytes end in an error that names the file and the place.
//
// Sources: etcd server/storage/mvcc (revisions, key index, compaction) and server/storage/schema
// (buckets), as of etcd v3.7.3.
package snapshot
