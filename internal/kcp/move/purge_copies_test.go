package move_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// toShard1 moves what the cache has of the provider from root to shard-1.
var toShard1 = move.Purge{Name: kcptest.ClaimsProvider, FromShard: "root", ToShard: "shard-1"}

const (
	exportsDir = "/cache/apis.kcp.io/apiexports/customresources/"
	claimsCopy = exportsDir + "root/" + kcptest.ClaimsProvider + "/example.dev"
)

// asOf is a key of the cache as it is for another shard.
func asOf(key, shard string) string { return strings.Replace(key, "/root/", "/"+shard+"/", 1) }

// requireMoved requires that a real etcd serves from out what it serves from in, but for copies of
// some logical clusters, which lie under keys of shard-1 and say so; it returns how many those are.
func requireMoved(t *testing.T, in, out string, names ...string) (moved int) {
	t.Helper()
	before, leasesBefore := kcptest.Dump(t, in)
	after, leasesAfter := kcptest.Dump(t, out)
	require.Equal(t, leasesBefore, leasesAfter)
	is := map[string]etcdtest.KV{}
	for _, kv := range after {
		is[string(kv.Key)] = kv
	}
	require.Len(t, is, len(before))
	for _, kv := range before {
		shard, name := shardOf(kv.Key)
		if shard != "root" || !slices.Contains(names, name) {
			require.Equal(t, kv, is[string(kv.Key)], "%s", kv.Key)
			continue
		}
		moved++
		require.NotContains(t, is, string(kv.Key))
		got := is[asOf(string(kv.Key), "shard-1")]
		require.Equal(t, 1, bytes.Count(kv.Value, []byte(`"kcp.io/shard":"root"`)))
		want := bytes.Replace(kv.Value, []byte(`"kcp.io/shard":"root"`), []byte(`"kcp.io/shard":"shard-1"`), 1)
		require.Equal(t, string(want), string(got.Value))
		require.Equal(t, kv.Lease, got.Lease)
		require.EqualValues(t, 1, got.Version)
	}
	return moved
}

// TestMoveCopies: another shard gets the copies, with nothing changed but key and annotation;
// nothing else in the cache changes; a second run finds it done.
func TestMoveCopies(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.ClaimsCache)
	for _, scrub := range []bool{false, true} {
		o := toShard1
		o.Scrub = scrub
		r, out := purged(t, in, o)
		require.Equal(t, 14, requireMoved(t, in, out, kcptest.ClaimsProvider))
		require.Equal(t, transform.Changes{Created: 14, Deleted: 14}, r.Changes)
		require.Equal(t, 14, r.Clusters[0].Copies)
		require.Equal(t, 14, r.Clusters[0].CopiesMoved)
		require.Equal(t, "shard-1", r.Clusters[0].ToShard)
		require.Equal(t, r.Input.Keys-14, r.Rest.Keys)
		require.Empty(t, r.Problems)

		r, again, err := tryPurge(t, out, o)
		require.NoError(t, err)
		require.Equal(t, transform.Unchanged, r.Outcome)
		requireGone(t, out, again, func([]byte) bool { return false })
		require.Zero(t, r.Clusters[0].CopiesMoved)
	}
	r, first := purged(t, in, toShard1)
	_, second := purged(t, in, toShard1)
	require.Equal(t, openFile(t, first).Size(), openFile(t, second).Size())
	dry, err := transform.Run(context.Background(), transform.Options{In: in, Out: filepath.Join(t.TempDir(), "out.db"), DryRun: true}, &toShard1)
	require.NoError(t, err)
	require.Equal(t, r.Changes, dry.Changes)
	require.Equal(t, r.Clusters, reportOf(dry).Clusters)
}

// TestExportsInCache: the last copy of an APIExport does not go without a word; where another shard
// has one, it may.
func TestExportsInCache(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.ClaimsCache)
	o := move.Purge{Name: kcptest.ClaimsProvider, FromShard: "root"}
	r := refusedPurge(t, in, o)
	require.Equal(t, []string{"exports-in-cache"}, codes(r))
	require.Len(t, r.Problems, 2)
	require.Equal(t, claimsCopy, r.Problems[0].Key)
	_, out := purged(t, in, o, "exports-in-cache")
	require.Equal(t, 14, requireGone(t, in, out, copyOf("root", kcptest.ClaimsProvider)))

	both := kcptest.Edit(t, in, func(client *clientv3.Client) {
		for _, name := range []string{"example.dev", "solo.dev"} {
			key := exportsDir + "root/" + kcptest.ClaimsProvider + "/" + name
			kcptest.Put(t, client, asOf(key, "shard-1"), ofShard1(kcptest.Get(t, client, key)))
		}
	})
	r, _ = purged(t, both, o)
	require.Empty(t, r.Problems, "as kcp's own live move leaves it: the new shard has copies")
	_, _ = purged(t, in, move.Purge{Name: kcptest.ClaimsOther, FromShard: "root"})

	single := claimsInOne(t)
	r = refusedPurge(t, single, move.Purge{Name: kcptest.ClaimsProvider}, "owner-points-here")
	require.Contains(t, codes(r), "exports-in-cache")
	r, _ = purged(t, kcptest.Recorded(t, kcptest.ClaimsRoot), move.Purge{Name: kcptest.ClaimsProvider}, "owner-points-here")
	require.Contains(t, reasons(r, "exports-bound"), "have to move with it (--to-shard)")
}

