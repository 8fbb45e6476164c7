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
	if d.definesCalico(prefix) || d.migratesCalico(prefix) {
		return "; Calico is between its groups: leave the APIService to the migration (docs/calico-v3.md): without it Calico would serve an empty group"
	}
	return ""
}

// definesCalico reports whether there are definitions of both groups.
func (d *doctor) definesCalico(prefix string) bool {
	defines := func(group string) bool {
		return d.definitions.by[folder{prefix, gvr.GroupResource{Group: group, Resource: "clusterinformations"}}] != nil
	}
	return defines(calicoV1) && defines(calicoV3)
}

// checkEmptied reports that API servers themselves serve Calico's new group, which lacks Calico's
// data, while the old one has it. An abort of the live migration deletes what the migration copied,
// as far as it can: the tiers that Calico protects stay, and so does what was there before. It
// deletes the ClusterInformation too, unless that was there before.
//
// key is what serves the group: the APIService, or the definition where there is none, from which
// an API server makes one.
func (d *doctor) checkEmptied(prefix string, key []byte) {
	if !d.definesCalico(prefix) || d.migratesCalico(prefix) {
		return
	}
	data, left, initialized, used := 0, 0, false, false
	for at, versions := range d.versions.all() {
		if at.prefix != prefix || versions.total.objects == 0 {
			continue
		}
		switch at.resource.Group {
		case calicoV1:
			data += versions.total.objects
		case calicoV3:
			left += versions.total.objects
			name := at.resource.Resource
			initialized = initialized || name == "clusterinformations"
			used = used || name != "clusterinformations" && name != "tiers"
		}
	}
	if data > 0 && !(initialized && used) {
		d.raise(key, codeCalicoEmpty, "%s of %s, and %s of %s", things(left, "object"), calicoV3, things(data, "object"), calicoV1)
	}
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
