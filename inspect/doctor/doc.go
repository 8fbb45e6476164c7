// Package doctor finds problems of a restore in advance: in the file, in its records, and in
// relations between objects.
//
// Invariants:
//
//   - A finding is about something that the file shows. Undecryptable values, and types that an
//     aggregated API server keeps elsewhere, are reported apart or not at all; nothing is guessed.
//   - Each finding has a stable code, explained in docs/codes.md, and the key of its record if any.
//   - Memory grows by a few dozen bytes an object, and by a bounded number of findings of each
//     code.
//   - No finding has bytes of a value other than names.
package doctor
