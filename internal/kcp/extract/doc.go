// Package extract copies logical clusters of a shard into an archive.
package extract
