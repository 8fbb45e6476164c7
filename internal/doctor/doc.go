// Package doctor finds causes of failures after a restore: in the file, in records, and in
// relations between objects.
//
// Invariants:
//
//   - A finding is a fact of the file. Undecryptable values and types of aggregated API servers are
//     reported as unchecked or not at all; nothing is guessed.
//   - Each finding has a stable code of docs/reference/codes.md, and the key of the object if it
//     has one.
//   - Memory grows by a few dozen bytes per object, and by up to finding.MaxListed findings per
//     code.
//   - No finding holds bytes of a value other than names and addresses.
package doctor