func ofShard1(value []byte) []byte {
	return bytes.Replace(value, []byte(`"kcp.io/shard":"root"`), []byte(`"kcp.io/shard":"shard-1"`), 1)
}

// claimsInOne is the root shard with the cache in its own etcd.
func claimsInOne(t testing.TB) string {
	t.Helper()
	cache, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.ClaimsCache))
	return kcptest.Edit(t, kcptest.Recorded(t, kcptest.ClaimsRoot), func(client *clientv3.Client) {
		for _, kv := range cache {
			if strings.HasPrefix(string(kv.Key), "/cache/") {
				kcptest.Put(t, client, string(kv.Key), kv.Value)
			}
		}
	})
}

// TestMoveCopiesOfShard: where the shard's own etcd holds the cache, the purge moves the copies
// too, of children as well.
func TestMoveCopiesOfShard(t *testing.T) {
	in := claimsInOne(t)
	copies := map[string]int{kcptest.ClaimsProvider: 14, kcptest.ClaimsConsumer: 0}
	for name := range copies {
		for _, scrub := range []bool{false, true} {
			r, out := purged(t, in, move.Purge{Name: name, ToShard: "shard-1", WithChildren: true, Scrub: scrub}, "owner-points-here")
			names, moved := []string{}, 0
			for _, c := range r.Clusters {
				names = append(names, c.Name)
				require.Equal(t, c.Copies, c.CopiesMoved)
				moved += c.CopiesMoved
			}
			require.GreaterOrEqual(t, moved, max(1, copies[name]))
			require.Equal(t, moved, r.Changes.Created)
			left := purgeWith(t, out, move.Purge{Name: names[0], FromShard: "shard-1", ToShard: "root"})
			for _, child := range names[1:] {
				if copiesOf(r, child) > 0 {
					left = purgeWith(t, left, move.Purge{Name: child, FromShard: "shard-1", ToShard: "root"})
				}
			}
			was, is := withTTL(t, in, inCache), withTTL(t, left, inCache)
			require.Equal(t, was, is, "there and back it is the same")
		}
	}
	r := refusedPurge(t, in, move.Purge{Name: kcptest.ClaimsProvider, ToShard: "shard1"}, "owner-points-here")
	require.Contains(t, codes(r), "unknown-shard")
	_, _, err := tryPurge(t, in, move.Purge{Name: kcptest.ClaimsProvider, ToShard: "root"}, "owner-points-here")
	require.ErrorIs(t, err, move.ErrSameShard)

	r, _ = purged(t, kcptest.Recorded(t, kcptest.ClaimsRoot), move.Purge{Name: kcptest.ClaimsProvider, ToShard: "shard-1"}, "owner-points-here")
	require.Contains(t, strings.Join(r.Steps, "\n"), "etcdshift kcp purge "+kcptest.ClaimsProvider+" CACHE CACHE-OUT --from-shard root --to-shard shard-1")
}

func inCache(key []byte) bool { return bytes.HasPrefix(key, []byte("/cache/")) }

func copiesOf(r *report, name string) int {
	for _, c := range r.Clusters {
		if c.Name == name {
			return c.Copies
		}
	}
	return 0
}

// TestMoveCopiesOfOrphans: what a cache has of orphans moves with them.
func TestMoveCopiesOfOrphans(t *testing.T) {
	in := kcptest.Edit(t, claimsInOne(t), func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcptest.ClaimsProvider))
	})
	o := move.Purge{Name: kcptest.ClaimsProvider, Orphans: true}
	r := refusedPurge(t, in, o, "owner-points-here")
	require.Contains(t, codes(r), "exports-in-cache")
	o.ToShard = "shard-1"
	r, _ = purged(t, in, o, "owner-points-here")
	require.Equal(t, 14, r.Clusters[0].CopiesMoved)
}

