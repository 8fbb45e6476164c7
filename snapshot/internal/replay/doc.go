// Package replay applies the entries of a member's log to a store, like a server, and makes the
// records and the changed entries of other buckets. It reads no database: the store before the
// first entry is a [Store].
//
// Invariants, each with a test:
//
//   - Records come in the order of revisions, or the entry is an error that names it.
//   - Memory grows with the changed keys; the bytes of the records, and the bytes read for the
//     conditions of requests, are bounded.
//
// Sources: etcd server/etcdserver/apply, server/etcdserver/txn, server/storage/mvcc and
// server/lease, as of etcd v3.7.3.
package replay
