// Package restore makes data directories of etcd members from a snapshot. etcd's own library does
// the work (go.etcd.io/etcd/etcdutl/v3/snapshot), in a child process; this package checks the
// snapshot before, and the database after the restore.
//
// Invariants, each with a test:
//   - A folder "member" appears in a data directory only when it is complete, checked and synced.
//     Of several members either all are restored before the first appears, or none appears.
//   - Nothing is overwritten: a data directory with a folder "member" is refused, or the folder is
//     kept under another name. A data directory of a running etcd is refused.
//   - A damaged snapshot is refused, although etcdutl restores many damaged files.
//   - A server on the restored database has the revision and the HashKV that
//     [snapshot.Snapshot.Restored] computes from the snapshot.
package restore