// TestMoveCopiesShards: a name that is spelled wrong is found out.
func TestMoveCopiesShards(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.ClaimsCache)
	o := toShard1
	o.ToShard = "shard1"
	r := refusedPurge(t, in, o)
	require.Equal(t, []string{"unknown-shard"}, codes(r))
	require.Contains(t, reasons(r, "unknown-shard"), `"root", "shard-1", "shard-2"`)
	purged(t, in, o, "unknown-shard")

	o = toShard1
	o.FromShard = "rooot"
	_, _, err := tryPurge(t, in, o)
	require.ErrorIs(t, err, kcp.ErrNoCluster)
	require.ErrorContains(t, err, `it has copies from "root"`)
	require.ErrorContains(t, err, `nothing in the file knows a shard "rooot"; it knows "root", "shard-1", "shard-2"`)
	_, out := purged(t, in, toShard1)
	_, _, err = tryPurge(t, out, o)
	require.ErrorIs(t, err, kcp.ErrNoCluster, "it was moved, but not from there")
	o.FromShard = "shard-1"
	_, _, err = tryPurge(t, in, o)
	require.ErrorIs(t, err, move.ErrSameShard)
	o = toShard1
	o.Name = "nowhere"
	_, _, err = tryPurge(t, in, o)
	require.ErrorContains(t, err, "from any shard")
	o = toShard1
	o.FromShard = ""
	_, _, err = tryPurge(t, in, o)
	require.ErrorIs(t, err, move.ErrCacheAlone)
}

// TestMoveCopyExists: a copy that the new shard has already refuses, and stays; one that is what
// would be written is no obstacle.
func TestMoveCopyExists(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.ClaimsCache)
	to := asOf(claimsCopy, "shard-1")
	there := func(change func([]byte) []byte) string {
		return kcptest.Edit(t, in, func(client *clientv3.Client) { kcptest.Put(t, client, to, change(kcptest.Get(t, client, claimsCopy))) })
	}
	other := func(value []byte) []byte {
		return bytes.Replace(ofShard1(value), []byte(`"cache.kcp.io/original-resource-version":"`), []byte(`"cache.kcp.io/original-resource-version":"1`), 1)
	}
	r := refusedPurge(t, there(other), toShard1)
	require.Equal(t, []string{"copy-exists"}, codes(r))
	require.Equal(t, to, r.Problems[0].Key)

	for _, c := range []struct {
		change func([]byte) []byte
		allow  []string
	}{{other, []string{"copy-exists"}}, {ofShard1, nil}} {
		before := there(c.change)
		r, out := purged(t, before, toShard1, c.allow...)
		require.Equal(t, 14, r.Clusters[0].Copies)
		require.Equal(t, 13, r.Clusters[0].CopiesMoved)
		was, _ := kcptest.Dump(t, before)
		is, _ := kcptest.Dump(t, out)
		at := func(all []etcdtest.KV) etcdtest.KV {
			return all[slices.IndexFunc(all, func(kv etcdtest.KV) bool { return string(kv.Key) == to })]
		}
		require.Equal(t, at(was), at(is))
		require.Len(t, is, len(was)-1)
	}
}

// TestMoveCopyValues: what a copy is stored as stays what it is: protobuf, a value without the
// annotation, a lease.
func TestMoveCopyValues(t *testing.T) {
	dir := "/cache/configmaps/customresources/root/" + kcptest.ClaimsProvider + "/default/"
	native := func(shard string) []byte {
		raw, err := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native", Namespace: "default", Annotations: map[string]string{
			"a": "root", "kcp.io/shard": shard, "z": "root",
		}}, Data: map[string]string{"kcp.io/shard": "root"}}).Marshal()
		require.NoError(t, err)
		return inEnvelope(t, "ConfigMap", raw)
	}
	bare := []byte(`{ "metadata": {"namespace":"default", "name":"bare", "annotations":{} }, "kcp.io/shard":"root"}`)
	var lease int64
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.ClaimsCache), func(client *clientv3.Client) {
		granted, err := client.Grant(context.Background(), 3600)
		require.NoError(t, err)
		lease = int64(granted.ID)
		kcptest.Put(t, client, dir+"native", native("root"), clientv3.WithLease(granted.ID))
		kcptest.Put(t, client, dir+"bare", bare)
	})
	_, out := purged(t, in, toShard1)
	after, leases := kcptest.Dump(t, out)
	found := map[string]etcdtest.KV{}
	for _, kv := range after {
		found[string(kv.Key)] = kv
	}
	require.Equal(t, native("shard-1"), found[asOf(dir, "shard-1")+"native"].Value)
	require.Equal(t, lease, found[asOf(dir, "shard-1")+"native"].Lease)
	require.EqualValues(t, 3600, leases[lease])
	require.Equal(t, bare, found[asOf(dir, "shard-1")+"bare"].Value)
	require.NotContains(t, found, dir+"bare")
}

// inEnvelope is an object of the core group as a server stores it.
func inEnvelope(t testing.TB, kind string, raw []byte) []byte {
	t.Helper()
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), envelope...)
}

