// Package sandbox runs servers as child processes in a private temporary folder. It restores a
// snapshot there and runs a real etcd on it; other packages add servers as parts.
//
// Snapshot data can make a server panic or exit. In a sandbox only a child process ends, and the
// caller gets an error with the server's last words. A child is this program again, with the hidden
// first word [Word]; an external program, such as a kube-apiserver, runs below such a child.
//
// Invariants:
//   - Other users cannot read the folder (0700), and files created in the folder belong to the user
//     (0600).
//   - A folder is locked while its sandbox or one of its processes runs; Clear removes only
//     unlocked folders.
//   - No process outlives this program, however it ends. Each child holds a pipe that closes with
//     this program, and then kills its process group; on Linux the kernel also kills external
//     programs.
//   - Close leaves neither processes nor the folder.
//   - Children get a minimal environment: no proxy, no kubeconfig, no credentials.
//   - On Linux a process has a memory limit; the kernel kills it before other programs.
//   - Memory for logs is bounded, regardless of the output of a process.
//   - The snapshot is only read. Keys, values and revisions of the restored etcd equal the result
//     of "etcdutl snapshot restore". Only clients write later.
//   - Members of etcd listen on unix sockets in the folder: no port is opened, and no other user
//     can connect.
package sandbox
