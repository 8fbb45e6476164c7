package calico

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// What Calico's own migration on a live cluster leaves in it (kube-controllers/pkg/controllers/migration).
const (
	groupMigration       = "migration.projectcalico.org"
	migrationName        = "v1-to-v3" // the only one the controller acts on
	migratedByAnnotation = "migration.projectcalico.org/migrated-by"
)

// checkMigration refuses a snapshot taken while the live migration was under way: its v3 records are a part of the whole,
// and its controller would go on when it starts again. One that has not begun or is complete does no harm by itself. A
// locked v1 datastore alone is no sign: aborted migrations leave it so.
func (m *run) checkMigration(ctx context.Context) error {
	known := map[string]bool{} // UIDs
	for entry, err := range m.view.Live(ctx, m.keys.Dir(schema.GroupResource{Group: groupMigration, Resource: "datastoremigrations"})) {
		if err != nil {
			return err
		}
		found, err := readMigration(entry.Value)
		if err != nil {
			m.view.Raise(string(entry.Key), transform.Unreadable(err))
			continue
		}
		known[found.uid] = true
		found.judge(m.view, string(entry.Key))
	}
	if m.crds.records == 0 {
		return nil // a finished migration leaves its marks for ever
	}
	return m.checkMarks(ctx, known)
}

// migration is what matters of a DatastoreMigration.
type migration struct {
	name, uid        string
	phase, message   string
	locked, started  bool // it has locked the v1 datastore; it has begun to copy
	deleting, holder bool // it is being deleted; it has the finalizer that removes the v1 CRDs
}

func readMigration(value []byte) (m migration, err error) {
	meta, err := encoding.ReadMeta(value)
	if err != nil {
		return m, err
	}
	obj, _, err := encoding.DecodeObject(value)
	if err != nil {
		return m, err
	}
	status, _ := obj["status"].(map[string]any)
	return migration{
		name: meta.Name, uid: meta.UID,
		phase: text(status, "phase"), message: text(status, "message"),
		locked: text(status, "datastoreLockedAt") != "", started: text(status, "startedAt") != "",
		deleting: !meta.DeletionTimestamp.IsZero(), holder: len(meta.Finalizers) > 0,
	}, nil
}

// judge reports one DatastoreMigration. Calico's phases are Pending, Migrating, WaitingForConflictResolution, Converged,
// Complete and Failed; no phase is the one before Pending.
func (m migration) judge(v *transform.View, key string) {
	switch {
	case m.name != migrationName:
		v.Raise(key, codeMigrationLeft.Because("Calico acts on a DatastoreMigration named %s only; this one does nothing", migrationName))
	case m.phase == "Complete":
		v.Raise(key, codeMigrationLeft.Because("%s", m.complete()))
		v.Report().AddStep("delete the finished DatastoreMigration %s when all is well: while v1 CRDs are there, its deletion removes them and their records", m.name)
	case m.underWay():
		v.Raise(key, codeHalfDoneMigration.Because("%s", m.halfDone()))
	default:
		v.Raise(key, codeMigrationLeft.Because("a DatastoreMigration in phase %q has not begun; it would when Calico starts", m.phase))
		v.Report().AddStep("after the restore, delete DatastoreMigration %s before kube-controllers starts: its work is done", m.name)
	}
}

// underWay says whether the live migration has changed anything yet.
func (m migration) underWay() bool {
	switch m.phase {
	case "", "Pending", "Failed":
		return m.locked || m.started
	}
	return true
}

func (m migration) complete() string {
	if m.deleting {
		return "the live migration is complete, and its clean-up was removing the v1 CRDs"
	}
	return "the live migration is complete; its v3 records are taken for what they are"
}

func (m migration) halfDone() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the live migration is under way, in phase %q", m.phase)
	if m.message != "" {
		fmt.Fprintf(&b, " (%.300s)", m.message)
	}
	switch {
	case m.deleting:
		b.WriteString(", and being aborted: let it end")
	case m.phase == "Converged":
		b.WriteString(": let it come to Complete")
	default:
		b.WriteString(": let it come to Complete, or delete the DatastoreMigration to abort it")
	}
	b.WriteString(", then take a new snapshot")
	return b.String()
}

// checkMarks warns of v3 records that were made by a live migration of which nothing else is left.
func (m *run) checkMarks(ctx context.Context, known map[string]bool) error {
	marked, first, by := 0, "", ""
	for _, kd := range kinds() {
		for entry, err := range m.view.Live(ctx, m.keys.Dir(kd.v3())) {
			if err != nil {
				return err
			}
			meta, err := encoding.ReadMeta(entry.Value)
			if err != nil {
				continue // reported where it is compared
			}
			mark := meta.Annotations[migratedByAnnotation]
			if mark == "" || known[mark] {
				continue
			}
			if marked++; marked == 1 {
				first, by = string(entry.Key), mark
			}
		}
	}
	if marked > 0 {
		m.view.Raise(first, codeMigrationLeft.Because("%d v3 records, this one first, were made by a live migration (%s) that is not in the snapshot: one that was aborted, or whose DatastoreMigration was removed by force", marked, by))
	}
	return nil
}
