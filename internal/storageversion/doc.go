// Package storageversion re-encodes custom resources at the storage version of their
// CustomResourceDefinition, byte for byte as a no-op write by an API server would, and then
// corrects status.storedVersions.
//
// Invariants, each with a test:
//
//   - An API server's next no-op write of a written object changes nothing.
//   - storedVersions becomes the set of versions found by reading every key of the kind after the
//     rewrite. If one key cannot be read, no version is removed from the list.
//   - A field that the schemas drop is reported with its path, and is dropped only if --allow says
//     so.
//   - A conversion that needs a webhook is refused without a converter.
//   - uid, times, labels, annotations, finalizers and generation of an object stay; a value keeps
//     its encoding and its lease.
package storageversion
