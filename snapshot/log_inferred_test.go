package snapshot

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// truthAt returns the revisions of the keys that exist after each of some events, in order.
func truthAt(truth map[Revision]event) func(revision int64) map[string]int64 {
	all := slices.SortedFunc(maps.Keys(truth), Revision.Compare)
	return func(revision int64) map[string]int64 {
		keys := map[string]int64{}
		for _, rev := range all {
			if e := truth[rev]; rev.Main > revision {
				break
			} else if delete(keys, e.Key); !e.Del {
				keys[e.Key] = rev.Main
			}
		}
		return keys
	}
}

// TestInferredHistory begins a recorded log at many entries, and compares all records and states of
// its history with all events of a watch.
func TestInferredHistory(t *testing.T) {
	truth := eventsOf(t, "kube37.truth.jsonl.gz")
	whole := etcdtest.RecordedMember(t, "kube37")
	stateAt := truthAt(truth)
	existed := func(key string, revision int64) bool {
		is := false
		for rev, e := range truth {
			if e.Key == key && !e.Del && rev.Main <= revision {
				is = true
			}
		}
		return is
	}
	var sure, flagged, lowered int
	const step = 50
	for first := uint64(17); first < 2760; first += step {
		dir := etcdtest.CutLog(t, whole, first)
		s, res, err := withHistory(t, dir, nil)
		require.NoError(t, err, "entry %d", first)
		in := res.Inferred
		require.NotNil(t, in)
		require.Zero(t, in.Unfindable)
		sure, flagged = sure+in.Sure, flagged+in.Flagged
		for rec, err := range s.Records(t.Context()) {
			require.NoError(t, err)
			want, is := truth[rec.Revision]
			require.True(t, is, rec.Revision)
			want.requireEqual(t, rec)
		}
		removed := must(s.removed(t.Context()))(t)
		require.Len(t, removed.found, in.FreePages)
		for i := range removed.found {
			var rec Record
			require.NoError(t, removed.at(i, &rec))
			want := truth[rec.Revision]
			if rec.Version == 0 { // unknown
				rec.Version, rec.CreateRevision = want.Version, want.Create
			}
			want.requireEqual(t, &rec)
		}
		oldest, newest, err := s.Kept(t.Context())
		require.NoError(t, err)
		if oldest < 2607 {
			lowered++
		}
		for _, rev := range []int64{oldest, oldest + 1, (oldest + newest) / 2, newest} {
			have := map[string]int64{}
			for rec, err := range s.LiveAt(t.Context(), nil, rev) {
				require.NoError(t, err)
				have[string(rec.Key)] = rec.ModRevision
			}
			require.Equal(t, stateAt(rev), have, "entry %d, revision %d", first, rev)
		}
		for _, u := range in.Unknown {
			require.True(t, existed(u.Key, u.Until-1), u.Key)
		}
		require.Empty(t, findings(t, s))
	}
	t.Logf("%d writes sure, %d not; the compact revision of %d histories is lower", sure, flagged, lowered)
	require.Greater(t, sure, 40*flagged)
	require.NotZero(t, lowered)
}

// TestInferredRefused cuts the log of requests with effects that are not inferred, and interrupts a
// run.
func TestInferredRefused(t *testing.T) {
	_, _, err := withHistory(t, etcdtest.CutLog(t, etcdtest.RecordedMember(t, "crash36"), 4010), nil)
	require.ErrorIs(t, err, ErrLogHistory)
	require.ErrorContains(t, err, "entry 4015 has a transaction within a transaction")

	s := open(t, etcdtest.RecordedMember(t, "kube37-purged"))
	h := &logHistory{end: s.directory.Entry, x: must(s.index(t.Context()))(t)}
	h.log = must(wal.Scan(t.Context(), s.logFolder, 0))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.infer(ctx, s)
	require.ErrorIs(t, err, context.Canceled)
}
