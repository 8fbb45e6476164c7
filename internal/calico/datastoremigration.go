package calico

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// Traces of Calico's own migration on a live cluster (kube-controllers/pkg/controllers/migration).
const (
	groupMigration       = "migration.projectcalico.org"
	migrationName        = "v1-to-v3" // the only name on which the controller acts
	migratedByAnnotation = "migration.projectcalico.org/migrated-by"
	lockedByAnnotation   = "migration.projectcalico.org/locked-by"        // on an existing v3 ClusterInformation
	savedAPIService      = "migration.projectcalico.org/saved-apiservice" // on the DatastoreMigration
)

// checkMigration refuses a snapshot taken during the live migration: the v3 records are incomplete,
// and the controller would continue after the restore. A migration not begun or complete does no
// harm. A locked v1 datastore alone proves nothing: aborted migrations leave it locked.
func (s *crdSet) checkMigration() error {
	known := map[string]bool{} // UIDs
	err := s.eachMigration(func(key string, live migration) {
		known[live.meta.UID] = true
		live.check(s.View, key)
	})
	if err != nil || s.records == 0 { // a finished migration leaves its marks forever
		return err
	}
	return s.checkMarks(known)
}

// eachMigration calls do for each DatastoreMigration, and reports unreadable ones.
func (s *store) eachMigration(do func(key string, live migration)) error {
	return s.each(s.keys.Dir(migrations()), func(entry *transform.Entry) error {
		meta, err := encoding.ReadMeta(entry.Value)
		obj, _, badObject := encoding.DecodeObject(entry.Value)
		if err = cmp.Or(err, badObject); err != nil {
			s.Raise(string(entry.Key), transform.Unreadable(err))
			return nil
		}
		status := objectAt(obj, "status")
		do(string(entry.Key), migration{meta, text(status, "phase"), status})
		return nil
	})
}

func migrations() schema.GroupResource {
	return schema.GroupResource{Group: groupMigration, Resource: "datastoremigrations"}
}

// migration is a DatastoreMigration.
type migration struct {
	meta   encoding.Meta
	phase  string
	status map[string]any
}

func (m migration) deleting() bool { return !m.meta.DeletionTimestamp.IsZero() }

// check reports one DatastoreMigration. Calico's phases are none, Pending, Migrating,
// WaitingForConflictResolution, Converged, Complete and Failed.
func (m migration) check(v *transform.View, key string) {
	switch {
	case m.meta.Name != migrationName:
		v.Raise(key, codeMigrationLeft.Because("Calico acts on a DatastoreMigration named %s only; this one "+
			"does nothing", migrationName))
	case m.phase == "Complete":
		reason := "the live migration is complete; its v3 records are used as they are"
		if m.deleting() {
			reason = "the live migration is complete, and its clean-up was removing the v1 CRDs"
		}
		v.Raise(key, codeMigrationLeft.Because("%s", reason))
		v.Report().AddStep("delete the finished DatastoreMigration %s when all is well: while v1 CRDs are there, its "+
			"deletion removes them and their records",
			m.meta.Name)
	case m.underWay():
		v.Raise(key, codeHalfDoneMigration.Because("%s", m.halfDone()))
	default:
		v.Raise(key, codeMigrationLeft.Because("a DatastoreMigration in phase %q has not begun; it would when "+
			"Calico starts", m.phase))
		v.Report().AddStep("after the restore, delete DatastoreMigration %s before kube-controllers starts: its "+
			"work is done", m.meta.Name)
	}
}

// underWay reports whether the live migration has changed anything yet.
func (m migration) underWay() bool {
	switch m.phase {
	case "", "Pending", "Failed":
		return text(m.status, "datastoreLockedAt") != "" || text(m.status, "startedAt") != ""
	}
	return true
}

func (m migration) halfDone() string {
	at, advice := fmt.Sprintf("%q", m.phase),
		": let it come to Complete, or delete the DatastoreMigration to abort it (or --abort does so in this file)"
	if message := text(m.status, "message"); message != "" {
		at += fmt.Sprintf(" (%.300s)", message)
	}
	switch {
	case m.deleting():
		advice = ", and being aborted: let it end"
	case m.phase == "Converged":
		advice = ": let it come to Complete"
	}
	return "the live migration is under way, in phase " + at + advice + ", then take a new snapshot"
}

// checkMarks warns of v3 records from a live migration without any other trace.
func (s *crdSet) checkMarks(known map[string]bool) error {
	marked, first, by := 0, "", ""
	for _, kd := range s.kinds {
		err := s.each(s.keys.Dir(kd.v3()), func(entry *transform.Entry) error {
			meta, _ := encoding.ReadMeta(entry.Value) // an error is reported during the comparison
			mark := meta.Annotations[migratedByAnnotation]
			if mark == "" || known[mark] {
				return nil
			}
			if marked++; marked == 1 {
				first, by = string(entry.Key), mark
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if marked > 0 {
		s.Raise(first, codeMigrationLeft.Because("%d v3 records, this one first, were made by a live migration (%s) "+
			"that is not in the snapshot: "+
			"it was aborted, or its DatastoreMigration was removed by force", marked, by))
	}
	return nil
}
