package move_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	exporter   = kcptest.ClaimsProvider
	exportsDir = "/cache/apis.kcp.io/apiexports/customresources/"
	claimsCopy = exportsDir + "root/" + exporter + "/example.dev"
)

// toShard1 moves the cache's copies of the exporter from root to shard-1.
var toShard1 = move.Purge{Name: exporter, FromShard: "root", ToShard: "shard-1"}

func claimsCache(t testing.TB, edits ...edit) string {
	return recorded(t, kcptest.ClaimsCache, edits...)
}

// claimsInOne returns the root shard with the cache in its own etcd.
func claimsInOne(t testing.TB, edits ...edit) string {
	t.Helper()
	return recorded(t, kcptest.ClaimsRoot, append([]edit{withCache(t, kcptest.ClaimsCache)}, edits...)...)
}

// asOf returns a key of the cache with another shard; ofShard1 returns the value of a copy with
// shard-1.
func asOf(key, shard string) string { return strings.Replace(key, "/root/", "/"+shard+"/", 1) }

func ofShard1(value []byte) []byte {
	return bytes.Replace(value, []byte(`"kcp.io/shard":"root"`), []byte(`"kcp.io/shard":"shard-1"`), 1)
}

// requireMoved requires that a real etcd has the same records with the output as with the input,
// except the copies of the exporter, which are under keys of shard-1 and name shard-1; it returns
// their number.
func requireMoved(t *testing.T, in, out string) (moved int) {
	t.Helper()
	require.Equal(t, leasesOf(t, in), leasesOf(t, out))
	before, _ := kcptest.Dump(t, in)
	after, _ := kcptest.Dump(t, out)
	is := byKey(after)
	require.Len(t, is, len(before))
	for _, kv := range before {
		if !copyOf("root", exporter)(kv.Key) {
			require.Equal(t, kv, is[string(kv.Key)], "%s", kv.Key)
			continue
		}
		moved++
		require.NotContains(t, is, string(kv.Key))
		got := is[asOf(string(kv.Key), "shard-1")]
		require.Equal(t, 1, bytes.Count(kv.Value, []byte(`"kcp.io/shard":"root"`)))
		require.Equal(t, string(ofShard1(kv.Value)), string(got.Value))
		require.Equal(t, kv.Lease, got.Lease)
		require.EqualValues(t, 1, got.Version)
	}
	return moved
}

// TestMoveCopies checks that the copies move to another shard, with changes only in key and
// annotation; a second run finds them moved.
func TestMoveCopies(t *testing.T) {
	in := claimsCache(t)
	for _, scrub := range []bool{false, true} {
		o := toShard1
		o.Scrub = scrub
		r := purge(t, in, o).written()
		require.Equal(t, 14, requireMoved(t, in, r.out))
		require.Equal(t, transform.Changes{Created: 14, Deleted: 14}, r.Changes)
		c := r.Clusters[0]
		require.Equal(t, []any{14, 14, "shard-1"}, []any{c.Copies, c.CopiesMoved, c.ToShard})
		require.Equal(t, r.Input.Keys-14, r.Rest.Keys)
		require.Empty(t, r.Problems)
		again := purge(t, r.out, o).unchanged()
		again.requireGone(func([]byte) bool { return false })
		require.Zero(t, again.Clusters[0].CopiesMoved)

		require.Equal(t, openFile(t, r.out).Size(), openFile(t, purge(t, in, o).written().out).Size())
		dry := purge(t, in, o, dryRun)
		require.NoError(t, dry.err)
		require.Equal(t, r.Changes, dry.Changes)
		require.Equal(t, r.Clusters, dry.Clusters)
	}
}