// TestMoveCopyUnfit: a copy that cannot be read does not move, whatever is allowed, and so nothing
// does; one that says that another shard wrote it is reported, and moves by its key.
func TestMoveCopyUnfit(t *testing.T) {
	for name, c := range map[string]struct{ value, code string }{
		"encrypted": {"k8s:enc:aescbc:v1:a:0123456789abcdef0123456789abcdef", "encrypted"},
		"no object": {"\x00\x01", "undecodable"}, "cut off": {`{"metadata":{"name":"example.dev","ann`, "undecodable"},
		"no text": {`{"metadata":{"name":"example.dev","annotations":{"kcp.io/shard":1}}}`, "undecodable"},
	} {
		t.Run(name, func(t *testing.T) {
			in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.ClaimsCache), func(client *clientv3.Client) {
				kcptest.Put(t, client, claimsCopy, []byte(c.value))
			})
			r, out, err := tryPurge(t, in, toShard1, finding.Allowable(move.PurgeSpec.Codes)...)
			require.ErrorIs(t, err, transform.ErrRefused)
			require.NotEmpty(t, reasons(r, c.code))
			require.NoFileExists(t, out)
			_, _ = purged(t, in, move.Purge{Name: toShard1.Name, FromShard: "root"}, "exports-in-cache")
		})
	}
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.ClaimsCache), func(client *clientv3.Client) {
		kcptest.Put(t, client, claimsCopy, ofShard1(kcptest.Get(t, client, claimsCopy)))
	})
	r := refusedPurge(t, in, toShard1)
	require.Equal(t, []string{"key-mismatch"}, codes(r))
	r, _ = purged(t, in, toShard1, "key-mismatch")
	require.Equal(t, 14, r.Clusters[0].CopiesMoved)
}

// TestMoveCopyEncrypted: an encrypted copy is encrypted for its new key, and never stored in the
// clear.
func TestMoveCopyEncrypted(t *testing.T) {
	ours, open := cipher(t, "aesgcm=b"), cipher(t, "identity", "aesgcm=b")
	from := "/cache/secrets/customresources/root/" + kcptest.ClaimsProvider + "/default/sec"
	plain := `{"kind":"Secret","metadata":{"name":"sec","namespace":"default","annotations":{"kcp.io/shard":"root"}}}`
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.ClaimsCache), func(client *clientv3.Client) {
		encrypted, err := ours.Encrypt(context.Background(), secretType(), []byte(from), []byte(plain))
		require.NoError(t, err)
		kcptest.Put(t, client, from, encrypted)
	})
	run := func(o transform.Options) (*report, string, error) {
		o.In, o.Out = in, filepath.Join(t.TempDir(), "out.db")
		r, err := transform.Run(context.Background(), o, &toShard1)
		return reportOf(r), o.Out, err
	}
	r, _, err := run(transform.Options{Allow: finding.Allowable(move.PurgeSpec.Codes)})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{"encrypted"}, codes(r))
	r, _, err = run(transform.Options{Allow: finding.Allowable(move.PurgeSpec.Codes), Encryption: open})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{"would-be-plaintext"}, codes(r), "%+v", r.Problems)

	_, out, err := run(transform.Options{Encryption: ours})
	require.NoError(t, err)
	to := asOf(from, "shard-1")
	rec, err := openFile(t, out).Get(context.Background(), []byte(to))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(rec.Value, []byte("k8s:enc:aesgcm:v1:b:")))
	value, stale, err := ours.Decrypt(context.Background(), secretType(), []byte(to), rec.Value)
	require.NoError(t, err, "AES-GCM opens under the very key alone")
	require.False(t, stale)
	require.Equal(t, string(ofShard1([]byte(plain))), string(value))
}

// TestMoveCopiesProved: an output in which a copy is not what it has to be never gets its name.
func TestMoveCopiesProved(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.ClaimsCache)
	for name, wrong := range map[string]func(ctx context.Context, v *transform.View) error{
		"another value": func(ctx context.Context, v *transform.View) error {
			return v.Put(ctx, []byte(asOf(claimsCopy, "shard-1")), []byte("{}"))
		},
		"one too many": func(ctx context.Context, v *transform.View) error {
			return v.Put(ctx, []byte(asOf(claimsCopy, "shard-1")+"2"), []byte("{}"))
		},
		"another's": func(ctx context.Context, v *transform.View) error {
			return v.Delete(ctx, []byte(exportsDir+"root/root/tenancy.kcp.io"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.db")
			_, err := transform.Run(context.Background(), transform.Options{In: in, Out: out}, meddled{&toShard1, wrong})
			require.Error(t, err)
			require.NoFileExists(t, out)
		})
	}
}
