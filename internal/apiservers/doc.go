// Package apiservers runs real API servers on an etcd, and keeps them from dialling anything else.
//
// [Store.Serve] is an apiextensions-apiserver: what a kube-apiserver does with custom resources.
// [Store.Start] runs it as a part of a sandbox. [Kube.Start] runs a kube-apiserver that the user
// has, and [Server.Collect] the garbage collector of a kube-controller-manager. [Isolate] edits the
// store first.
//
// Invariants:
//   - Each custom resource is listed at each served version of its CRD; a dry run writes nothing.
//   - After Isolate no API server connects to a webhook or an aggregated server that the store
//     names, in whatever form a record may be stored. Lists that need a conversion webhook answer
//     [NotChecked], or what the converter that was given for the group makes.
//   - Isolate changes CRDs and APIServices only, and names every record that it changes or cannot
//     read.
//   - A wait for a server ends with the server, and with the reason.
//   - A kube-apiserver connects to no kubelet, Pod or Service, whatever a client asks for.
//   - A kube-apiserver listens on loopback, for a random token that is in the sandbox alone; it
//     asks no admission webhook.
//   - A server of Serve has no port, caches nothing, and does nothing behind the requests but what
//     the controllers of CRDs do.
package apiservers