// TestExportsInCache checks that deleting the last copy of an APIExport must be allowed, unless
// another shard has a copy.
func TestExportsInCache(t *testing.T) {
	in, o := claimsCache(t), move.Purge{Name: exporter, FromShard: "root"}
	found := purge(t, in, o).refused("exports-in-cache")
	require.Len(t, found, 2)
	require.Equal(t, claimsCopy, found[0].Key)
	require.Equal(t, 14, purge(t, in, o, allow("exports-in-cache")).written().requireGone(copyOf("root", exporter)))

	var both []edit // the result of kcp's own live move
	for _, name := range []string{"example.dev", "solo.dev"} {
		key := exportsDir + "root/" + exporter + "/" + name
		both = append(both, derive(key, asOf(key, "shard-1"), `"kcp.io/shard":"root"`, `"kcp.io/shard":"shard-1"`))
	}
	require.Empty(t, purge(t, edited(t, in, both...), o).written().Problems)
	purge(t, in, move.Purge{Name: kcptest.ClaimsOther, FromShard: "root"}).written()

	purge(t, claimsInOne(t), move.Purge{Name: exporter}, led).refused("exports-in-cache")
	r := purge(t, recorded(t, kcptest.ClaimsRoot), move.Purge{Name: exporter}, led).written()
	require.Contains(t, r.reasons("exports-bound"), "have to move with it (--to-shard)")

	orphaned := claimsInOne(t, drop(home(exporter)))
	orphans := move.Purge{Name: exporter, Orphans: true}
	purge(t, orphaned, orphans, led).refused("exports-in-cache")
	orphans.ToShard = "shard-1"
	require.Equal(t, 14, purge(t, orphaned, orphans, led).written().Clusters[0].CopiesMoved)
}

// TestMoveCopiesOfShard checks that with the cache in the shard's own etcd, the purge also moves
// the copies, including copies of children; a move and its reverse restore the copies.
func TestMoveCopiesOfShard(t *testing.T) {
	in := claimsInOne(t)
	for name, copies := range map[string]int{exporter: 14, kcptest.ClaimsConsumer: 1} {
		for _, scrub := range []bool{false, true} {
			r := purge(t, in, move.Purge{Name: name, ToShard: "shard-1", WithChildren: true, Scrub: scrub},
				led).written()
			left, moved := r.out, 0
			for _, c := range r.Clusters {
				require.Equal(t, c.Copies, c.CopiesMoved)
				if moved += c.CopiesMoved; c.Copies > 0 {
					left = purge(t, left, move.Purge{Name: c.Name, FromShard: "shard-1", ToShard: "root"}).written().out
				}
			}
			require.GreaterOrEqual(t, moved, copies)
			require.Equal(t, moved, r.Changes.Created)
			require.Equal(t, withTTL(t, in, inCache), withTTL(t, left, inCache))
		}
	}
	purge(t, in, move.Purge{Name: exporter, ToShard: "shard1"}, led).refused("unknown-shard")
	purge(t, in, move.Purge{Name: exporter, ToShard: "root"}, led).fails(move.ErrSameShard, "")
	r := purge(t, recorded(t, kcptest.ClaimsRoot), move.Purge{Name: exporter, ToShard: "shard-1"}, led).written()
	r.requireSteps("etcdshift kcp purge " + exporter + " CACHE CACHE-OUT --from-shard root --to-shard shard-1")
}

// TestMoveCopiesShards checks that a misspelled shard name is reported.
func TestMoveCopiesShards(t *testing.T) {
	in := claimsCache(t)
	o := toShard1
	o.ToShard = "shard1"
	require.Contains(t, purge(t, in, o).refused("unknown-shard")[0].Reason, `"root", "shard-1", "shard-2"`)
	purge(t, in, o, allow("unknown-shard")).written()

	moved := purge(t, in, toShard1).written().out
	for _, c := range []struct {
		in   string
		o    move.Purge
		is   error
		says string
	}{
		{in, move.Purge{Name: exporter, FromShard: "rooot", ToShard: "shard-1"}, kcp.ErrNoCluster,
			`it has copies from "root"; nothing in the file knows a shard "rooot"; it knows "root", "shard-1", ` +
				`"shard-2"`},
		{moved, move.Purge{Name: exporter, FromShard: "rooot", ToShard: "shard-1"}, kcp.ErrNoCluster, ""},
		{in, move.Purge{Name: exporter, FromShard: "shard-1", ToShard: "shard-1"}, move.ErrSameShard, ""},
		{in, move.Purge{Name: "nowhere", FromShard: "root", ToShard: "shard-1"}, kcp.ErrNoCluster, "from any shard"},
		{in, move.Purge{Name: exporter, ToShard: "shard-1"}, move.ErrCacheAlone, ""},
	} {
		purge(t, c.in, c.o).fails(c.is, c.says)
	}
}

