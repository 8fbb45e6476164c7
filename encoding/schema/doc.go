// Package schema does with a CustomResourceDefinition as stored in etcd what an API server does
// with objects of its kind: prune, default, convert, validate. It also repairs the leftovers of a
// change of versions. It does no I/O and knows no keys.
//
// [ParseCRD] reads a stored CRD, [ParseManifest] a file. [CRD.Rewrite] writes an object anew as a
// server would; [CRD.Begin] and [CRD.Finish] are its halves around a webhook's conversion.
// [Version.Prune], [Version.Default] and [Version.Validate] are the single steps.
//
// The algorithms are those of k8s.io/apiextensions-apiserver; only the order of its calls
// (pkg/apiserver/customresource_handler.go, unstructuredSchemaCoercer) is repeated here, since
// pkg/apiserver and pkg/registry would link a whole API server.
//
// Invariants:
//
//   - A CRD that a server of this release stored is the same bytes after decoding and encoding.
//   - Prune, Default and Convert leave what a server's own decoding of the value leaves; Rewrite,
//     and Begin and Finish around a conversion, leave what it would write.
//   - SetStoredVersions and SetStorageVersion change bytes, not CRDs parsed from them.
//   - RelabelManagedFields asks the field manager's own types whether an entry breaks server-side
//     apply; other entries stay as they are.
//   - Each dropped field is returned as a path: "spec.foo", or "spec.foo=null" for an explicit
//     null. Only empty fields of metadata are dropped without a path.
//   - CRD and Version never change after parsing and are safe for concurrent use.
//   - Objects are JSON content (map[string]any, []any, string, bool, int64, float64 and nil),
//     changed in place, but never by Validate.
package schema
