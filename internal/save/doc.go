// Package save takes a snapshot from a live etcd, as "etcdctl snapshot save" does, from the member
// that fits best of several.
//
// Invariants, each with a test of the same name:
//
//   - NeverHalf: the file has its name only when the stream ended with the SHA-256 of the image,
//     and the file was read back, is a snapshot, and has the same SHA-256. Mode 0600, never over an
//     existing file. After an error, a full disk or an interrupt nothing is left.
//   - Refused: no snapshot is taken from a learner, a member without a leader, a member with a
//     CORRUPT alarm, or one that is too many raft entries behind the newest.
//   - UpToDate: the member confirms with its leader, before the download, that it has applied every
//     write acknowledged until then. The file is no older than the status of the member.
//   - NextMember: after a download that breaks off, the next member is tried, from the start.
//   - SameAsEtcdctl: the file has the content and hashes of one that "etcdctl snapshot save" takes.
//   - NoSecrets: no password, token or key is in an error or a result.
package save
