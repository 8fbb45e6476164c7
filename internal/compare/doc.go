// Package compare compares two snapshots of a cluster, and tells the history of one key over the
// revisions that its snapshots keep.
//
// Invariants:
//
//   - Every key whose value or lease differs is found, by the stored bytes. Only these are decoded.
//     Memory is a few bytes a key that differs.
//   - Each stored record of a key is in its history, once, in the order of writing. Gaps are named,
//     not guessed: updates by the version numbers, revisions by the compactions.
//   - Nothing that differs is dropped: folded noise is counted.
//   - A value that cannot be decrypted or decoded is compared by its bytes, with a note.
//   - Values that must be hidden (see inspect/redact) are compared, and shown redacted.
//   - The time of a revision is a bracket, from objects that carry a time. It is monotonic, and a
//     minority of wrong clocks does not move it. A clock keeps a fixed number of times.
package compare
