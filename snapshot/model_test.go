package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// life is the model of one key: its records, oldest first.
type life []Record

// store is the model of a whole history: the content of a server.
type store struct {
	rev   int64
	lives map[string]life
}

func (st *store) live(key string) *Record {
	l := st.lives[key]
	if len(l) == 0 || l[len(l)-1].Tombstone {
		return nil
	}
	return &l[len(l)-1]
}

// apply makes one write according to etcd's documentation and returns the change that plans the
// write.
func (st *store) apply(key, value string, deleted bool, lease int64) Change {
	c := Change{Key: []byte(key), Value: []byte(value), Delete: deleted, Lease: lease}
	old := st.live(key)
	if old != nil {
		c.Prior = old.ModRevision
	}
	if deleted && old == nil {
		return c
	}
	st.rev++
	rec := Record{Revision: Revision{Main: st.rev}, Key: []byte(key), Tombstone: deleted}
	if !deleted {
		rec.CreateRevision, rec.ModRevision, rec.Version, rec.Lease = st.rev, st.rev, 1, lease
		if value != "" {
			rec.Value = []byte(value)
		}
		if old != nil {
			rec.CreateRevision, rec.Version = old.CreateRevision, old.Version+1
		}
	}
	st.lives[key] = append(st.lives[key], rec)
	return c
}

// equals compares all three ways of reading, and the counts, with the model.
func (st *store) equals(t testing.TB, s *Snapshot) {
	t.Helper()
	ctx := context.Background()
	rev := must(s.Revision(ctx))(t)
	require.Equal(t, st.rev, rev)
	live := map[string]Record{}
	before := Revision{}
	for rec, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		require.Negative(t, before.Compare(rec.Revision), "in revision order")
		before = rec.Revision
		live[string(rec.Key)] = *rec
	}
	alive, tombstones := 0, 0
	for key, l := range st.lives {
		want := st.live(key)
		got := must(s.Get(ctx, []byte(key)))(t)
		require.Equal(t, want, got, "%q", key)
		if want != nil {
			alive++
			require.Equal(t, *want, live[key])
		}
		var history life
		for rec, err := range s.History(ctx, []byte(key)) {
			require.NoError(t, err)
			history = append(history, *rec)
			if rec.Tombstone {
				tombstones++
			}
		}
		require.Equal(t, l, history)
	}
	require.Len(t, live, alive)
	st.equalsBelow(t, s, live)
	st2 := must(s.Status(ctx))(t)
	require.Equal(t, []int{alive, tombstones}, []int{st2.Keys, st2.Tombstones})
	require.Empty(t, findings(t, s))
}

// equalsBelow compares the scan of some prefixes with the keys of the model.
func (st *store) equalsBelow(t testing.TB, s *Snapshot, live map[string]Record) {
	t.Helper()
	for _, prefix := range []string{"/", "/model", "/model/", "/model/1", "/model/x/", "/model/x/1", "/model/x/y/z/",
		"m", "/registry/configmaps/", "/none/of/them/"} {
		below := map[string]Record{}
		for key, rec := range live {
			if strings.HasPrefix(key, prefix) {
				below[key] = rec
			}
		}
		got := map[string]Record{}
		for rec, err := range s.Live(context.Background(), []byte(prefix)) {
			require.NoError(t, err)
			got[string(rec.Key)] = *rec
		}
		require.Equal(t, below, got, "%q", prefix)
	}
}

// baseStore reads the history of a snapshot into a model.
func baseStore(t testing.TB, s *Snapshot) *store {
	t.Helper()
	rev := must(s.Revision(context.Background()))(t)
	st := &store{rev: rev, lives: map[string]life{}}
	for rec, err := range s.Records(context.Background()) {
		require.NoError(t, err)
		st.lives[string(rec.Key)] = append(st.lives[string(rec.Key)], *rec)
	}
	return st
}

// randomWrites returns n writes of different keys: live, deleted and new ones.
func (st *store) randomWrites(r *rand.Rand, n int) (changes []Change) {
	var known []string
	for i := range 40 {
		forms := []string{"/model/%d", "/model/x/%d", "/model/x/y/z/%d", "m%d"}
		known = append(known, fmt.Sprintf(forms[i%4], i))
	}
	r.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	for _, key := range known[:min(n, len(known))] {
		sizes := []int{0, 1, 100, 3000, 5000, 70_000}
		value := strings.Repeat(string(rune('a'+r.IntN(26))), sizes[r.IntN(len(sizes))])
		changes = append(changes, st.apply(key, value, r.IntN(3) == 0, int64(r.IntN(2)*r.IntN(100))))
	}
	return changes
}

// runModel writes several times in succession and compares each output with the model.
func runModel(t *testing.T, seed uint64, path string) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := open(t, path)
	st := baseStore(t, s)
	for range 1 + r.IntN(3) {
		changes := st.randomWrites(r, r.IntN(40))
		out := filepath.Join(t.TempDir(), "out.db")
		res := must(Write(t.Context(), out, s, seq(changes...), WriteConfig{}))(t) // planned for the model
		require.Equal(t, st.rev, res.Revision)
		s = open(t, out)
		st.equals(t, s)
	}
}

// TestWriteIsTheModel runs random writes, on a store with records and on an empty one.
func TestWriteIsTheModel(t *testing.T) {
	bases := []string{copyOf(t, fixture(t)), copyOf(t, built(t, "")), copyOf(t, rebuilt(t, fixture(t), 1024, nil))}
	for _, path := range bases {
		untouched(t, path)
	}
	for seed := range uint64(64) {
		runModel(t, seed, bases[seed%3])
	}
}

// FuzzWriteIsTheModel is TestWriteIsTheModel with any number of seeds.
func FuzzWriteIsTheModel(f *testing.F) {
	path := copyOf(f, rebuilt(f, fixture(f), 1024, nil))
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { runModel(t, seed, path) })
}
