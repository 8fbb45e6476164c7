// Package encoding reads and edits the bytes that etcd stores for a Kubernetes object: JSON, CBOR
// and the protobuf envelope. It recognises values encrypted at rest and returns [ErrEncrypted] for
// them. It knows nothing of etcd keys and does no I/O.
//
// [Parse] reads the envelope, [ReadMeta] the metadata of any kind; [DecodeObject] and
// [EncodeObject] convert JSON and CBOR. [Get] and [Set] read and change the field at a path in
// every format; [EditOwnerReferences] is built on them. [Scanner] passes over JSON text without
// decoding it.
//
// Protobuf is edited on the wire, for two reasons. A decode with the Go types of k8s.io/api drops
// unknown fields, also those of older servers: ObjectMeta has lost clusterName, which servers
// before 1.25 wrote into every object. And importers of this package do not link k8s.io/api.
//
// Invariants, each with tests:
//
//   - EncodeObject(DecodeObject(v)) == v for every custom resource an API server stored, in JSON
//     and CBOR. Integers stay integers (9007199254740993 survives). Kinds that a server stores
//     through Go types (CRDs, APIServices) change the order of their fields; Set keeps it.
//   - An edit changes the edited field and the lengths of the messages around it, nothing else:
//     unknown fields, order, explicit empty strings and duplicate map entries stay.
//   - An edit that changes nothing returns its input, the same bytes in the same memory.
//   - An edit of a protobuf object of k8s.io/api equals the same typed edit, marshalled.
//   - Hostile bytes end in an error that names the field path; never in a panic, in endless
//     recursion, or in memory that grows with a length the bytes only claim.
//   - No error quotes a value: only field paths, offsets, apiVersion and kind, and for encrypted
//     values the provider and key name.
//
// A result never aliases memory that a later call changes. [Value].Raw and the result of an edit
// that changed nothing alias the input.
package encoding
