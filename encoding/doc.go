// Package encoding reads and edits the bytes that etcd stores for a Kubernetes object: JSON, CBOR
// and the protobuf envelope. For values encrypted at rest the package returns [ErrEncrypted]. The
// package knows nothing of etcd keys and does no I/O.
//
// [Parse] reads the envelope, [ReadMeta] the metadata of any kind; [DecodeObject] and
// [EncodeObject] convert JSON and CBOR. [Get] and [Set] read and change the field at a path in
// every format; [EditOwnerReferences] uses both. [Scanner] scans JSON text without decoding.
//
// Protobuf is edited on the wire, for two reasons. A decode with the Go types of k8s.io/api drops
// unknown fields, also fields of older servers: ObjectMeta has lost clusterName, written into every
// object by servers before 1.25. And importers of this package do not link k8s.io/api.
//
// Invariants, each with tests:
//
//   - EncodeObject(DecodeObject(v)) == v for every custom resource stored by an API server, in JSON
//     and CBOR. Integers stay integers (9007199254740993 survives). Kinds stored through Go types
//     (CRDs, APIServices) get another order of fields; Set keeps the order.
//   - An edit changes only the edited field and the lengths of the enclosing messages: unknown
//     fields, order, explicit empty strings and duplicate map entries stay.
//   - An edit without a change returns its input, the same bytes in the same memory.
//   - An edit of a protobuf object of k8s.io/api equals the same typed edit, marshalled.
//   - Hostile bytes cause an error that names the field path; never a panic, endless recursion, or
//     memory for a claimed length.
//   - No error quotes a value: only field paths, offsets, apiVersion and kind, and for encrypted
//     values the provider and key name.
//
// No later call changes the memory of a result. [Value].Raw and the result of an edit without a
// change alias the input.
package encoding
