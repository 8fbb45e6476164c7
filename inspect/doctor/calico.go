package doctor

import gvr "k8s.io/apimachinery/pkg/runtime/schema"

// The groups of Calico, and the APIService of its own API server.
const (
	calicoV1, calicoV3, calicoAPIService = "crd.projectcalico.org", "projectcalico.org", "v3.projectcalico.org"
)

// calicoMoves returns what to add to a finding about something that Calico's way to
// projectcalico.org/v3 removes, "" where Calico is not on that way: its definitions of both groups
// are there, or a DatastoreMigration is.
func (d *doctor) calicoMoves(prefix string) string {
	defines := func(group string) bool {
		return d.definitions.by[folder{prefix, gvr.GroupResource{Group: group, Resource: "clusterinformations"}}] != nil
	}
	live := d.versions.by[folder{prefix, gvr.GroupResource{Group: "migration.projectcalico.org", Resource: "datastoremigrations"}}] != nil
	if live || defines(calicoV1) && defines(calicoV3) {
		return "; Calico is between its groups: leave it to the migration (docs/calico-v3.md)"
	}
	return ""
}
