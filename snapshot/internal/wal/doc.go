// Package wal reads the write-ahead log of a stopped etcd member: the files of the folder
// "member/wal".
//
// [Scan] checks the files and finds the entries that a restarted server would have; [Log.Entries]
// reads these entries one at a time. Memory does not grow with the log, except for a few bytes for
// each replaced run of entries.
//
// Invariants, each with a test:
//
//   - ReadOnly: files are opened read-only and without locks. etcd's own reader zeroes the end of
//     the last file, truncates it, or creates files beside it.
//   - LikeEtcd: an undamaged log has the entries, state and metadata that etcd's reader returns.
//   - Damage: a wrong checksum, a missing file, a gap or written bytes after the end is an error
//     that names file and offset. etcd takes a zeroed block for the end, and starts with a shorter
//     log.
//   - NeverPanics: damaged or hostile bytes cause an error; lengths are bounded.
//
// Sources: etcd server/storage/wal (decoder.go, wal.go) and raft/raftpb, as of etcd v3.7.3.
package wal
