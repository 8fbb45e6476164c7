// Package manifest makes of a stored object what a person would have written: without what servers and controllers fill in, so
// that it can be applied to another cluster, or to the same one after the object was deleted.
//
// Invariants:
//
//   - What is taken away is only what a server or controller puts there again; labels, annotations and the rest of the spec stay.
//   - No owner reference is left: the owner has another uid, or is gone, and the garbage collector would delete the object.
package manifest
