// Package archive is the file format that carries logical clusters of kcp from one shard to
// another: an etcd snapshot with their records only, and a manifest. docs/formats.md specifies it.
//
// Invariants, each with a test of the same name:
//
//   - SameDigestInAnyOrder: Digest does not depend on the order of records, on their revisions, nor
//     on the storage prefix: a shard that has imported the records has the same digest.
//   - EveryChangeFound: Check fails after any change of an archive: a byte of a key, a value or the
//     manifest, a revision, a version, a lease, a record more or less. It finds accidents, not
//     someone who changes the manifest as well.
//   - HostileManifest: a manifest of any size and content ends in an error or is sound: its counts
//     add up, its folders do not overlap, its text is printable, and etcdshift would write it so.
//   - ReadsWithoutKeys: Check assigns records by the folders of the manifest, without parsing keys.
package archive
