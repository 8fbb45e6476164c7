// Package fleet runs one etcdshift command on many snapshots: it creates the list for an indexed
// Kubernetes Job, finds the snapshot and the results of an index, and reads all reports. It starts
// no process itself.
//
// Invariants:
//
//   - The same files give the same list, regardless of the clock and the order of a folder.
//   - Files left out of a list are counted by reason.
//   - A list, a report, or a name in them may be hostile: each is bounded, and errors name its
//     file.
//   - A result is never replaced. An index with its last result is done.
//   - Memory for a summary grows with the length of the list, not with the reports.
package fleet
