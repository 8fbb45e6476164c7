// Package schema processes custom resources like an API server, with a CustomResourceDefinition as
// stored in etcd: prune, default, convert, validate. The package also repairs the leftovers of a
// version change. The package does no I/O and knows no keys.
//
// [ParseCRD] reads a stored CRD, [ParseManifest] a file. [CRD.Rewrite] rewrites an object like a
// server; [CRD.Begin] and [CRD.Finish] are the halves of Rewrite, before and after a webhook's
// conversion. [Version.Prune], [Version.Default] and [Version.Validate] are the single steps.
//
// The algorithms are from k8s.io/apiextensions-apiserver. Only the order of calls
// (pkg/apiserver/customresource_handler.go, unstructuredSchemaCoercer) is repeated here, because
// pkg/apiserver and pkg/registry would link a whole API server.
//
// Invariants:
//
//   - A CRD stored by a server of this release has the same bytes after decoding and encoding.
//   - Prune, Default and Convert give the same object as a server's decoder; Rewrite, and Begin and
//     Finish around a conversion, give the object that a server would write.
//   - SetStoredVersions and SetStorageVersion change bytes, not CRDs parsed from them.
//   - RelabelManagedFields uses the field manager's own types to find entries that break
//     server-side apply; other entries stay unchanged.
//   - Every dropped field is returned as a path: "spec.foo", or "spec.foo=null" for an explicit
//     null. Only empty fields of metadata are dropped without a path.
//   - CRD and Version never change after parsing and are safe for concurrent use.
//   - Objects are JSON content (map[string]any, []any, string, bool, int64, float64 and nil),
//     changed in place, except by Validate.
package schema
