// Package save takes a snapshot from a live etcd, as "etcdctl snapshot save" does, from the most
// suitable of several members.
//
// Invariants, each with a test of the same name:
//
//   - NeverHalf: the file gets its name only after the stream ended with the SHA-256 of the image,
//     and the file was read back, is a snapshot, and has the same SHA-256. Mode 0600, never over an
//     existing file. After an error, a full disk or an interrupt nothing is left.
//   - Refused: no snapshot is taken from a learner, a member without a leader, a member with a
//     CORRUPT alarm, or a member too many raft entries behind the newest member.
//   - UpToDate: before the download, the member confirms with its leader that all acknowledged
//     writes are applied. The revision of the file is at least the revision in the
//     status of the member.
//   - NextMember: after an interrupted download, the next member is tried from the start.
//   - SameAsEtcdctl: the file has the content and hashes of a file of "etcdctl snapshot save".
//   - NoSecrets: errors and results contain no password, token or key.
package save
