package salvage

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// must returns a function that returns v, or fails the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// open opens a snapshot for the time of the test.
func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s := must(snapshot.Open(t.Context(), path, snapshot.Config{}))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// findings returns the errors of Verify.
func findings(t testing.TB, s *snapshot.Snapshot) []error {
	return slices.Collect(snapshot.Verify(t.Context(), s))
}

// liveAt returns the live records at a revision, by key.
func liveAt(t testing.TB, s *snapshot.Snapshot, revision int64) (all []snapshot.Record) {
	t.Helper()
	for rec, err := range s.LiveAt(t.Context(), nil, revision) {
		require.NoError(t, err)
		one := *rec
		one.Key, one.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b snapshot.Record) int { return bytes.Compare(a.Key, b.Key) })
	return all
}

// event is a change of a recorded cluster.
type event etcdtest.Event

// eventsOf returns all events of a recorded cluster, by revision.
func eventsOf(t testing.TB, name string) map[snapshot.Revision]event {
	t.Helper()
	all := map[snapshot.Revision]event{}
	for _, e := range etcdtest.Events(t, name) {
		all[snapshot.Revision{Main: e.Rev, Sub: e.Sub}] = event(e)
	}
	return all
}

// entry returns the revision key and the KeyValue of the event.
func (e event) entry() string {
	rec := mvcc.Record{Revision: mvcc.Revision{Main: e.Rev, Sub: e.Sub}, Tombstone: e.Del, Key: []byte(e.Key),
		Value: e.Value, CreateRevision: e.Create, ModRevision: e.Rev, Version: e.Version, Lease: e.Lease}
	el := new(mvcc.Encoder).Element(&rec)
	return string(el.Key) + string(el.Value)
}
