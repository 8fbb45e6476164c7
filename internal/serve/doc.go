// Package serve serves the objects of a snapshot as a read-only Kubernetes API server: the generic
// server of k8s.io/apiserver, with the file as its storage.
//
// Built-in kinds are served through the types of k8s.io/api, at their stored versions; custom
// resources through their CustomResourceDefinitions, with the conversion strategy None. Every
// object is JSON content ([inspect.Object]) until encoding.
//
// Invariants:
//
//   - Nothing changes: requests other than reads are refused with 405 and an explanation.
//   - An unreadable object causes an error with its key, or a warning of the incomplete list and a
//     line for the operator; it is never left out silently.
//   - Without Config.Secrets, credentials are redacted before an object reaches any encoder.
//   - Memory grows with the number of keys, four bytes for each key of a requested type. A list is
//     read while it is written. Tables, metadata-only answers and a few lists in protobuf are in
//     memory as a whole.
//   - A watch yields the objects of the file and then nothing: the file does not change.
package serve
