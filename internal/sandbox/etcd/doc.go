// Package etcd restores a snapshot and runs a real etcd on it, in a sandbox.
//
// Restore and servers are child processes, as etcd panics and exits on data that it does not
// expect. The error then has etcd's own words.
//
// Invariants:
//   - The snapshot is only read.
//   - Members listen on unix sockets in the sandbox's folder: no port is opened, and no other user
//     can connect.
//   - Keys, values and revisions are those that "etcdutl snapshot restore" leaves. Nothing is
//     written before a client does.
package etcd
