// Package archive is the format of files with a part of a snapshot: an etcd snapshot with only the
// records of the part, and a manifest. There are two kinds: logical clusters of kcp, which move
// from one shard to another, and the part of a snapshot that a command line selects. The
// specification is docs/reference/formats.md.
//
// Invariants, each with a test of the same name:
//
//   - SameDigestInAnyOrder: Digest does not depend on the order of records, on their revisions, nor
//     on the storage prefix: a shard that has imported the records has the same digest.
//   - EveryChangeFound: a check fails after any change of an archive: a byte of a key, a value or
//     the manifest, a revision, a version, a lease, a record more or less. It detects accidents,
//     but not an attacker who also changes the manifest.
//   - HostileManifest: a manifest of any size and content causes an error or is sound: its counts
//     add up, its folders do not overlap, its text is printable, and etcdshift would write the same
//     bytes.
//   - ReadsWithoutKeys: a check assigns records by the folders of the manifest, without parsing
//     keys.
package archive
