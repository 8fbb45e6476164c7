package e2e

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHashedNames checks that a recorded cluster with hashed names passes a rehearsal: all objects
// are served and written, and the garbage collector deletes nothing.
func TestHashedNames(t *testing.T) {
	t.Parallel()
	in := snapshotOf(t, "before")
	r := runMigration(t, "sanitize", in)
	out, err := os.ReadFile(r.path)
	require.NoError(t, err)
	require.False(t, bytes.Contains(out, []byte("team-a")))
	requireRehearsed(t, r.path)
}
