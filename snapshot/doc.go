// Package snapshot reads and writes the file that "etcdctl snapshot save" makes: a bbolt database image of an etcd
// member followed by the raw SHA-256 of that image. It knows bbolt pages and etcd's MVCC records and nothing of Kubernetes.
//
// Invariants, each with a test of the same name:
//
//   - InputUntouched: a file is opened read-only; bytes, size and modification time never change. The image is never
//     opened through bbolt: reading goes through this package's own bounds checks.
//   - ReachablePagesSound: only pages that can be reached from the root must be sound, each is used once. Free pages hold
//     stale bytes and prove nothing.
//   - LatestRecord: the latest record of each key is right with tombstones, re-creations, leases and interrupted
//     compactions; the current revision is the highest of the last record and both compact revisions.
//   - OldPagesKept: Write keeps every old page below the high-water mark byte for byte and only appends; both metas are renewed.
//   - LikeALiveServer: appended records are, byte for byte, what a live Put or Delete would have stored.
//   - VerifiedBeforePublished: an output has its name only when it was read back and compared.
//   - NeverPanics: damaged or hostile bytes end in an error that names the file and the place.
//
// Sources: go.etcd.io/bbolt internal/common (pages, metas), etcd server/storage/mvcc (revisions, key index, compaction),
// etcd server/storage/schema (buckets), each as of bbolt v1.5.0 and etcd v3.7.3.
package snapshot
