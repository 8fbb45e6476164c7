// Package serve answers as a read-only Kubernetes API server for the objects in a snapshot. The
// server is k8s.io/apiserver's generic one, its storage the file.
//
// Built-in kinds are served through the types of k8s.io/api, at the versions they are stored at;
// custom resources through their CustomResourceDefinitions, with the conversion strategy None.
// Every object is JSON content ([inspect.Object]) until it is encoded.
//
// Invariants:
//
//   - Nothing changes: whatever is not a read is refused with 405 and a sentence.
//   - An object that cannot be read is an error with its key, or a warning of the list that lacks
//     it and a line for the operator; it is never left out silently.
//   - Without Config.Secrets, credentials are redacted before an object reaches any encoder.
//   - Memory grows with the number of keys, four bytes for each key of a type that was asked for.
//     A list is read while it is written. Of a table and of metadata alone the answer is in
//     memory, and of a few lists in protobuf at a time.
//   - A watch yields the objects of the file, and then nothing: the file is as it is.
package serve
