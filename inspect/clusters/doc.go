// Package clusters tells which logical clusters of kcp live in a snapshot, and what belongs to each: its keys, where it stands
// in the tree of workspaces, the types it binds and the definitions and identities those need. It reads and checks nothing
// but what the file holds; Survey puts the files of several shards and their cache side by side.
//
// Invariants, each with a test:
//
//   - OneOwner: each key of a storage of kcp is counted for exactly one logical cluster, or is among the unknown.
//   - LivesHere: a logical cluster lives on a shard if and only if the key of its LogicalCluster is there, whatever its value
//     looks like, or if it is one of system:*, which every shard has. All other keys are those of orphans.
//   - NothingGuessed: what a value would tell and cannot, because it is encrypted or damaged, stays empty and is a problem of the
//     cluster.
//   - KeyMismatch: the key alone tells whose a record is. A value that says otherwise is a problem, and changes nothing.
//   - ReadsNoOtherKind: Read opens no value but those of the few kinds that tell of logical clusters. ReadChecked and Checking open all.
//   - Determinism: the same file says the same, in the same order.
//
// Sources: kcp pkg/reconciler/core/logicalcluster, pkg/reconciler/tenancy/workspace, pkg/reconciler/apis/apibinding and
// pkg/cache, as of kcp dac74f5955f1.
package clusters
