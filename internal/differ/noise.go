package differ

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaderAnnotation holds a leader election's record where no Lease does (client-go until 0.27).
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// Noise tells whether a change of an object of the kind says nothing that a person looks for:
//
//   - metadata.managedFields and metadata.resourceVersion,
//   - the renewTime and the status of a Lease, and that of a leader's record in an annotation,
//   - the lastHeartbeatTime of a Node's conditions.
func Noise(kind schema.GroupKind, c Change) bool {
	p := c.Path
	switch {
	case p.Is("metadata", "managedFields"), p.Is("metadata", "resourceVersion"):
		return true
	case len(p) == 3 && p.Is("metadata", "annotations", leaderAnnotation):
		return onlyRenewed(c.Old, c.New)
	case kind == schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return p.Is("spec", "renewTime") || p.Is("status")
	case kind == schema.GroupKind{Kind: "Node"}:
		return len(p) == 4 && p.Is("status", "conditions") && p[3].Field == "lastHeartbeatTime"
	}
	return false
}

// onlyRenewed tells whether two leader election records differ in their renewTime alone.
func onlyRenewed(old, new any) bool {
	a, okA := leaderRecord(old)
	b, okB := leaderRecord(new)
	return okA && okB && Equal(a, b)
}

func leaderRecord(value any) (record any, ok bool) {
	text, ok := value.(string)
	if !ok {
		return nil, false
	}
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil || fields == nil {
		return nil, false
	}
	delete(fields, "renewTime")
	return fields, true
}
