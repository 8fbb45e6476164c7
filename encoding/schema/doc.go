// Package schema turns a CustomResourceDefinition as etcd holds it into what an
// API server does with the objects of that kind: prune, default, convert,
// validate; and mends what a change of versions leaves behind. It does no I/O and
// knows no keys.
//
// The schema algorithms are those of k8s.io/apiextensions-apiserver; only the
// order in which its storage codec calls them is not exported there
// (pkg/apiserver/customresource_handler.go, unstructuredSchemaCoercer) and
// written out again here. The package pkg/apiserver itself is not imported,
// since it links a whole API server.
//
// Invariants:
//   - A CRD that is decoded and encoded again is the same bytes, where a server
//     of this release wrote them.
//   - Prune, Default and Convert leave exactly what a server's own decoding of
//     the same value leaves; Settle, and Begin and Finish around a conversion,
//     leave what it would write. Work is spared only where it changes nothing.
//   - SetStoredVersions and SetStorageVersion change bytes; a CRD that was
//     parsed from them before does not follow.
//   - RelabelManagedFields asks the field manager's own types whether an entry
//     breaks server-side apply; entries that do not stay as they are.
//   - Whatever is dropped from an object is returned as a path: "spec.foo", or
//     "spec.foo=null" for an explicit null. Only empty metadata fields go
//     without a word, since they say nothing.
//   - CRD and Version never change once parsed and may be shared between
//     goroutines; schemas and CEL programs are compiled once, on first use.
//   - Objects are JSON content: map[string]any, []any, string, bool, int64,
//     float64 and nil. They are changed in place, and never by Validate.
package schema
