package calico

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

const migrationKey = "/registry/migration.projectcalico.org/datastoremigrations/v1-to-v3"

func migrationObject(t *testing.T, name string, status map[string]any) []byte {
	obj := map[string]any{
		"apiVersion": "migration.projectcalico.org/v1", "kind": "DatastoreMigration",
		"metadata": map[string]any{"name": name, "uid": "9387484f-78ef-4304-95a0-5349c48164fb"},
		"spec":     map[string]any{"type": "APIServerToCRDs"},
	}
	if status != nil {
		obj["status"] = status
	}
	value, err := json.Marshal(obj)
	require.NoError(t, err)
	return append(value, '\n')
}

// TestMigrationPhases: a live migration that has changed anything and is not complete refuses the
// run.
func TestMigrationPhases(t *testing.T) {
	const at = "2026-11-20T19:28:38Z"
	for name, tc := range map[string]struct {
		status map[string]any
		error  bool
		says   string
	}{
		"new":                 {nil, false, "has not begun"},
		"pending":             {map[string]any{"phase": "Pending"}, false, "has not begun"},
		"pending, locked":     {map[string]any{"phase": "Pending", "datastoreLockedAt": at, "message": "Draining"}, true, "(Draining)"},
		"migrating":           {map[string]any{"phase": "Migrating", "startedAt": at}, true, "let it come to Complete, or delete"},
		"waiting":             {map[string]any{"phase": "WaitingForConflictResolution", "datastoreLockedAt": at}, true, "WaitingForConflictResolution"},
		"converged":           {map[string]any{"phase": "Converged", "startedAt": at}, true, "let it come to Complete, then"},
		"failed":              {map[string]any{"phase": "Failed"}, false, `phase "Failed" has not begun`},
		"failed after start":  {map[string]any{"phase": "Failed", "startedAt": at}, true, "Failed"},
		"complete":            {map[string]any{"phase": "Complete", "startedAt": at, "completedAt": at}, false, "is complete"},
		"a phase of tomorrow": {map[string]any{"phase": "Verifying"}, true, "Verifying"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.put(migrationKey, migrationObject(t, "v1-to-v3", tc.status))
			r := planOn(t, in.write(), planFunc(preflighting))
			code := codeMigrationLeft.Name
			if tc.error {
				code = codeHalfDoneMigration.Name
				require.ErrorIs(t, r.err, transform.ErrRefused)
			} else {
				require.NoError(t, r.err)
			}
			require.Contains(t, r.reason(t, code, migrationKey), tc.says)
			require.Len(t, r.Problems, 2, "and rbac-unknown")
		})
	}
}

func TestMigrationBeingAborted(t *testing.T) {
	in := newInput(t)
	in.put(migrationKey, migrationObject(t, "v1-to-v3", map[string]any{"phase": "Migrating"}))
	in.edit(migrationKey, func(obj map[string]any) { set(obj, "metadata.deletionTimestamp", "2026-11-20T19:28:38Z") })
	other := "/registry/migration.projectcalico.org/datastoremigrations/mine"
	in.put(other, migrationObject(t, "mine", map[string]any{"phase": "Migrating"}))
	broken := "/registry/migration.projectcalico.org/datastoremigrations/broken"
	in.put(broken, []byte("{"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.Contains(t, r.reason(t, codeHalfDoneMigration.Name, migrationKey), "being aborted: let it end")
	require.Contains(t, r.reason(t, codeMigrationLeft.Name, other), "this one does nothing")
	require.NotEmpty(t, r.reason(t, finding.Undecodable.Name, broken))
}

// TestMigrationRecorded: the live controller's own result, v1 records still there, is no half-done
// migration.
func TestMigrationRecorded(t *testing.T) {
	r := planOn(t, recorded(t, "after.db"), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Contains(t, r.problems(), "warning migration-left "+migrationKey)
	require.Contains(t, strings.Join(r.byHand(), "\n"), "delete the finished DatastoreMigration v1-to-v3")

	// Without the object the marks it left on v3 records tell, once for all of them.
	in := &input{t: t, from: recorded(t, "after.db")}
	in.del(migrationKey)
	r = planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	marked := 0
	for _, p := range r.Problems {
		if p.Code.Name == codeMigrationLeft.Name {
			marked++
			require.Contains(t, p.Reason, "63 v3 records, this one first")
			require.Contains(t, p.Reason, "9387484f-78ef-4304-95a0-5349c48164fb")
		}
	}
	require.Equal(t, 1, marked)
}

// TestLockedAlone: a locked v1 datastore is no sign of a running migration; an aborted one leaves
// it so.
func TestLockedAlone(t *testing.T) {
	in := newInput(t)
	in.edit(v1Dirs+"clusterinformations/default", func(obj map[string]any) { set(obj, "spec.datastoreReady", false) })
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-unknown "}, r.problems())
}
