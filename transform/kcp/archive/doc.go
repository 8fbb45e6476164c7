// Package archive is the file that carries logical clusters of kcp from one shard to another: an etcd snapshot that holds
// their records, and nothing else, with a manifest of what it holds. docs/formats.md specifies it for other programs.
//
// Invariants, each with a test of the same name:
//
//   - SameDigestInAnyOrder: Digest does not depend on the order in which records are added, on where in a history they stood, nor
//     on the storage prefix, so that a shard that has taken the records in has the same one.
//   - EveryChangeFound: Check fails for an archive of which anything was changed after it was made: a byte of a key, a value or
//     the manifest, a revision, a version, a lease, a record more or less. That is proof against accident, not against
//     someone who makes up the manifest as well.
//   - HostileManifest: a manifest of any size and content ends in an error or is sound: its counts add up, its folders keep apart, its
//     text can be printed, and it is written in the one way that etcdshift writes it.
//   - ReadsWithoutKeys: what belongs to what is said by the manifest's folders alone; keys are never taken apart here.
package archive
