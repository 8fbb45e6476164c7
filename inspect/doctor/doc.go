// Package doctor finds what will hurt after a restore: in the file, in its records, and in what the objects say of each other.
//
// Invariants:
//
//   - A finding is what the file shows. What it does not show, such as a value that no key opens, or a type that an
//     aggregated API server keeps elsewhere, is said apart or not at all; it is never guessed.
//   - Each finding has a stable code that docs/codes.md explains, and names the key it is about where it is about one.
//   - Memory grows by a few dozen bytes an object, and by what is found up to MaxFindings of each code; those beyond are counted.
//   - No finding holds bytes of a value other than names.
package doctor
