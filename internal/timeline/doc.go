// Package timeline tells the history of one key in snapshots of a cluster, and estimates its times.
//
// Invariants:
//
//   - Every stored record of the key is told once, in the order of writing.
//   - Gaps are reported, not guessed: updates by version numbers, missing revisions by compactions.
//   - The time of a revision is a bracket. It follows from times in objects, is monotonic, and a
//     minority of wrong clocks does not move it.
//   - Memory is bounded: the clock keeps a fixed number of times, the history two records.
package timeline
