// Package purge deletes logical clusters or orphans from the snapshot of a shard, and their copies
// from a cache.
package purge
