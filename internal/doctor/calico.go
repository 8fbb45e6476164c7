package doctor

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/phrase"
)

// The groups of Calico, and the APIService of its own API server.
const (
	calicoV1, calicoV3, calicoAPIService = "crd.projectcalico.org", "projectcalico.org", "v3.projectcalico.org"
)

// Codes about Calico.
var (
	codeCalicoEmpty     = finding.Lookup("calico-v3-empty")
	codeCalicoMigrating = finding.Lookup("calico-migrating")
	codeCalicoLocked    = finding.Lookup("calico-locked")
)

// calicoMoves returns an addition to findings about an object removed by Calico's migration to
// projectcalico.org/v3, "" without a migration. Signs of a migration are definitions of both
// groups, or an incomplete DatastoreMigration.
func calicoMoves(d *doctor, prefix string) (string, error) {
	migrates, err := migratesCalico(d, prefix)
	if err != nil || !migrates && !definesCalico(d, prefix) {
		return "", err
	}
	return "; Calico is between its groups: leave the APIService to the migration (docs/guides/calico-v3.md): " +
		"without it Calico would serve an empty group", nil
}

// definesCalico reports whether both groups have definitions.
func definesCalico(d *doctor, prefix string) bool {
	defines := func(group string) bool {
		return d.definitions.by[folder{prefix, gvr.GroupResource{Group: group, Resource: "clusterinformations"}}] != nil
	}
	return defines(calicoV1) && defines(calicoV3)
}

// checkEmptied reports that API servers serve Calico's new group without Calico's data, while the
// old group has the data. An abort of the live migration deletes the copies, as far as possible:
// tiers protected by Calico and earlier objects stay. The abort deletes the ClusterInformation too,
// unless it existed before.
//
// key is the object that makes the group served: the APIService, or else the definition, from which
// an API server creates an APIService.
func checkEmptied(d *doctor, prefix string, key []byte) error {
	migrates, err := migratesCalico(d, prefix)
	if err != nil || migrates || !definesCalico(d, prefix) {
		return err
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
		d.raise(key, codeCalicoEmpty, "%s of %s, and %s of %s", phrase.Count(left, "object"), calicoV3,
			phrase.Count(data, "object"), calicoV1)
	}
	return nil
}

// migratesCalico reports whether there is a possibly unfinished DatastoreMigration.
func migratesCalico(d *doctor, prefix string) (bool, error) {
	for e, err := range d.storage(prefix).Live(d.ctx, calicoMigrations, "") {
		if err != nil {
			return false, err
		}
		if phase, err := encoding.Get(e.Value, "status", "phase"); err != nil || phase != "Complete" {
			return true, nil
		}
	}
	return false, nil
}

const calicoMigrations = "datastoremigrations.migration.projectcalico.org"

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

// underWay reports whether a live migration has begun and is not complete. Calico acts only on one
// name.
func (m *calicoMigration) underWay() bool {
	switch m.Status.Phase {
	case "Complete":
		return false
	case "", "Pending", "Failed":
		return m.Name == "v1-to-v3" && m.Status.LockedAt+m.Status.StartedAt != ""
	}
	return m.Name == "v1-to-v3"
}

// checkCalicoData looks for an emptied group of Calico, served by an APIService without a Service,
// or by a definition without an APIService.
func checkCalicoData(d *doctor) error {
	there := map[string]bool{} // by prefix
	for _, s := range d.apiServices {
		there[s.Prefix] = there[s.Prefix] || s.Name == calicoAPIService
		if s.Name == calicoAPIService && s.Spec.Service == nil {
			if err := checkEmptied(d, s.Prefix, s.entry.Key); err != nil {
				return err
			}
		}
	}
	for at, def := range d.definitions.all() {
		if at.resource.Group == calicoV3 && at.resource.Resource == "clusterinformations" && !there[at.prefix] {
			if err := checkEmptied(d, at.prefix, def.entry.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCalico reports a live migration under way, or otherwise a lock that no migration releases.
func checkCalico(d *doctor) error {
	for _, s := range d.layouts.Storages() {
		underWay := false
		err := machines.Each(d.ctx, d.storage(s.Prefix), calicoMigrations, "",
			func(e *inspect.Entry, m *calicoMigration) error {
				if !m.underWay() {
					return nil
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
				return nil
			})
		if err != nil {
			return err
		}
		if underWay {
			continue
		}
		if err := checkCalicoLocks(d, s.Prefix); err != nil {
			return err
		}
	}
	return nil
}

// checkCalicoLocks reports ClusterInformations that are not ready. A migration leaves the old
// group's object locked once the new one is ready.
func checkCalicoLocks(d *doctor, prefix string) error {
	var locked []*inspect.Entry
	for _, group := range []string{calicoV1, calicoV3} {
		for e, err := range d.storage(prefix).Live(d.ctx, "clusterinformations."+group, "") {
			if err != nil {
				return err
			}
			// undecodable values are reported elsewhere
			switch ready, _ := encoding.Get(e.Value, "spec", "datastoreReady"); ready {
			case true:
				return nil
			case false:
				locked = append(locked, e)
			}
		}
	}
	for _, e := range locked {
		d.raise(e.Key, codeCalicoLocked, "spec.datastoreReady is false, and no live migration is under way")
	}
	return nil
}
