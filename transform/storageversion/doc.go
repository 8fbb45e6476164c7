// Package storageversion re-encodes custom resources at the storage version of their CustomResourceDefinition, byte for byte as
// a no-op write by an API server would, and only then makes status.storedVersions tell the truth.
//
// Invariants, each with a test:
//
//   - What is written is what an API server would store: its next no-op write of the object changes nothing.
//   - storedVersions becomes the set of versions that were found by reading every key of the kind after the rewrite. Where one
//     key cannot be read, no version leaves the list.
//   - A field that the schemas drop is named by its path, and is not dropped unless that was allowed.
//   - An object that is not at the storage version is never taken for one that is: without a converter, a conversion that only
//     a webhook can do is refused.
//   - uid, times, labels, annotations, finalizers and generation of an object stay; a value keeps its encoding and its lease.
package storageversion
