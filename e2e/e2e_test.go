package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigrated: a migrated cluster is served whole, and the garbage collector has nothing to do.
func TestMigrated(t *testing.T) {
	t.Parallel() // servers wait more than they work
	for _, tc := range []struct {
		name     string
		snapshot func(t testing.TB) string
		flags    []string
		fresh    bool // UIDs
		more     func(t testing.TB, c *cluster)
	}{
		{name: "recorded", snapshot: func(t testing.TB) string { return snapshotOf(t, "before") }},
		{name: "new-uids", snapshot: func(t testing.TB) string { return snapshotOf(t, "before") }, flags: []string{"--uids", "new"}, fresh: true},
		{name: "manifest-install", snapshot: installed, more: requireRolling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := migrate(t, tc.snapshot(t), tc.flags...)
			c := startCluster(t, r.restore(t))
			served := c.requireServed(t)
			c.requireNoV1(t)
			r.requireUIDs(t, served, tc.fresh)
			c.requireOwners(t)
			require.Empty(t, c.collect(t), "nothing else writes to the cluster")
			if tc.more != nil {
				tc.more(t, c)
			}
			c.usePolicy(t)
			for plural, objects := range served {
				for i := range objects {
					c.useObject(t, plural, &objects[i])
				}
			}
		})
	}
}

// TestLiveMigration is the control: after Calico's own controller the same collector, watched in
// the same way, collects what was recorded. If it collected nothing, TestMigrated could not fail.
func TestLiveMigration(t *testing.T) {
	t.Parallel()
	data := restoreAsIs(t, snapshotOf(t, "after-cleanup"), "--bump-revision", "1000000000", "--mark-compacted")
	c := startCluster(t, data)
	c.requireServed(t)
	want := recordedCollection(t)
	require.Len(t, want, 5)
	require.Equal(t, want, c.collect(t))
}

// recordedCollection returns the recorded changes of the collector in the form of difference. Lines
// are "resource namespace name live owners", with "<" before the collection and ">" after it.
func recordedCollection(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "calico", "gc-after-real-controller.txt"))
	require.NoError(t, err)
	stored := map[string]string{
		"cm": "configmaps", "secret": "secrets", "networkpolicies.networking.k8s.io": "networkpolicies", "widgets.example.com": "example.com/widgets",
	}
	kept := make(map[string]bool)
	var before, out []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "<" && f[0] != ">" {
			continue
		}
		require.Contains(t, stored, f[1])
		key := "/registry/" + stored[f[1]] + "/" + f[2] + "/" + f[3]
		if f[0] == "<" {
			before = append(before, key)
		} else {
			kept[key] = true
		}
	}
	for _, key := range before {
		if kept[key] {
			out = append(out, "changed "+key)
		} else {
			out = append(out, "deleted "+key)
		}
	}
	sortChanges(out)
	return out
}
