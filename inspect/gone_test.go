package inspect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// What is deleted is handed out as it was, in the order of the deletions; what was made again is
// not deleted.
func TestDeletedObjects(t *testing.T) {
	ctx := context.Background()
	path := etcdtest.Build(t, `
put /registry/namespaces/default "{}"
put /registry/pods/a/one "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"one\"}}"
put /registry/pods/a/two "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"two\"}}"
put /registry/pods/b/three "broken"
put /registry/podtemplates/a/x "{}"
del /registry/pods/b/three
del /registry/pods/a/one
del /registry/pods/a/two
del /registry/podtemplates/a/x
put /registry/pods/a/two "{}"
`)
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := NewReader(s, nil)
	types, err := r.Types(ctx)
	require.NoError(t, err)
	list := func(in Selection) (names []string, revisions []int64) {
		for o, err := range r.DeletedObjects(ctx, types.Of(gvr.GroupResource{Resource: "pods"}), in) {
			require.NoError(t, err)
			if o.Parsed.Name == "three" {
				require.Error(t, o.Err)
				require.Nil(t, o.Content)
			} else {
				require.NoError(t, o.Err)
				require.Equal(t, map[string]any{"name": o.Parsed.Name, "resourceVersion": "3"}, o.Content["metadata"])
			}
			names, revisions = append(names, o.Parsed.Name), append(revisions, o.Revision)
		}
		return names, revisions
	}
	names, revisions := list(Selection{})
	require.Equal(t, []string{"three", "one"}, names)
	require.Equal(t, []int64{7, 8}, revisions)
	names, _ = list(Selection{Namespace: "b"})
	require.Equal(t, []string{"three"}, names)
}
