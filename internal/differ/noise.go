package differ

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaderAnnotation holds the record of a leader election without a Lease (client-go until 0.27).
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// Noise reports whether a change of an object of the kind is folded away:
//
//   - metadata.managedFields and metadata.resourceVersion,
//   - the renewTime and the status of a Lease, the renewTime of a leader's record in an annotation,
//   - the lastHeartbeatTime of a Node's conditions.
func Noise(kind schema.GroupKind, c Change) bool {
	p := c.Path
	switch {
	case p.is("metadata", "managedFields"), p.is("metadata", "resourceVersion"):
		return true
	case len(p) == 3 && p.is("metadata", "annotations", leaderAnnotation):
		return onlyRenewed(c.Old, c.New)
	case kind == schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return p.is("spec", "renewTime") || p.is("status")
	case kind == schema.GroupKind{Kind: "Node"}:
		return len(p) == 4 && p.is("status", "conditions") && p[3].Field == "lastHeartbeatTime"
	}
	return false
}

// onlyRenewed reports whether two records of a leader election differ only in their renewTime.
func onlyRenewed(old, new any) bool {
	var records [2]map[string]any
	for i, value := range []any{old, new} {
		text, ok := value.(string)
		if !ok || json.Unmarshal([]byte(text), &records[i]) != nil || records[i] == nil {
			return false
		}
		delete(records[i], "renewTime")
	}
	return Equal(records[0], records[1])
}
