package compare_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestLaw: whatever a real etcd was asked to do, each step that is told did happen, in order; and
// between two of them did happen exactly what is said to be missing, and nothing where nothing is.
func TestLaw(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		server := etcdtest.Start(t, t.TempDir())
		dir := t.TempDir()
		happened := map[int64]compare.What{}
		var all []*inspect.Reader
		revision, compacted, live, before := int64(1), int64(1), false, false
		for i := range 60 {
			switch op := random.IntN(12); {
			case op < 6:
				etcdtest.Run(t, server, fmt.Sprintf("put k %d", i))
				revision++
				switch {
				case live:
					happened[revision] = compare.Updated
				case before:
					happened[revision] = compare.CreatedAgain
				default:
					happened[revision] = compare.Created
				}
				live, before = true, true
			case op < 8 && live:
				etcdtest.Run(t, server, "del k")
				revision++
				happened[revision], live = compare.Deleted, false
			case op < 9:
				etcdtest.Run(t, server, "put other x")
				revision++
			case op < 10 && revision > compacted:
				etcdtest.Run(t, server, "compact")
				compacted = revision
			default:
				path := filepath.Join(dir, fmt.Sprint(i))
				etcdtest.Save(t, server, path)
				all = append(all, open(t, path))
			}
		}
		for range 8 {
			var some []*inspect.Reader
			for _, s := range all {
				if random.IntN(2) == 0 {
					some = append(some, s)
				}
			}
			if len(some) > 0 {
				lawful(t, happened, some)
			}
		}
	}
}

func lawful(t *testing.T, happened map[int64]compare.What, sides []*inspect.Reader) {
	last := int64(0)
	for s, err := range compare.History(context.Background(), sides, []byte("k"), compare.Options{}) {
		require.NoError(t, err)
		to := s.Revision
		if s.What == compare.Gone {
			to = s.Missing.To
			require.True(t, s.Missing.Deleted && s.Missing.Perhaps)
		} else {
			require.Greater(t, to, last)
			want := happened[to]
			switch s.What {
			case compare.Oldest:
				require.Contains(t, []compare.What{compare.Updated}, want)
			case compare.Created, compare.CreatedAgain:
				require.NotEqual(t, compare.Deleted, want, "%d", to)
			default:
				require.Equal(t, s.What, want, "%d", to)
			}
		}
		between := map[compare.What]int64{}
		for revision := last + 1; revision < to; revision++ {
			if what, did := happened[revision]; did {
				between[what]++
			}
		}
		checkMissing(t, s, last, between)
		last = to
	}
}

// checkMissing holds what is said to be missing against what did happen.
func checkMissing(t *testing.T, s *compare.Step, last int64, between map[compare.What]int64) {
	m := s.Missing
	total := between[compare.Created] + between[compare.CreatedAgain] + between[compare.Updated] + between[compare.Deleted]
	switch {
	case m == nil && last == 0: // a first creation: earlier lives are not known of
	case m == nil:
		require.Zero(t, total, "%d after %d", s.Revision, last)
	case m.Perhaps || last == 0:
		require.GreaterOrEqual(t, between[compare.Updated], m.Updates)
		if m.Deleted {
			require.Positive(t, between[compare.Deleted])
		}
	default:
		said := m.Updates
		if m.Deleted {
			said++
		}
		if m.Created > 0 {
			said++
		}
		require.Equal(t, said, total, "%+v", *m)
	}
}
