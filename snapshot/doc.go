// Package snapshot reads and writes files of "etcdctl snapshot save": a bbolt database image of an
// etcd member followed by the SHA-256 of the image. The package knows bbolt pages and etcd's MVCC
// records, but nothing of Kubernetes.
//
// [Open] maps a file. [Snapshot.Live], [Snapshot.History] and [Snapshot.Deleted] read its records,
// [Write] appends changes and can remove keys and history, [Build] makes a file of records, and
// [Verify] checks a file.
//
// Invariants, each with a test of the same name:
//
//   - InputUntouched: a file is opened read-only; bytes, size and modification time never change.
//     bbolt never opens the file: all reads pass this package's own bounds checks.
//   - ReachablePagesSound: only pages below the root must be sound, and each is used once. Free
//     pages may hold stale bytes.
//   - Entries: Verify finds each entry of a bucket that crashes a restore or a start of etcd 3.4 to
//     3.7; Odd finds odd entries that etcd accepts.
//   - Classes: after a fatal error a restore or a server crashes; after an error that lies a server
//     starts and serves wrong numbers; after a warning a server works.
//   - Mutants: Verify agrees with bbolt's check, etcdutl and a real server on changed snapshots.
//   - LatestRecord: the latest record of each key is right with tombstones, re-creations, leases
//     and interrupted compactions; the current revision is the highest of the last record and both
//     compact revisions.
//   - OldPagesKept: Write keeps every old page below the high-water mark byte for byte and only
//     appends; both metas are replaced.
//   - LikeALiveServer: appended records equal, byte for byte, the records of a live Put or Delete.
//   - Granted: a lease granted by Write equals, byte for byte, a lease of a live server; other
//     leases stay.
//   - Scrubbed: no record of a scrubbed key is left, all other records and buckets stay, and the
//     revision increases.
//   - NoByteIsLeft: a scrubbed file has only new pages, each with its elements and zeros: no byte
//     of a scrubbed key is left in a superseded record, a free page or after the end, unless a
//     remaining record or bucket holds the same bytes.
//   - Compacted: a compacted file has the same entries as a real server after the same writes,
//     compaction and defragmentation, and is no larger; HashKV is the same.
//   - NoHistoryIsLeft: a compacted file has no byte of the compacted records, unless a remaining
//     record has the same bytes.
//   - Built: a file of Build is restored and served with all numbers of its records, but no earlier
//     revision.
//   - VerifiedBeforePublished: an output gets its name only after it was read back and compared.
//   - EveryWriter: an interrupted, killed or cancelled write, or one without disk space, leaves
//     nothing.
//   - Directory: a data directory reads like a server restarted on it, and its files never change.
//   - HistoryIsProven: an output with the history of a log has each record of the database, and
//     above its compaction no other.
//   - NeverPanics: damaged or hostile bytes cause an error that names the file and the position.
//
// Sources: etcd server/storage/mvcc (revisions, key index, compaction) and server/storage/schema
// (buckets), as of etcd v3.7.3.
package snapshot
