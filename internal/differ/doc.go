// Package differ compares two values of JSON content field by field, and recognizes noise.
//
// Items of a list are matched by name, if each item has one and no two have the same: uid,
// mountPath, name (with kind and namespace), type, containerPort and protocol, and the like (see
// itemKeys). Other lists are matched by their longest common subsequence, and the items between by
// position.
//
// Invariants:
//
//   - The changes, applied to the old value, give the new one. Equal values have none.
//   - A change of a redacted value shows only the redacted form (its length), never a digest: it
//     would let a reader guess short values.
//   - Depth and work are bounded. Below maxDepth, and for long lists without names, the comparison
//     is coarser, never wrong.
package differ
