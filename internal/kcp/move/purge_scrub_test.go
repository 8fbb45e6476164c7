package move_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

var scrubbing = move.Purge{Name: consumer, Scrub: true}

// storyOf returns the recorded shard root after one Secret of consumer was overwritten and another
// deleted, and the same for other.
func storyOf(t *testing.T) (in string, texts []string) {
	t.Helper()
	var edits []edit
	for _, cluster := range []string{consumer, other} {
		for _, name := range []string{"sec", "gone"} {
			for i := range 3 {
				text := fmt.Sprintf("swordfish-%s-%s-%d", cluster, name, i)
				value := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"default"},"data":{"x":%q}}`, name, text)
				texts, edits = append(texts, text), append(edits, put(secrets+cluster+"/default/"+name, value))
			}
		}
		edits = append(edits, drop(secrets+cluster+"/default/gone"))
	}
	return root(t, edits...), texts
}

// records returns copies of all records of a file.
func records(t *testing.T, path string) (all []snapshot.Record) {
	t.Helper()
	for rec, err := range openFile(t, path).Records(t.Context()) {
		require.NoError(t, err)
		r := *rec
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		all = append(all, r)
	}
	return all
}

// requireNoRecord requires that a file has no record of the selected keys, of any revision.
func requireNoRecord(t *testing.T, path string, of func(key []byte) bool) {
	t.Helper()
	for _, rec := range records(t, path) {
		require.False(t, of(rec.Key), "%s", rec.Key)
	}
}

// TestNothingLeft checks that the file has no byte of a key or value of a scrubbed logical cluster,
// of any revision, and has the whole history of all others.
func TestNothingLeft(t *testing.T) {
	in, texts := storyOf(t)
	require.Len(t, texts, 12)
	holds := func(path, what string) bool {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return bytes.Contains(data, []byte(what))
	}
	plain, scrubbed := purgeOf(t, consumer, in), purge(t, in, scrubbing, led).written()
	for i, text := range texts {
		require.True(t, holds(in, text))
		require.True(t, holds(plain, text), "deletions hide it, and remove nothing")
		require.Equal(t, i >= 6, holds(scrubbed.out, text), text)
	}
	var kept []snapshot.Record
	for _, rec := range records(t, in) {
		if clusterOf(rec.Key) != consumer {
			kept = append(kept, rec)
			continue
		}
		require.False(t, holds(scrubbed.out, string(rec.Key)), "%s", rec.Key)
		require.False(t, len(rec.Value) > 0 && holds(scrubbed.out, string(rec.Value)), "%s", rec.Key)
	}
	left := records(t, scrubbed.out)
	require.Empty(t, left[len(left)-1].Key, "holds the revision up")
	require.Equal(t, kept, left[:len(left)-1])
	scrubbed.requireGone(ofCluster(consumer))
}

// TestScrubOrphans checks that the rest of the file stays, and an empty scrub changes nothing.
// Deleted orphans are named: the file does not distinguish them from deleted logical clusters of
// this shard.
func TestScrubOrphans(t *testing.T) {
	_, in := kcptest.LiveMigrated(t)
	all, scrub := move.Purge{Orphans: true}, move.Purge{Orphans: true, Scrub: true}
	r := purge(t, in, scrub).written()
	require.Equal(t, 4, r.Changes.Deleted)
	require.Equal(t, 4, r.requireGone(ofCluster(other)))
	requireNoRecord(t, r.out, ofCluster(other))
	first, err := os.ReadFile(r.out)
	require.NoError(t, err)
	second, err := os.ReadFile(purge(t, r.out, scrub).unchanged().out)
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, second))

	plain := purge(t, in, all).written().out
	purge(t, plain, scrub).unchanged().requireSteps("etcdshift kcp purge NAME SHARD OUT --scrub takes them " +
		"out, of each: " + other)
	scrubbed := purge(t, plain, move.Purge{Name: other, Scrub: true}).written().out
	purge(t, scrubbed, scrub).unchanged().requireNoStep("--scrub")
}

// TestWatch checks that a client with a watch from before the purge sees each deletion, in the
// order of keys, each at its own revision.
func TestWatch(t *testing.T) {
	r := purge(t, root(t), move.Purge{Name: consumer}, led).written()
	s := etcdtest.Start(t, etcdtest.Restore(t, r.out))
	defer s.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	watch := s.Client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(r.Input.Revision+1), clientv3.WithPrevKV())
	var seen []*clientv3.Event
	for len(seen) < 36 {
		answer, open := <-watch
		require.True(t, open)
		require.NoError(t, answer.Err())
		seen = append(seen, answer.Events...)
	}
	require.Len(t, seen, 36)
	for i, e := range seen {
		require.Equal(t, clientv3.EventTypeDelete, e.Type)
		require.Equal(t, consumer, clusterOf(e.Kv.Key))
		require.NotEmpty(t, e.PrevKv.Value)
		require.Equal(t, r.Input.Revision+1+int64(i), e.Kv.ModRevision)
		require.True(t, i == 0 || bytes.Compare(seen[i-1].Kv.Key, e.Kv.Key) < 0)
	}
	require.Equal(t, r.Output.Revision, etcdtest.Revision(t, s))
}

// TestOutputVerifies checks that snapshot.Verify accepts an output, scrubbed or not, and no other
// file is left.
func TestOutputVerifies(t *testing.T) {
	for _, scrub := range []bool{false, true} {
		r := purge(t, kcptest.Single(t), move.Purge{Name: consumer, WithChildren: true, Scrub: scrub}, led).written()
		for wrong := range snapshot.Verify(t.Context(), openFile(t, r.out)) {
			require.NoError(t, wrong)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(r.out), "*"))
		require.NoError(t, err)
		require.Equal(t, []string{r.out}, left)
	}
}

// TestScrubGone checks that a scrub of a deleted logical cluster removes its older records;
// afterwards the name is unknown in the file.
func TestScrubGone(t *testing.T) {
	in, texts := storyOf(t)
	r := purge(t, purgeOf(t, consumer, in), scrubbing).written()
	require.Zero(t, r.Changes)
	require.Zero(t, r.Clusters[0].Keys)
	r.requireGone(func([]byte) bool { return false })
	data, err := os.ReadFile(r.out)
	require.NoError(t, err)
	require.NotContains(t, string(data), texts[0])
	require.Contains(t, string(data), texts[len(texts)-1])
	requireNoRecord(t, r.out, ofCluster(consumer))
	purge(t, r.out, scrubbing).fails(kcp.ErrNoCluster, "")

	o := move.Purge{Name: consumer, FromShard: "root"}
	plain := purge(t, recorded(t, kcptest.Cache), o).written().out
	o.Scrub = true
	r = purge(t, plain, o).written()
	requireNoRecord(t, r.out, copyOf("root", consumer))
	purge(t, r.out, o).fails(kcp.ErrNoCluster, "")
	_, liveShard1 := kcptest.LiveMigrated(t)
	purge(t, liveShard1, move.Purge{Name: other, Scrub: true}).fails(kcp.ErrNoCluster, "orphans")
}

// TestScrubPastCopies checks that deleted copies in the cache of the same file leave no record
// either; copies of another shard stay and are named.
func TestScrubPastCopies(t *testing.T) {
	const others = "/cache/rbac.authorization.k8s.io/clusterroles/customresources/shard-1/" + consumer + "/stale"
	its, single := eitherOf(ofCluster(consumer), copyOf("root", consumer)), kcptest.Single(t)
	requireNoRecord(t, purge(t, purgeOf(t, consumer, single), scrubbing, led).written().out, its)

	cacheGone := edited(t, single, dropAll(copyOf("root", consumer)), put(others, "{}"), drop(others))
	r := purge(t, cacheGone, scrubbing, led).written()
	requireNoRecord(t, r.out, its)
	left := 0
	for _, rec := range records(t, r.out) {
		if string(rec.Key) == others {
			left++
		}
	}
	require.Equal(t, 2, left)
	r.requireSteps(`keeps older records of what shard "shard-1" wrote of "` + consumer + `"`)

	nameless := edited(t, cacheGone, drop(home(kcp.SystemShard)))
	purge(t, nameless, scrubbing, led).fails(move.ErrShardUnknown, "")
	purge(t, nameless, move.Purge{Name: consumer}, led).written()
}

// meddled is a purge with a fault in its plan.
type meddled struct {
	*move.Purge
	wrong func(ctx context.Context, v *transform.View) error
}

func (m meddled) Plan(ctx context.Context, v *transform.View) error {
	if err := m.Purge.Plan(ctx, v); err != nil {
		return err
	}
	return m.wrong(ctx, v)
}

// requireMeddled requires that a purge with a fault fails and writes no file.
func requireMeddled(
	t *testing.T, in string, p move.Purge, says string, wrong func(ctx context.Context, v *transform.View) error,
) {
	t.Helper()
	r := run(t, in, []option{allowAll(move.PurgeSpec)},
		func(transform.Options) transform.Transform { return meddled{&p, wrong} })
	require.ErrorContains(t, r.err, says)
	require.NoFileExists(t, r.out)
}

// TestRestUntouched checks that an output with a record wrongly lost, changed or kept never gets
// its name.
func TestRestUntouched(t *testing.T) {
	others, its := []byte(configMaps+other+"/default/settings"), move.Purge{Name: consumer}
	deleted := func(ctx context.Context, v *transform.View) error { return v.Delete(ctx, others) }
	put := func(key []byte) func(ctx context.Context, v *transform.View) error {
		return func(ctx context.Context, v *transform.View) error { return v.Put(ctx, key, []byte("{}")) }
	}
	requireMeddled(t, root(t), its, "all other live records", deleted)
	requireMeddled(t, root(t), its, "all other live records", put(others))
	requireMeddled(t, root(t), its, "1 key left after the purge", put([]byte(itsSettings)))
}
