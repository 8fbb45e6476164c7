// Package clusters finds the logical clusters of kcp in a snapshot: their keys, their place in the
// tree of workspaces, the types that they bind, and the definitions and identities of these. Survey
// compares the files of several shards and their cache.
//
// Invariants, each with a test:
//
//   - OneOwner: each key of a storage of kcp belongs to exactly one logical cluster, or is unknown.
//   - LivesHere: a logical cluster lives on a shard if the key of its LogicalCluster is there, with
//     any value, or if it is one of system:*, which every shard has. All other keys are orphans.
//   - NothingGuessed: fields of an undecryptable or damaged value stay empty; it is a problem of
//     the cluster.
//   - KeyMismatch: a record belongs to the logical cluster of its key. A value that names another
//     is a problem, and changes nothing.
//   - ReadsNoOtherKind: Read decrypts only values of the few kinds that describe logical clusters.
//     ReadChecked and Checking decrypt all.
//   - Determinism: the same file gives the same result, in the same order.
//
// Sources: kcp pkg/reconciler/core/logicalcluster, pkg/reconciler/tenancy/workspace,
// pkg/reconciler/apis/apibinding and pkg/cache, as of kcp dac74f5955f1.
package clusters
