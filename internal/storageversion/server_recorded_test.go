package storageversion_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/transform"
)

// recorded unpacks a recorded snapshot.
func recorded(t *testing.T, name string) string {
	return etcdtest.Unpack(t, filepath.Join("..", "..", "testdata", "storage", name+".gz"))
}

// written returns the expected value of an object from encoding/schema's test data: NAME.pure,
// NAME.settled.
func written(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "encoding", "schema", "testdata", "cr", name))
	require.NoError(t, err)
	return string(data)
}

// TestServerRecorded checks snapshots recorded from an earlier server.
func TestServerRecorded(t *testing.T) {
	t.Parallel()
	widgets := shapes()[0]
	names := []string{"elide", "jsonpatch", "patch-empty", "put-alpha", "put-beta", "raw1", "ssa-empty", "ssa-owned",
		"status-put", "untouched"}
	t.Run("before", func(t *testing.T) {
		_, r := migrate(t, recorded(t, "before.db"), storageversion.Options{}, "pruned-field")
		k := resource(t, r, widgets.crdName())
		require.Equal(t, oldName, k.StorageVersion)
		require.Equal(t, []int{1, 9}, []int{k.Rewritten, k.Unchanged}, "raw1 was put by hand")
	})
	t.Run("flipped", func(t *testing.T) {
		path := recorded(t, "flipped.db")
		r, err := transform.Run(t.Context(), transform.Options{In: path, Out: filepath.Join(t.TempDir(), "refused.db")},
			storageversion.New(storageversion.Options{}))
		require.ErrorIs(t, err, transform.ErrRefused)
		for _, p := range r.Problems {
			if p.Level == finding.Error {
				require.Equal(t, "pruned-field", p.Code.Name)
				want := "spec.oldOnly"
				if p.Key == widgets.key("raw1") {
					want = "spec.unknownField"
				}
				require.Contains(t, p.Reason, want, p.Key)
			}
		}
		pure, _ := migrate(t, path, storageversion.Options{Mode: schema.Pure, KeepManagedFields: true}, "pruned-field")
		inPure := values(t, pure)
		kept, _ := migrate(t, path, storageversion.Options{KeepManagedFields: true}, "pruned-field")
		inKept := values(t, kept)
		for _, name := range names {
			key := widgets.key(name)
			if name != "elide" && name != "untouched" {
				require.Equal(t, written(t, name+".pure"), inPure[key], name)
			}
			require.Equal(t, written(t, name+".settled"), inKept[key], name)
		}
		// the server's values after one request
		for _, name := range []string{"ssa-empty", "status-put", "put-alpha"} {
			require.Equal(t, written(t, name+".after"), inPure[widgets.key(name)], name)
		}
		serveRecorded(t, path, names, map[string]int{oldName: 10}, 10)
	})
	t.Run("trimmed", func(t *testing.T) {
		// raw1 was PUT, and has no managedFields
		serveRecorded(t, recorded(t, "trimmed.db"), names, map[string]int{oldName: 2, newName: 8}, 9)
	})
}

// serveRecorded migrates a recorded snapshot and uses the result.
func serveRecorded(t *testing.T, path string, names []string, found map[string]int, rewritten int) {
	t.Helper()
	s := shapes()[0]
	before := values(t, path)
	out, r := migrate(t, path, storageversion.Options{}, "pruned-field")
	k := resource(t, r, s.crdName())
	require.Equal(t, found, k.Found)
	require.Equal(t, []int{rewritten, 0}, []int{k.Rewritten, k.Refused})
	require.Equal(t, []string{newName}, k.StoredVersions.After)
	c := restore(t, out)
	defer c.close()
	for _, name := range names {
		value, _ := c.record(t, s.key(name))
		same := written(t, name+".settled")
		// the object keeps the generation from a PUT
		if strings.Contains(before[s.key(name)], group+`/v1beta1","kind":"Widget"`) {
			require.Equal(t, without(t, same, "managedFields", "generation"),
				without(t, value, "managedFields", "generation"), name)
		} else {
			require.Equal(t, without(t, same, "managedFields"), without(t, value, "managedFields"), name)
		}
		c.elides(t, s, name)
	}
	require.NoError(t, c.dropVersion(t, s.crdName(), oldName))
	list, err := c.of(s, newName).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, len(names))
	body := s.bare(newName, "ssa-owned")
	body["spec"] = map[string]any{"size": int64(5)}
	obj, err := apply(t, c.of(s, newName), "gitops", body)
	require.NoError(t, err)
	require.NotContains(t, obj.Object["spec"], "text", "its owner stopped applying it")
	require.NoError(t, c.of(s, newName).Delete(t.Context(), "raw1", metav1.DeleteOptions{}))
}
