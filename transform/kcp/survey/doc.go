// Package survey is what the programs that move logical clusters share: which keys of a file belong to them (Selection), what
// leads to them (Index), what a shard can serve (Serving), where a LogicalCluster and its Workspace say that it lives, and the steps
// that a report prints. Package inspect/clusters reads the file; it stays below transform, as doctor needs it too.
package survey
