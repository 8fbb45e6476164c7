// Package manifest turns a stored object into the manifest that a person would have written:
// without the fields of servers and controllers, ready to be applied.
//
// Invariants:
//
//   - Only fields that a server or controller sets again are removed. Labels, annotations and the
//     rest of the spec stay.
//   - Owner references go: with another uid the garbage collector would delete the object.
package manifest
