package survey

import (
	"crypto/sha256"
	"encoding/json"
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
	return encoding.DropJSON(logicalCluster, []string{"metadata", "annotations", clusters.AnnotationMigrating})
}

// MoveLogicalCluster has a stored LogicalCluster say that it lives on a shard.
func MoveLogicalCluster(logicalCluster []byte, shard string) ([]byte, error) {
	return setText(logicalCluster, shard, "metadata", "annotations", clusters.AnnotationShard)
}

// MoveWorkspace has a stored Workspace say that the logical cluster behind it lives on a shard, in a region: "" leaves the label as
// it is.
func MoveWorkspace(workspace []byte, shard, region string) ([]byte, error) {
	out, err := setText(workspace, shard, "metadata", "annotations", clusters.AnnotationShard)
	if err == nil {
		out, err = setText(out, ShardHash(shard), "metadata", "annotations", AnnotationShardHash)
	}
	if err == nil && region != "" {
		out, err = setText(out, region, "metadata", "labels", LabelRegion)
	}
	return out, err
}

// setText sets one string of a JSON value and leaves all else, byte for byte.
func setText(value []byte, to string, path ...string) ([]byte, error) {
	return encoding.EditJSON(value, path, func(text []byte) ([]byte, error) {
		var is *string
		if err := json.Unmarshal(text, &is); err == nil && is != nil && *is == to {
			return text, nil
		}
		return json.Marshal(to)
	})
}

// AnnotationCopiedFrom is where a copy in a cache may say which shard wrote it; the cache server takes it from the key.
const AnnotationCopiedFrom = "kcp.io/shard"

// CopyFor is a decrypted copy as the one of another shard: its annotation follows the key, and nothing else changes.
func CopyFor(value []byte, shard string) ([]byte, error) {
	if _, err := encoding.ReadMeta(value); err != nil { // an edit reads no more than it needs
		return nil, err
	}
	return encoding.ReplaceAnnotation(value, AnnotationCopiedFrom, shard)
}

// IsEncrypted tells whether a stored value is encrypted at rest.
func IsEncrypted(stored []byte) bool { return encoding.Detect(stored) == encoding.FormatEncrypted }
