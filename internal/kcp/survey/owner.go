package survey

import (
	"crypto/sha256"
	"math/big"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
)

// A Workspace names the shard of its logical cluster in these too, beside clusters.AnnotationShard
// (kcp pkg/reconciler/tenancy/workspace/workspace_reconcile_scheduling.go).
const (
	AnnotationShardHash = "internal.tenancy.kcp.io/shard" // shardHash of the name
	LabelRegion         = "region"                        // as it is of the Shard
)

// ShardHash is the value of AnnotationShardHash: 8 digits of the SHA-224 of the name in base 36. A
// leading zero byte is a digit, as in github.com/martinlindhe/base36, which kcp uses.
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

// DropMigrating removes the mark of a live migration from a stored LogicalCluster: with it kcp
// answers no request.
func DropMigrating(logicalCluster []byte) ([]byte, error) {
	return encoding.Set(logicalCluster, nil, "metadata", "annotations", clusters.AnnotationMigrating)
}

// MoveLogicalCluster changes the shard in a stored LogicalCluster.
func MoveLogicalCluster(logicalCluster []byte, shard string) ([]byte, error) {
	return encoding.Set(logicalCluster, shard, "metadata", "annotations", clusters.AnnotationShard)
}

// MoveWorkspace changes shard and region of the logical cluster in a stored Workspace; region ""
// leaves the label.
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

// AnnotationCopiedFrom may name the shard that wrote a copy in a cache; the cache server takes it
// from the key.
const AnnotationCopiedFrom = "kcp.io/shard"

// CopyFor returns a decrypted copy as that of another shard: only its annotation changes.
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

// IsEncrypted tells whether a stored value is encrypted.
func IsEncrypted(stored []byte) bool { return encoding.Detect(stored) == encoding.FormatEncrypted }
