// Package fleet runs one command of etcdshift on many snapshots: it makes the list that an indexed
// Job of Kubernetes works off, finds the snapshot and the results of an index, and reads the
// reports of all. It starts nothing itself.
//
// Invariants:
//
//   - The same files give the same list, regardless of the clock and of the order of a folder.
//   - What is left out of a list is counted by the reason.
//   - A list, a report, or a name in them may be hostile: each is bounded, and an error names it.
//   - A result is never replaced. An index whose last result is there is done.
//   - Memory for a summary grows with the length of the list, not with the reports.
package fleet
