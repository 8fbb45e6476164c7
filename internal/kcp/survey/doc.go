// Package survey is shared by the commands that move logical clusters: the keys of a logical
// cluster (Selection), the Workspaces that lead to it (Index), the types that a shard serves
// (Serving), the shard named in LogicalClusters and Workspaces, and the steps of reports. Package
// internal/kcp/clusters reads the file.
package survey
