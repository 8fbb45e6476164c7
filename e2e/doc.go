// Package e2e proves the Calico migration on a real cluster's control plane: etcd, kube-apiserver
// and kube-controller-manager with nothing but its garbage collector, each the real program, on
// what etcdshift wrote and etcdutl restored.
//
//	make e2e
//
// builds bin/etcdshift, then into e2e/bin kube-apiserver and kube-controller-manager of the version
// in this folder's go.mod (its tool lines) and etcd and etcdutl of the version in the main go.mod,
// and runs the tests. With the binaries there, `go test` in this folder runs them alone; `-run`,
// `-v` and `-count=1` as usual. All of it stays on the loopback device.
//
// The folder is a module of its own so that etcdshift does not require k8s.io/kubernetes; nothing
// imports it. k8s.io/kubernetes asks for a replace line for each of the modules that are staged in
// its repository: a new version means new numbers in all of them, and `go mod tidy`.
//
// What holds:
//
//   - etcdshift is used as its users use it: the binary, its flags, its report, and the restore
//     command that it prints.
//   - The API server serves every migrated object at projectcalico.org/v3, at the UID the report
//     says, and nothing of crd.projectcalico.org is left.
//   - A served object can be listed, watched, created, updated, applied and deleted, with the
//     cluster's admission policies.
//   - Every owner reference in the cluster ends at a live object of that name and UID.
//   - The garbage collector, once it has proved by two objects with a wrong owner that it works,
//     has changed nothing else.
//   - Records that the API server encrypted are migrated, and encrypted under their new keys; after
//     --rewrap a server that has the new key alone, and takes nothing in the clear, serves every
//     kind.
//   - On what the live migration left, the same collector takes what it took when that was
//     recorded.
package e2e
