// Package differ says how two values of JSON content differ, field by field, and which of the differences are noise.
//
// Items of a list are matched by what names them, where each item of both lists has it and no two have the same: uid,
// mountPath, name (with kind and namespace), type, containerPort and protocol, and the like (see itemKeys). Other lists are
// matched by their longest common subsequence, and what lies between by position.
//
// Invariants:
//
//   - The changes, applied to the old value, give the new one; there are none exactly where the two are equal.
//   - What is compared is not what is shown: of a value that was redacted a change shows that it changed and what the redacted
//     form tells (its length), never a digest, which would let a reader guess short values.
//   - Depth and work are bounded: below maxDepth, and for long lists without names, the comparison is coarser, never wrong.
package differ
