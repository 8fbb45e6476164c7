package logicalcluster

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"

	"github.com/etcdshift/etcdshift/encoding"
)

// Where a logical cluster and its Workspace say on which shard it lives (kcp sdk/apis/core/register.go and
// pkg/reconciler/tenancy/workspace/workspace_reconcile_scheduling.go).
const (
	annotationShard     = "core.kcp.io/shard"             // of both: the name of the shard
	annotationShardHash = "internal.tenancy.kcp.io/shard" // of the Workspace: shardHash of that
	annotationMigrating = "internal.kcp.io/migrating"     // of the LogicalCluster: which live migration has it
	labelRegion         = "region"                        // of the Workspace, as it is of the Shard
)

// shardHash is how a Workspace spells the name of a shard beside the name itself: the first 8 digits of its SHA-224 as a number in
// base 36. As github.com/martinlindhe/base36 has it, which kcp uses, a zero byte in front is a digit of its own.
func shardHash(name string) string {
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

// dropMigrating removes from a stored LogicalCluster the mark of a live migration, with which kcp would answer no request for it.
func dropMigrating(logicalCluster []byte) ([]byte, error) {
	return encoding.DropJSON(logicalCluster, []string{"metadata", "annotations", annotationMigrating})
}

// moveLogicalCluster has a stored LogicalCluster say that it lives on a shard.
func moveLogicalCluster(logicalCluster []byte, shard string) ([]byte, error) {
	return setText(logicalCluster, shard, "metadata", "annotations", annotationShard)
}

// moveWorkspace has a stored Workspace say that the logical cluster behind it lives on a shard, in a region: "" leaves the label as
// it is.
func moveWorkspace(workspace []byte, shard, region string) ([]byte, error) {
	out, err := setText(workspace, shard, "metadata", "annotations", annotationShard)
	if err == nil {
		out, err = setText(out, shardHash(shard), "metadata", "annotations", annotationShardHash)
	}
	if err == nil && region != "" {
		out, err = setText(out, region, "metadata", "labels", labelRegion)
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
