package calico

import (
	"slices"

	"github.com/google/uuid"

	"github.com/etcdshift/etcdshift/encoding"
)

// namingFields are the fields of a spec that v3Name reads.
var namingFields = encoding.FieldsOf[struct {
	Tier     string `json:"tier"`
	CIDR     string `json:"cidr"`
	HandleID string `json:"handleID"`
}]()

// glance is what v3Name needs of a record that has no other metadata than its own, such as almost
// all of IPAM, which are most records. Where it is sure, readRecord reads the same, and the record
// is not being deleted.
func (s *scanned) glance() (uid uuid.UUID, m metadata, spec map[string]any, sure bool) {
	var g encoding.Glance
	k := s.id.kind
	if !g.GlanceJSON(s.value) || g.Odd || string(g.APIVersion) != apiVersionV1 || string(g.Kind) != k.V1Kind || k.Namespaced != (s.key.Namespace != "") ||
		string(g.Name) != s.key.Name || string(g.Namespace) != s.key.Namespace ||
		slices.ContainsFunc(g.Managed, func(version []byte) bool { return string(version) == apiVersionV3 }) {
		return uid, m, nil, false
	}
	for _, a := range g.Annotations {
		if string(a.Name) == metadataAnnotation {
			if m.annotated = true; string(a.Value) != "{}" {
				return uid, m, nil, false
			}
		}
	}
	uid, err := parseUID(string(g.UID))
	if err != nil {
		return uid, m, nil, false
	}
	named, err := namingFields.Decode(g.Spec)
	if err != nil {
		return uid, m, nil, false
	}
	return uid, m, map[string]any{"tier": named.Tier, "cidr": named.CIDR, "handleID": named.HandleID}, true
}
