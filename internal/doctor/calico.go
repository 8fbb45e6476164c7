package doctor

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
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
	for e := range d.within(prefix, calicoMigrations(), "") {
		if phase, err := encoding.Get(e.Value, "status", "phase"); err != nil || phase != "Complete" {
			return true
		}
	}
	return false
}

func calicoMigrations() gvr.GroupResource {
	return gvr.GroupResource{Group: "migration.projectcalico.org", Resource: "datastoremigrations"}
}

// calicoMigration is a DatastoreMigration.
type calicoMigration struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase     string `json:"phase"`
		Message   string `json:"message"`
		LockedAt  string `json:"datastoreLockedAt"`
		StartedAt string `json:"startedAt"`
	} `json:"status"`
}

// underWay reports whether a live migration has begun and is not complete. Calico acts on that of
// one name only.
func (m *calicoMigration) underWay() bool {
	switch m.Status.Phase {
	case "Complete":
		return false
	case "", "Pending", "Failed":
		return m.Name == "v1-to-v3" && m.Status.LockedAt+m.Status.StartedAt != ""
	}
	return m.Name == "v1-to-v3"
}

// checkCalico reports a live migration under way, and else a lock that nothing opens.
func (d *doctor) checkCalico() {
	for _, s := range d.layouts.Storages() {
		underWay := false
		for e := range d.within(s.Prefix, calicoMigrations(), "") {
			m, err := decodeAs[calicoMigration](e)
			if err != nil || !m.underWay() {
				continue
			}
			underWay = true
			at := fmt.Sprintf("%q", finding.Clip(m.Status.Phase, 100))
			if m.DeletionTimestamp != nil {
				at += ", and being aborted"
			}
			if m.Status.Message != "" {
				at += ": " + finding.Clip(m.Status.Message, 300)
			}
			d.raise(e.Key, codeCalicoMigrating, "DatastoreMigration %s is in phase %s", m.Name, at)
		}
		if !underWay {
			d.checkCalicoLocks(s.Prefix)
		}
	}
}

// checkCalicoLocks reports ClusterInformations that are not ready. A migration leaves that of the
// old group so once the new one is ready.
func (d *doctor) checkCalicoLocks(prefix string) {
	var locked []*inspect.Entry
	for _, group := range []string{calicoV1, calicoV3} {
		for e := range d.within(prefix, gvr.GroupResource{Group: group, Resource: "clusterinformations"}, "") {
			switch ready, _ := encoding.Get(e.Value, "spec", "datastoreReady"); ready { // others report what does not decode
			case true:
				return
			case false:
				locked = append(locked, e)
			}
		}
	}
	for _, e := range locked {
		d.raise(e.Key, codeCalicoLocked, "spec.datastoreReady is false, and no live migration is under way")
	}
}
