// Package apitest gives tests a real API server for custom resources: apiextensions-apiserver, in
// process, on an etcd of package etcdtest. It has no core API and no namespaces; its client is
// cluster-admin. It links the API server; only tests import it.
//
// Invariants:
//   - Keys are below /registry, as on a kubeadm cluster.
//   - The server ends before the etcd that was started before it.
//   - Two servers may run in one process, and packages side by side: ports are free ones and
//     nothing goes through the environment.
package apitest
