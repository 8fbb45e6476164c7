// Package differ compares two values of JSON content field by field, and knows which changes are
// noise.
//
// Items of a list are matched by the fields that name them (see itemKeys), if all items have unique
// names. Other lists are matched by their longest common subsequence, and the items between by
// position.
//
// Invariants:
//
//   - The changes, applied to the old value, give the new one; equal values have none.
//   - A change of a redacted value shows only the redacted forms (a length), never a digest, which
//     would let a reader guess short values.
//   - Depth and work are bounded: beyond that the comparison is coarser, never wrong.
package differ
