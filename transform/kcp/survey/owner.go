package survey

import (
	"crypto/sha256"
	"math/big"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
)

// Where a Workspace says, beside clusters.AnnotationShard, on which shard its logical cluster lives (kcp
// pkg/reconciler/tenancy/workspace/workspace_reconcile_scheduling.go).
const (
	AnnotationShardHash = "internal.tenancy.kcp.io/shard" // shardHash of the name
	LabelRegion         = "region"                        // as it is of the Shard
)

// ShardHash is how a Workspace spells the name of a shard beside the name itself: the first 8 digits of its SHA-224 as a number in
// base 36. As github.com/martinlindhe/base36 has it, which kcp uses, a zero byte in front is a digit of its own.
func ShardHash(name string) string {
	sum := sha256.Sum224([]byte(name))
	digits := new(big.Int).SetBytes(sum[:]).Text(36)
	for _, b := range sum {
		if b != 0 {
			break
		}
		digits = "0" + digits
	}
	return digits[:8]
}

// DropMigrating removes from a stored LogicalCluster the mark of a live migration, with which kcp would answer no request for it.
func DropMigrating(logicalCluster []byte) ([]byte, error) {
	return encoding.Set(logicalCluster, nil, "metadata", "annotations", clusters.AnnotationMigrating)
}

// MoveLogicalCluster has a stored LogicalCluster say that it lives on a shard.
func MoveLogicalCluster(logicalCluster []byte, shard string) ([]byte, error) {
	return encoding.Set(logicalCluster, shard, "metadata", "annotations", clusters.AnnotationShard)
}

// MoveWorkspace has a stored Workspace say that the logical cluster behind it lives on a shard, in a region: "" leaves the label as
// it is.
func MoveWorkspace(workspace []byte, shard, region string) ([]byte, error) {
	out, err := encoding.Set(workspace, shard, "metadata", "annotations", clusters.AnnotationShard)
	if err == nil {
		out, err = encoding.Set(out, ShardHash(shard), "metadata", "annotations", AnnotationShardHash)
	}
	if err == nil && region != "" {
		out, err = encoding.Set(out, region, "metadata", "labels", LabelRegion)
	}
	return out, err
}

// AnnotationCopiedFrom is where a copy in a cache may say which shard wrote it; the cache server takes it from the key.
const AnnotationCopiedFrom = "kcp.io/shard"

// CopyFor is a decrypted copy as the one of another shard: its annotation follows the key, and nothing else changes.
func CopyFor(value []byte, shard string) ([]byte, error) {
	if _, err := encoding.ReadMeta(value); err != nil { // an edit reads no more than it needs
		return nil, err
	}
	from, err := encoding.Get(value, "metadata", "annotations", AnnotationCopiedFrom)
	if err != nil || from == nil {
		return value, err
	}
	return encoding.Set(value, shard, "metadata", "annotations", AnnotationCopiedFrom)
}

// IsEncrypted tells whether a stored value is encrypted at rest.
func IsEncrypted(stored []byte) bool { return encoding.Detect(stored) == encoding.FormatEncrypted }
