package doctor

import (
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// The groups of Calico, and the APIService of its own API server.
const (
	calicoV1, calicoV3, calicoAPIService = "crd.projectcalico.org", "projectcalico.org", "v3.projectcalico.org"
)

// calicoMoves returns what to add to a finding about something that Calico's way to
// projectcalico.org/v3 removes, "" where Calico is not on that way: its definitions of both groups
// are there, or a DatastoreMigration is that is not complete.
func (d *doctor) calicoMoves(prefix string) string {
	defines := func(group string) bool {
		return d.definitions.by[folder{prefix, gvr.GroupResource{Group: group, Resource: "clusterinformations"}}] != nil
	}
	if defines(calicoV1) && defines(calicoV3) || d.migratesCalico(prefix) {
		return "; Calico is between its groups: leave it to the migration (docs/calico-v3.md)"
	}
	return ""
}

// migratesCalico reports whether there is a DatastoreMigration that may have something left to do.
func (d *doctor) migratesCalico(prefix string) bool {
	migrations := gvr.GroupResource{Group: "migration.projectcalico.org", Resource: "datastoremigrations"}
	if d.versions.by[folder{prefix, migrations}] == nil {
		return false
	}
	for e, err := range d.reader.Live(d.ctx, keys.Kubernetes{Prefix: prefix}.Dir(migrations)) {
		if d.failed(err) {
			return false
		}
		if phase, err := encoding.Get(e.Value, "status", "phase"); err != nil || phase != "Complete" {
			return true
		}
	}
	return false
}
