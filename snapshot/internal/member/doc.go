// Package member knows the data directory of a stopped etcd member: its files, and the entries of
// its log that a restarted server would apply to its database. It reads logs, but no database: a
// [State] has the facts of the database.
//
// Invariants, each with a test:
//
//   - An entry counts only if the log knows that it is committed, if the member is the only voter,
//     or if the logs of a majority prove it (the Raft paper, figure 8).
//   - Entries that are left out are named.
//
// Sources: etcd server/etcdserver and server/storage, as of etcd v3.7.3.
package member
