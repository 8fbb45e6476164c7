// Package sandbox runs servers as child processes in a private temporary folder.
//
// Data of a snapshot can make a server panic or exit. Here it takes down a child, and the caller
// gets an error with the server's last words. A child is this program again, with the hidden first
// word [Word]; a program of its own, such as a kube-apiserver, runs below such a child.
//
// Invariants:
//   - Other users cannot read the folder (0700), and files made in it are the user's (0600).
//   - A folder is locked while its sandbox or one of its processes runs; Clear removes only
//     unlocked ones.
//   - No process outlives this one, however it ends. Each child holds a pipe that ends with us, and
//     kills its process group then; on Linux the kernel kills a program of its own in any case.
//   - Close leaves neither processes nor the folder.
//   - Children get a minimal environment: no proxy, no kubeconfig, no credentials.
//   - On Linux a process has a limit of memory; the kernel ends it before other programs.
//   - Memory for logs is bounded, regardless of what a process writes.
package sandbox
