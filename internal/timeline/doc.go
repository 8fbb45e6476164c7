// Package timeline says what became of one key over the revisions that one or more snapshots of a cluster keep, and when.
//
// Invariants:
//
//   - Every record of the key that a file keeps is told, once, in the order in which they were written.
//   - What no file keeps is said, not guessed: how many updates by the version numbers, which revisions by the compactions.
//   - The time of a revision is a bracket. It follows from objects that carry a time of their own, is monotonic, and a minority of
//     objects with wrong clocks does not move it.
//   - Memory is bounded: the clock keeps a fixed number of times, the history two records.
package timeline
