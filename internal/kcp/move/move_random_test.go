package move_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/snapshot"
)

// FuzzMove moves a logical cluster in a shard full of random keys with similar names. Each key
// belongs to its intended logical cluster; a move to another shard and back loses nothing, and
// nothing else changes.
func FuzzMove(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint8(40+10*seed))
	}
	base := systemRecords(f)
	f.Fuzz(func(t *testing.T, seed uint64, keys uint8) {
		random := rand.New(rand.NewPCG(seed, 5))
		names := clusterNames(random)
		origin := newWorld(t, base, random, names[:4], names, names, int(keys))
		destination := newWorld(t, base, random, names[4:6], names[4:], names, int(keys)/2)
		origin.requireOwners(t)
		destination.requireOwners(t)
		moved := names[random.IntN(4)]
		there := moveRandom(t, moved, origin.path, destination.path)
		requireContent(t, origin.without(moved), contentOf(t, there.originOut))
		came := contentOf(t, there.destinationOut)
		requireContent(t, destination.content, but(came, origin.owned(moved)))
		requireContent(t, origin.owned(moved), only(came, origin.owned(moved)))

		back := moveRandom(t, moved, there.destinationOut, there.originOut)
		requireContent(t, origin.content, contentOf(t, back.destinationOut))
		requireContent(t, destination.content, contentOf(t, back.originOut))
	})
}

// moveRandom moves a random logical cluster and verifies the move; its custom resources have
// neither definitions nor exports.
func moveRandom(t *testing.T, name, origin, destination string) moveFiles {
	t.Helper()
	m := moveWith(t, origin, destination, move.Extract{Name: name}, move.Import{},
		allow("missing-definition", "unknown-identity"))
	m.requireSound(t, func(m *move.Move) { m.Ignore = []string{"identity-unknown"} })
	return m
}

// stored is a value and the TTL of its lease.
type stored struct {
	value string
	ttl   int64
}

// world is a generated shard.
type world struct {
	path    string
	content map[string]stored
	owner   map[string]string // of each key, a logical cluster; "" for none
}

func (w *world) owned(cluster string) map[string]stored {
	return only(w.content, w.content, func(key string) bool { return w.owner[key] == cluster })
}

func (w *world) without(cluster string) map[string]stored { return but(w.content, w.owned(cluster)) }

// requireContent reports the keys that differ.
func requireContent(t testing.TB, want, got map[string]stored) {
	t.Helper()
	differ := []string{}
	for key, s := range want {
		if got[key] != s {
			differ = append(differ, key)
		}
	}
	for key := range but(got, want) {
		differ = append(differ, key)
	}
	require.Empty(t, differ)
}

func only(all, of map[string]stored, want ...func(key string) bool) map[string]stored {
	found := map[string]stored{}
	for key, s := range all {
		if _, ok := of[key]; ok && (len(want) == 0 || want[0](key)) {
			found[key] = s
		}
	}
	return found
}

func but(all, without map[string]stored) map[string]stored {
	left := maps.Clone(all)
	maps.DeleteFunc(left, func(key string, _ stored) bool { _, ok := without[key]; return ok })
	return left
}

// contentOf returns the values of a file by key.
func contentOf(t testing.TB, path string) map[string]stored {
	t.Helper()
	leases, found := leasesOf(t, path), map[string]stored{}
	for rec, err := range openFile(t, path).Live(context.Background(), nil) {
		require.NoError(t, err)
		found[string(rec.Key)] = stored{string(rec.Value), leases[rec.Lease]}
	}
	return found
}

// requireOwners requires that each key is counted for its intended logical cluster.
func (w *world) requireOwners(t *testing.T) {
	t.Helper()
	f, err := kcp.Read(context.Background(), read(t, w.path))
	require.NoError(t, err)
	want, got := map[string]int{}, map[string]int{}
	for key := range w.content {
		want[w.owner[key]]++
	}
	shard, err := f.Shard(nil)
	require.NoError(t, err)
	for _, c := range shard.Clusters {
		got[c.Name] += c.Amount.Keys
		_, lives := w.content[home(c.Name)]
		require.True(t, lives || kcp.IsSystem(c.Name), "%s", c.Name)
	}
	for _, o := range shard.Orphans {
		got[o.Name] += o.Amount.Keys
		for _, key := range o.Keys {
			require.Equal(t, o.Name, w.owner[key], "%s", key)
		}
	}
	for _, u := range f.Unknown {
		got[""]++
		require.Empty(t, w.owner[u.Key], "%s", u.Key)
	}
	require.Equal(t, want, got)
}

// systemRecords returns the records that make a file a shard of kcp: the definitions of kcp's own
// types, and the shard's own logical cluster.
func systemRecords(t testing.TB) map[string]stored {
	t.Helper()
	all := contentOf(t, shard1(t))
	return only(all, all, func(key string) bool {
		return strings.HasSuffix(key, "/system:shard/cluster") || strings.Contains(key, "/system:system-crds/")
	})
}