// TestMoveCopyExists checks that a different copy under the new key refuses the run and stays; an
// equal copy is accepted.
func TestMoveCopyExists(t *testing.T) {
	const version = `"cache.kcp.io/original-resource-version":"`
	to, equal := asOf(claimsCopy, "shard-1"), []string{`"kcp.io/shard":"root"`, `"kcp.io/shard":"shard-1"`}
	differs := derive(claimsCopy, to, append([]string{version, version + "1"}, equal...)...)
	found := purge(t, claimsCache(t, differs), toShard1).refused("copy-exists")
	require.Len(t, found, 1)
	require.Equal(t, to, found[0].Key)
	for _, c := range []struct {
		there edit
		allow []string
	}{{differs, []string{"copy-exists"}}, {derive(claimsCopy, to, equal...), nil}} {
		r := purge(t, claimsCache(t, c.there), toShard1, allow(c.allow...)).written()
		require.Equal(t, []int{14, 13}, []int{r.Clusters[0].Copies, r.Clusters[0].CopiesMoved})
		was, _ := kcptest.Dump(t, r.in)
		is, _ := kcptest.Dump(t, r.out)
		require.Equal(t, byKey(was)[to], byKey(is)[to])
		require.Len(t, is, len(was)-1)
	}
}

// TestMoveCopyValues checks that a copy keeps its form: protobuf, a value without the annotation, a
// lease.
func TestMoveCopyValues(t *testing.T) {
	const dir, bare = "/cache/configmaps/customresources/root/" + exporter + "/default/",
		`{ "metadata": {"namespace":"default", "name":"bare", "annotations":{} }, "kcp.io/shard":"root"}`
	native := func(shard string) string {
		annotations := map[string]string{"a": "root", "kcp.io/shard": shard, "z": "root"}
		raw, err := (&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "native", Namespace: "default", Annotations: annotations},
			Data:       map[string]string{"kcp.io/shard": "root"},
		}).Marshal()
		require.NoError(t, err)
		return string(inEnvelope(t, "ConfigMap", raw))
	}
	r := purge(t, claimsCache(t, put(dir+"native", native("root")), leased(dir+"native", 3600), put(dir+"bare", bare)),
		toShard1).written()
	to := asOf(dir, "shard-1")
	require.Equal(t, native("shard-1"), r.value(to+"native"))
	require.Equal(t, bare, r.value(to+"bare"))
	after, leases := kcptest.Dump(t, r.out)
	found := byKey(after)
	require.EqualValues(t, 3600, leases[found[to+"native"].Lease])
	require.NotContains(t, found, dir+"bare")
}

// inEnvelope returns an object of the core group as a server stores it.
func inEnvelope(t testing.TB, kind string, raw []byte) []byte {
	t.Helper()
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), envelope...)
}

// TestMoveCopyUnfit checks that an unreadable copy prevents the move of all copies, for any allowed
// codes; a copy with another shard's name is reported, and moves by its key.
func TestMoveCopyUnfit(t *testing.T) {
	for _, c := range [][2]string{
		{opaque, "encrypted"}, {"\x00\x01", "undecodable"}, {`{"metadata":{"name":"example.dev","ann`, "undecodable"},
		{`{"metadata":{"name":"example.dev","annotations":{"kcp.io/shard":1}}}`, "undecodable"},
	} {
		in := claimsCache(t, put(claimsCopy, c[0]))
		purge(t, in, toShard1, allowAll(move.PurgeSpec)).refused(c[1])
		purge(t, in, move.Purge{Name: exporter, FromShard: "root"}, allow("exports-in-cache")).written()
	}
	in := claimsCache(t, swap(claimsCopy, `"kcp.io/shard":"root"`, `"kcp.io/shard":"shard-1"`))
	r := purge(t, in, toShard1)
	r.refused("key-mismatch")
	require.Len(t, r.codes(), 1)
	require.Equal(t, 14, purge(t, in, toShard1, allow("key-mismatch")).written().Clusters[0].CopiesMoved)
}

// TestMoveCopiesProved checks that an output with a wrong copy never gets its name.
func TestMoveCopiesProved(t *testing.T) {
	in, to := claimsCache(t), asOf(claimsCopy, "shard-1")
	for _, key := range []string{to, to + "2"} {
		requireMeddled(t, in, toShard1, "", func(ctx context.Context, v *transform.View) error {
			return v.Put(ctx, []byte(key), []byte("{}"))
		})
	}
	requireMeddled(t, in, toShard1, "", func(ctx context.Context, v *transform.View) error {
		return v.Delete(ctx, []byte(exportsDir+"root/root/tenancy.kcp.io"))
	})
}
