// Package encoding turns the bytes etcd stores for a Kubernetes object into something that can be read, and changes one
// field of them without touching another. It knows JSON, the protobuf envelope and CBOR; it recognises values encrypted
// at rest and refuses them by name. It knows nothing of etcd keys, and does no I/O.
//
// Invariants, each with tests:
//
//   - EncodeObject(DecodeObject(v)) == v for every custom resource an API server stored, in JSON and in CBOR. Integers
//     stay integers (9007199254740993 survives). Kinds that a server stores through Go types (CRDs, APIServices) keep
//     their fields in another order; the editing functions keep that order.
//   - An edit changes the edited field and the lengths of the messages around it, nothing else: unknown fields, field
//     order, explicit empty strings and duplicate map entries stay byte for byte. In protobuf this holds for any kind,
//     also for one that is newer than this program.
//   - An edit that changes nothing returns its input, the same bytes in the same memory.
//   - An edit of a protobuf object that k8s.io/api marshalled equals what k8s.io/api marshals after the same edit of its
//     typed form.
//   - Hostile bytes end in an error that names the field path; never in a panic, in endless recursion, or in memory that
//     follows a length the bytes only claim.
//   - No error contains a value: only field paths, offsets, apiVersion and kind, and for encrypted values the provider and
//     key name.
//
// Nothing returned from here aliases memory that a later call changes. Value.Raw and the result of an edit that changed
// nothing alias the input: they live as long as it does.
//
// Objects of known kinds are decoded from Value.Raw with the generated types: for a protobuf value,
// (&rbacv1.ClusterRole{}).Unmarshal(v.Raw). Such a decode drops unknown fields, so it is for reading only.
package encoding