// clusterNames returns eight names of logical clusters, some with another one as a prefix.
func clusterNames(random *rand.Rand) []string {
	names := []string{}
	for len(names) < 8 {
		name := fmt.Sprintf("%08x%08x", random.Uint32(), random.Uint32())
		if n := len(names); n > 0 && random.IntN(2) == 0 {
			name = names[random.IntN(n)] + string(rune('a'+random.IntN(26)))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// newWorld generates a shard where the logical clusters of living live, with n keys of these
// clusters and of the others in all, which are orphans. Namespaces and objects have names of
// logical clusters.
func newWorld(t *testing.T, base map[string]stored, random *rand.Rand, living, all, names []string, n int) *world {
	t.Helper()
	w := &world{content: maps.Clone(base), owner: map[string]string{}}
	for key := range base {
		w.owner[key] = clusterOf([]byte(key))
	}
	for _, name := range living {
		w.add(home(name), name, `{"apiVersion":"core.kcp.io/v1alpha1","kind":"LogicalCluster",`+
			`"metadata":{"annotations":{"core.kcp.io/shard":"shard-1"},"name":"cluster"}}`, 0)
	}
	for range n {
		w.addRandom(random, all, names)
	}
	w.build(t, random)
	return w
}

func (w *world) add(key, owner, value string, ttl int64) {
	w.content[key], w.owner[key] = stored{value, ttl}, owner
}

// addRandom adds a key of one of the logical clusters, or of none.
func (w *world) addRandom(random *rand.Rand, all, names []string) {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	hash := strings.Repeat(pick("0", "a", "f"), 64)
	cluster := pick(all...)
	namespace := pick(slices.Concat(names, []string{"default", "customresources", "kube-system"})...)
	name := pick(slices.Concat(names, []string{"cluster", "customresources", "a:b", hash})...)
	dirs := []string{ // %s is the logical cluster
		"rbac.authorization.k8s.io/clusterroles/%s", "core/namespaces/%s",
		"things.example.org/widgets/customresources/%s",
		"example.dev/widgets/" + hash + "/%s", "pods/customresources/%s", "pods/" + hash + "/%s",
		"core/configmaps/%s/NS",
		"core/secrets/%s/NS", "core/events/%s/NS", "coordination.k8s.io/leases/%s/NS",
		"things.example.org/gizmos/customresources/%s/NS",
		"example.dev/gizmos/" + hash + "/%s/NS", "services/customresources/%s/NS", "services/" + hash + "/%s/NS",
	}
	dir := pick(dirs...)
	if random.IntN(10) == 0 {
		w.add(pick("/registry/things.example.org/widgets/customresources", "/registry/core/configmaps/"+cluster,
			"/registry/unknown.example.org/things/"+cluster+"/"+name, "/registry/core/configmaps/"+cluster+"/a/b/c",
			"/registry/"+cluster, "/elsewhere/"+cluster+"/"+name, "compact_rev_key"), "", `{"of":"nobody"}`, 0)
		return
	}
	meta := fmt.Sprintf(`"name":%q`, name)
	if at, namespaced := strings.CutSuffix(dir, "/NS"); namespaced {
		dir, meta = at+"/"+namespace, fmt.Sprintf(`"name":%q,"namespace":%q`, name, namespace)
	}
	ttl := int64(0)
	if strings.HasPrefix(dir, "core/events/") {
		ttl = int64(60 * (1 + random.IntN(3)))
	}
	key := "/registry/" + fmt.Sprintf(dir, cluster) + "/" + name
	w.add(key, cluster, fmt.Sprintf(`{"apiVersion":"v1","kind":"Thing","metadata":{%s},"seed":%d}`, meta,
		random.Uint32()), ttl)
}

// build writes the file: the keys in random order, with unused revisions in between.
func (w *world) build(t *testing.T, random *rand.Rand) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(w.content))
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var records []*snapshot.Record
	revision, leases := int64(1), map[int64]bool{}
	for _, key := range keys {
		revision += 1 + int64(random.IntN(3))
		s := w.content[key]
		lease := s.ttl * 1000 // one lease for each TTL
		if lease != 0 {
			leases[lease] = true
		}
		records = append(records, &snapshot.Record{
			Revision: snapshot.Revision{Main: revision}, Key: []byte(key), Value: []byte(s.value),
			CreateRevision: revision, ModRevision: revision, Version: 1, Lease: lease,
		})
	}
	content := snapshot.Content{Revision: revision, Records: sequence(records)}
	for _, id := range slices.Sorted(maps.Keys(leases)) {
		content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: id / 1000})
	}
	w.path = build(t, content)
}
