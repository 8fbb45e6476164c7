// Package logicalcluster takes logical clusters of kcp out of the snapshot of a shard, and puts them into that of another.
//
// Invariants, each with a test:
//
//   - OnlyItsOwn: a purge deletes every key of the logical clusters it is about, and none of another; what a tenant named its
//     objects does not matter.
//   - RestUntouched: every live record of the file that is none of theirs is in the output as it was, at its revisions, under its lease;
//     this is proved before the output gets its name.
//   - NothingLeft: after a purge with Scrub no byte of a key or value of theirs, of any revision, is in the file.
//   - OpensNothing: a purge needs no encryption key.
package logicalcluster
