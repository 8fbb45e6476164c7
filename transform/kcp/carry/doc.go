// Package carry brings records of logical clusters into the snapshot of a shard: an Import those of an archive, a PutBack orphans
// that a live migration left on another shard.
package carry
