package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reported unpacks a snapshot of testdata/reports.
func reported(t testing.TB, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name+".db")
	unzip(t, filepath.Join("..", "testdata", "reports", name+".db.gz"), path)
	return path
}

// everyAPI serves the resources of all versions.
const everyAPI = "--runtime-config=api/all=true"

// TestNatives checks that objects of built-in kinds at old versions, which stop a server or are
// stored differently, get the bytes of an update without changes: for the release of the server,
// and for an older one.
func TestNatives(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"1.36", "1.34"} {
		for _, name := range []string{"p2-removed-pb", "old1-natural", "hpa1-stored-v1"} {
			t.Run(release+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := runMigration(t, "migrate storage-versions", reported(t, name), "--kubernetes", release)
				require.NotEmpty(t, r.Kinds)
				c := startCluster(t, r.restore(t), everyAPI, "--emulated-version="+release)
				before := c.store.waitQuiet(t)
				updated := c.updateAll(t)
				require.Greater(t, updated, len(r.Kinds))
				require.Empty(t, differing(before, c.store.records(t)))
			})
		}
	}
}

// TestNativesLeft is the control: without the migration, updates without changes write.
func TestNativesLeft(t *testing.T) {
	t.Parallel()
	c := startCluster(t, restoreAsIs(t, reported(t, "hpa1-stored-v1")), everyAPI)
	before := c.store.waitQuiet(t)
	c.updateAll(t)
	require.NotEmpty(t, differing(before, c.store.records(t)))
}

// differing is difference without Namespaces, to which admission adds a label, and without
// CSINodes, which have an empty status since Kubernetes 1.37.
func differing(before, after map[string]record) []string {
	return slices.DeleteFunc(difference(before, after), func(change string) bool {
		return strings.HasPrefix(change, "changed /registry/namespaces/") ||
			strings.HasPrefix(change, "changed /registry/csinodes/")
	})
}

// updateAll updates every object without a change, and returns their number. Lists of all kinds
// succeed.
func (c *cluster) updateAll(t testing.TB) (updated int) {
	t.Helper()
	for _, kind := range c.kinds(t) {
		if !kind.listed || !kind.updated {
			continue
		}
		list, err := c.client(kind.GroupVersionResource, "").List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err, kind)
		for i := range list.Items {
			o := &list.Items[i]
			in := c.client(kind.GroupVersionResource, o.GetNamespace())
			if _, err := in.Update(context.Background(), o, metav1.UpdateOptions{}); err != nil {
				t.Logf("%s %s: %v", kind.GroupVersionResource, o.GetName(), err)
				continue
			}
			updated++
		}
	}
	return updated
}
