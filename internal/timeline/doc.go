// Package timeline tells the history of one key over the revisions in one or more snapshots of a cluster, and estimates the times.
//
// Invariants:
//
//   - Every stored record of the key is told once, in the order of writing.
//   - Missing revisions are reported, not guessed: updates by the version numbers, gaps by the compactions.
//   - The time of a revision is a bracket. It follows from the times in objects, is monotonic, and a minority of wrong clocks does
//     not move it.
//   - Memory is bounded: the clock keeps a fixed number of times, the history two records.
package timeline
