// Package carry brings records of logical clusters into the snapshot of a shard: Import from an
// archive, PutBack orphans that a live migration left on another shard.
package carry
