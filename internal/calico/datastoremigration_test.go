package calico

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// TestMigrationRecorded: the live controller's own result, with its v1 records, is not a half-done
// migration.
func TestMigrationRecorded(t *testing.T) {
	r := planOn(t, recorded(t, "after.db"), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Contains(t, r.problems(), "warning migration-left "+migrationKey)
	require.Contains(t, strings.Join(r.byHand(), "\n"), "delete the finished DatastoreMigration v1-to-v3")

	// Without the object, the marks on v3 records give one warning for all of them.
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
