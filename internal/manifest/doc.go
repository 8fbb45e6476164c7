// Package manifest turns a stored object into one that can be applied, as a person would have
// written it: without the fields that servers and controllers fill in.
//
// Invariants:
//
//   - Only fields that a server or controller fills in again are removed.
//   - No owner reference is left: the owner has another uid, or is gone, and the object would be
//     deleted.
package manifest
