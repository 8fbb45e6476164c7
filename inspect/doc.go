// Package inspect says what is in a snapshot: the objects, decrypted where a configuration opens them, and at which
// versions each resource is stored. It only reads.
//
// Invariants:
//
//   - A value that no key opens is handed on as it is stored, with the reason; it is never taken for something else.
//   - Every live key is counted exactly once: under its resource, or as one that is no resource's.
//   - What is said about a value was read from that value: a CustomResourceDefinition's status is shown beside the versions
//     that were found, never in their place.
package inspect
