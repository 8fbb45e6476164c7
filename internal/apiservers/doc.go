// Package apiservers runs real API servers on an etcd, and prevents other outgoing connections.
//
// [Store.Serve] is an apiextensions-apiserver: the part of a kube-apiserver for custom resources.
// [Store.Start] runs it as a part of a sandbox. [Kube.Start] runs the user's kube-apiserver, and
// [Server.Collect] the garbage collector of a kube-controller-manager. [Isolate] edits the store
// first.
//
// Invariants:
//   - Each custom resource is listed at each served version of its CRD; a dry run writes nothing.
//   - After Isolate no API server connects to a webhook or an aggregated server from the store,
//     regardless of a record's stored form. Lists that need a conversion webhook return
//     [NotChecked], or the result of the converter given for the group.
//   - Isolate changes only CRDs and APIServices, and lists every changed or unreadable record.
//   - A wait for a server ends with the server, and with the reason.
//   - A kube-apiserver connects to no kubelet, Pod or Service, regardless of requests.
//   - A kube-apiserver listens on loopback and requires a random token stored only in the sandbox;
//     it calls no admission webhook.
//   - A server of Serve has no port and no cache. Its only background work is done by CRD
//     controllers.
package apiservers
