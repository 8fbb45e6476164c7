package snapshot

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// event is a change of a recorded cluster.
type event etcdtest.Event

// eventsOf returns all events of a recorded cluster, by revision.
func eventsOf(t testing.TB, name string) map[Revision]event {
	t.Helper()
	all := map[Revision]event{}
	for _, e := range etcdtest.Events(t, name) {
		all[Revision{Main: e.Rev, Sub: e.Sub}] = event(e)
	}
	return all
}

func (e event) requireEqual(t testing.TB, r *Record) {
	t.Helper()
	require.Equal(t, e.Key, string(r.Key), r.Revision)
	require.Equal(t, e.Del, r.Tombstone, r.Revision)
	require.Equal(t, string(e.Value), string(r.Value), r.Revision)
	require.Equal(t, []int64{e.Create, e.Version, e.Lease}, []int64{r.CreateRevision, r.Version, r.Lease}, r.Revision)
}

// TestRemovedAreTrue compares the records found in the free pages of a snapshot with all events of
// its cluster.
func TestRemovedAreTrue(t *testing.T) {
	ctx := context.Background()
	events := eventsOf(t, "kube37.truth.jsonl.gz")
	path := etcdtest.Unpack(t, filepath.Join("..", "testdata", "wal", "kube37.snapshot.db.gz"))
	s := must(Open(ctx, path, Config{FreePages: true}))(t)
	defer s.Close()
	seen, removed, last := map[Revision]bool{}, 0, Revision{}
	for r, err := range s.Records(ctx) {
		require.NoError(t, err)
		require.Positive(t, r.Revision.Compare(last))
		last = r.Revision
		events[r.Revision].requireEqual(t, r)
		if seen[r.Revision] = true; r.FreePage {
			removed++
		}
	}
	require.Equal(t, 1973, removed)
	require.Len(t, seen, 1973+must(s.Status(ctx))(t).Records)
	for r, err := range s.History(ctx, []byte("/registry/configmaps/shop-10/cm1")) {
		require.NoError(t, err)
		require.True(t, r.FreePage)
		break // a reader may stop
	}
	for r := range must(Open(ctx, path, Config{}))(t).Records(ctx) {
		require.False(t, r.FreePage)
	}
	for d, err := range s.Deleted(ctx, nil) {
		require.NoError(t, err)
		require.Nil(t, get(t, s, string(d.Key)))
		if d.Revision.Main > 0 {
			require.True(t, events[d.Revision].Del)
			require.Equal(t, string(d.Key), events[d.Revision].Key)
		}
		if d.Last != nil {
			events[d.Last.Revision].requireEqual(t, d.Last)
			require.True(t, d.Revision.Main == 0 || d.Last.Revision.Compare(d.Revision) < 0)
		}
	}
}
