// Package etcd restores a snapshot and runs a real etcd on it, in a sandbox.
//
// Restore and servers are child processes, because etcd panics and exits on unexpected data. The
// error then has etcd's own words.
//
// Invariants:
//   - The snapshot is only read.
//   - Members listen on unix sockets in the sandbox's folder: no port is opened, and no other user
//     can connect.
//   - Keys, values and revisions equal the result of "etcdutl snapshot restore". Only clients write
//     later.
package etcd
