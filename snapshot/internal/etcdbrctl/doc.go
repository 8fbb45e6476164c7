// Package etcdbrctl knows the backups of etcdbrctl, the backup program of Gardener: the names of
// full and delta snapshots, and the events in delta snapshots.
//
// Invariants, each with a test:
//
//   - Deltas yields records in the order of revisions, without a gap, or an error.
//   - A file counts only as a whole, with a right digest.
package etcdbrctl
