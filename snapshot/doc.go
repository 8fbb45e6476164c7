// Package snapshot reads and writes the file that "etcdctl snapshot save" makes: a bbolt database image of an etcd
// member followed by the raw SHA-256 of that image. It knows bbolt pages and etcd's MVCC records and nothing of Kubernetes.
//
// Invariants, each with a test of the same name:
//
//   - InputUntouched: a file is opened read-only; bytes, size and modification time never change. The image is never
//     opened through bbolt: reading goes through this package's own bounds checks.
//   - ReachablePagesSound: only pages that can be reached from the root must be sound, each is used once. Free pages hold
//     stale bytes and prove nothing.
//   - Entries: Verify finds each entry of a bucket on which a restore or a start of etcd 3.4 to 3.7 dies; Odd finds odd ones that etcd accepts.
//   - Mutants: what Verify says of a changed snapshot is what bbolt's check, etcdutl and a real server make of it.
//   - LatestRecord: the latest record of each key is right with tombstones, re-creations, leases and interrupted
//     compactions; the current revision is the highest of the last record and both compact revisions.
//   - OldPagesKept: Write keeps every old page below the high-water mark byte for byte and only appends; both metas are renewed.
//   - LikeALiveServer: appended records are, byte for byte, what a live Put or Delete would have stored.
//   - Granted: a lease that Write grants is stored, byte for byte, as a live server stores it; those that were there stay.
//   - Scrubbed: no record of a scrubbed key is left, all other records and buckets are what they were, and the revision goes on.
//   - NoByteIsLeft: a scrubbed file has new pages alone, each of which holds its elements and zeros: nothing of a scrubbed key is
//     left in a superseded record, a free page or behind the end, unless a record or bucket that stays says the same.
//   - Built: a file that Build makes is restored and served with all numbers of its records, and answers for no revision before.
//   - VerifiedBeforePublished: an output has its name only when it was read back and compared.
//   - EveryWriter: whoever cuts, kills, cancels or fills the disk of whatever is being written, nothing of it is left.
//   - NeverPanics: damaged or hostile bytes end in an error that names the file and the place.
//
// Sources: go.etcd.io/bbolt internal/common (pages, metas), etcd server/storage/mvcc (revisions, key index, compaction),
// etcd server/storage/schema (buckets), each as of bbolt v1.5.0 and etcd v3.7.3.
package snapshot
