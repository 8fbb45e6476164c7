package move_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// moveFiles are the files of a whole move.
type moveFiles struct {
	origin, archive, originOut  string
	destination, destinationOut string
	caches, cachesBefore        []string
}

// moveOf moves a logical cluster from one shard to another: extract, purge and import.
func moveOf(t testing.TB, name, origin, destination string) moveFiles {
	t.Helper()
	return moveWith(t, origin, destination, move.Extract{Name: name}, move.Import{})
}

// moveWith is moveOf with other parameters; options apply to each command.
func moveWith(t testing.TB, origin, destination string, x move.Extract, i move.Import, options ...option) moveFiles {
	t.Helper()
	m := moveFiles{origin: origin, destination: destination}
	m.archive = extract(t, origin, x, options...).written().out
	gone := move.Purge{Name: x.Name, WithChildren: x.WithChildren}
	m.originOut = purge(t, origin, gone, append([]option{led}, options...)...).written().out
	m.destinationOut = importInto(t, m.archive, destination, i, options...).written().out
	return m
}

func (m moveFiles) withoutInputs() moveFiles {
	m.origin, m.destination = "", ""
	return m
}

// verdict opens the files of a move and checks it.
func (m moveFiles) verdict(t testing.TB, more ...func(*move.Move)) *move.Verdict {
	t.Helper()
	v, err := m.open(t, more...).Verify(context.Background())
	require.NoError(t, err)
	return v
}

func (m moveFiles) open(t testing.TB, more ...func(*move.Move)) move.Move {
	t.Helper()
	move := move.Move{
		Archive: read(t, m.archive), OriginOut: read(t, m.originOut), DestinationOut: read(t, m.destinationOut),
		Origin: read(t, m.origin), Destination: read(t, m.destination),
	}
	for _, path := range m.caches {
		move.Caches = append(move.Caches, read(t, path))
	}
	for _, path := range m.cachesBefore {
		move.CachesBefore = append(move.CachesBefore, read(t, path))
	}
	for _, change := range more {
		change(&move)
	}
	return move
}

// requireSound requires the answer no to each question.
func (m moveFiles) requireSound(t testing.TB, more ...func(*move.Move)) *move.Verdict {
	t.Helper()
	v := m.verdict(t, more...)
	require.Empty(t, v.Findings)
	require.Empty(t, v.Unchecked)
	require.Len(t, v.Answers, len(move.Questions()))
	for _, a := range v.Answers {
		require.Equal(t, "no", a.Answer, "%s", a.Question)
		require.NotZero(t, a.Checked, "%s", a.Question)
	}
	require.True(t, v.Sound())
	return v
}

// requireFound requires findings of exactly these codes, in their order.
func (m moveFiles) requireFound(t testing.TB, codes ...string) *move.Verdict {
	t.Helper()
	v := m.verdict(t)
	require.Equal(t, codes, codesOf(v), "%+v", v.Findings)
	require.False(t, v.Sound())
	return v
}

func codesOf(v *move.Verdict) (found []string) {
	for _, f := range v.Findings {
		found = append(found, f.Code.Name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// withTTL returns keys with their values and lease TTLs, as served by a restored etcd.
func withTTL(t testing.TB, path string, of func(key []byte) bool) map[string]stored {
	t.Helper()
	kvs, leases := kcptest.Dump(t, path)
	found := map[string]stored{}
	for _, kv := range kvs {
		if of(kv.Key) {
			require.Equal(t, kv.Lease != 0, leases[kv.Lease] != 0, "%s", kv.Key)
			found[string(kv.Key)] = stored{string(kv.Value), leases[kv.Lease]}
		}
	}
	return found
}

// TestThereAndBack checks that a logical cluster moved to another shard and back has the same keys,
// values and lease TTLs, that both shards have all other records at their revisions, and each move
// is sound.
func TestThereAndBack(t *testing.T) {
	for _, name := range []string{consumer, other} {
		t.Run(name, func(t *testing.T) {
			there := moveOf(t, name, root(t), shard1(t))
			there.requireSound(t)
			back := moveOf(t, name, there.destinationOut, there.originOut)
			back.requireSound(t)
			its, all := ofCluster(name), func([]byte) bool { return true }
			require.NotEmpty(t, withTTL(t, there.destinationOut, its))
			require.Equal(t, withTTL(t, there.origin, its), withTTL(t, there.destinationOut, its))
			require.Empty(t, withTTL(t, there.originOut, its))
			require.Equal(t, withTTL(t, there.origin, all), withTTL(t, back.destinationOut, all))
			require.Equal(t, withTTL(t, there.destination, all), withTTL(t, back.originOut, all))
			requireSameRest(t, there.origin, back.destinationOut, its)
			requireSameRest(t, there.destination, back.originOut, its)
		})
	}
}

// requireSameRest requires that all keys except some keep their revisions too.
func requireSameRest(t testing.TB, before, after string, but func(key []byte) bool) {
	t.Helper()
	rest := func(key []byte) bool { return !but(key) }
	require.Equal(t, dumped(t, before, rest), dumped(t, after, rest))
}

// TestVerifyImports checks that a permitted change of an import is not a finding.
func TestVerifyImports(t *testing.T) {
	fix, said := move.Import{FixOwner: true}, swap(home(consumer), onRoot, onShard1)
	for name, c := range map[string]struct {
		origin, destination string
		extract             move.Extract
		options             move.Import
		notes               string // text in one of the notes
	}{
		"as it is":                    {root(t), shard1(t), itself, move.Import{}, ""},
		"definitions brought":         {root(t), shard1(t, drop(widgetsDefinition)), itself, move.Import{}, ""},
		"stored versions merged":      {root(t), shard1(t, storedVersions(`"v0"`)), itself, move.Import{}, ""},
		"below another prefix":        {root(t), below(t, shard1(t), "/shard/one"), itself, move.Import{}, ""},
		"out of a live migration":     {root(t, migrating(consumer)), shard1(t), itself, move.Import{}, ""},
		"named, owner elsewhere":      {root(t), shard1(t), itself, move.Import{AsShard: "shard-1"}, ""},
		"owner fixed, with its child": {root(t), alsoRoot(t), family, fix, ""},
		"said to live there before": {root(t, said), shard1(t), itself, move.Import{},
			`which says "root": mend it with --fix-owner`},
	} {
		t.Run(name, func(t *testing.T) {
			m := moveWith(t, c.origin, c.destination, c.extract, c.options, allow("migrating"))
			notes := strings.Join(m.requireSound(t).Notes, "\n")
			require.Equal(t, c.notes != "", strings.Contains(notes, "--fix-owner"), "%q", notes)
			require.Contains(t, notes, c.notes)
			m.withoutInputs().requireSound(t)
		})
	}
}

// storedVersions sets storedVersions of the bound definition of widgets.
func storedVersions(of string) edit {
	return swap(widgetsDefinition, `"storedVersions":["v1"]`, `"storedVersions":[`+of+`]`)
}

// TestLiveMigrationMended checks that put-back and purge repair the damage of kcp's live migration,
// which moved another tenant's objects.
func TestLiveMigrationMended(t *testing.T) {
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	mended := putBack(t, liveShard1, liveRoot, move.PutBack{}).written().out
	cleaned := purge(t, liveShard1, move.Purge{Orphans: true}).written().out
	values := func(path string) map[string]string {
		found := map[string]string{}
		for _, kv := range dumped(t, path, ofCluster(other)) {
			found[string(kv.Key)] = string(kv.Value)
		}
		return found
	}
	trapped := func(key []byte) bool { return strings.Contains(string(key), "/"+other+"/"+consumer+"/") }
	want, remade := values(root(t)), kcptest.Trapped()[0] // recreated by root's controller; the recreated object stays
	want[remade] = values(liveRoot)[remade]
	require.Equal(t, want, values(mended))
	requireSameRest(t, liveRoot, mended, trapped)
	require.Empty(t, dumped(t, cleaned, ofCluster(other)))
	require.Len(t, dumped(t, cleaned, ofCluster(consumer)), 36)
	requireSameRest(t, liveShard1, cleaned, trapped)

	back := moveOf(t, consumer, cleaned, mended) // a separate move restores the logical cluster
	back.requireSound(t)
	require.Len(t, withTTL(t, back.destinationOut, ofCluster(consumer)), 36)
}

// exporterMove moves the owner of APIExports from root to shard-1, with its copies in the cache.
func exporterMove(t testing.TB) moveFiles {
	t.Helper()
	m := moveOf(t, exporter, recorded(t, kcptest.ClaimsRoot), recorded(t, kcptest.ClaimsShard1))
	m.cachesBefore = []string{claimsCache(t)}
	m.caches = []string{purge(t, m.cachesBefore[0], toShard1).written().out}
	return m
}

// claimed returns the ConfigMaps with the label of a permission claim.
func claimed(t testing.TB, path string) []etcdtest.KV {
	t.Helper()
	kvs, _ := kcptest.Dump(t, path)
	return slices.DeleteFunc(kvs, func(kv etcdtest.KV) bool {
		meta, err := encoding.ReadMeta(kv.Value)
		if err == nil && bytes.Contains(kv.Key, []byte("/core/configmaps/")) {
			for label := range meta.Labels {
				if strings.HasPrefix(label, "claimed.internal.apis.kcp.io/") {
					return false
				}
			}
		}
		return true
	})
}

// TestMoveProvider checks that the owner of an APIExport moves with its copies in the cache. kcp
// uses the copies to keep the labels of its permission claims on other tenants' objects.
func TestMoveProvider(t *testing.T) {
	m := exporterMove(t)
	require.Equal(t, 14, requireMoved(t, m.cachesBefore[0], m.caches[0]))
	labelled := claimed(t, m.origin)
	require.Len(t, labelled, 32)
	require.Equal(t, labelled, claimed(t, m.originOut))
	result{t: t, in: m.origin, out: m.originOut}.requireGone(ofCluster(exporter))

	with := m.requireSound(t)
	require.Empty(t, with.Notes)
	m.cachesBefore = nil
	v := m.requireSound(t)
	require.Len(t, v.Notes, 1)
	require.Contains(t, v.Notes[0], "--cache-before")
	require.Equal(t, with.Answers[1], v.Answers[1], "the history of the purge tells as much about the copies")
	m.caches = nil
	v = m.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 2, "of each APIExport")
	require.False(t, v.Sound())
}

// TestMoveProviderSpoiled checks that faults of the copies are found and named, from their history
// and from the input of the purge.
func TestMoveProviderSpoiled(t *testing.T) {
	sound := exporterMove(t)
	to, others := asOf(claimsCopy, "shard-1"), exportsDir+"root/root/tenancy.kcp.io"
	lc := "/cache/core.kcp.io/logicalclusters/customresources/shard-1/" + exporter + "/cluster"
	deleted, third := toShard1, toShard1
	deleted.ToShard, third.ToShard = "", "shard-2"
	before, cache := sound.cachesBefore[0], sound.caches[0]
	for name, c := range map[string]struct {
		cache   string
		history []string // findings without the input of the purge
		before  []string // findings with the input
		key     string
	}{
		"one is lost": {edited(t, cache, drop(to)), []string{"copy-lost"},
			[]string{"copy-lost"}, to},
		"one is changed": {edited(t, cache, flip(to)), []string{"copy-changed"},
			[]string{"copy-changed"}, to},
		"one is not an exporter's, and lost": {edited(t, cache, drop(lc)), []string{"copy-lost"},
			[]string{"copy-lost"}, lc},
		"the origin's are back": {edited(t, cache, put(claimsCopy, "{}")), []string{"stale-copy"},
			[]string{"stale-copy"}, claimsCopy},
		"another's is gone": {edited(t, cache, drop(others)), nil, []string{"cache-touched"}, others},
		"one more": {edited(t, cache, put(to+"2", "{}")), nil, []string{"copy-changed"},
			to + "2"},
		"all are deleted": {
			purge(t, before, deleted, allow("exports-in-cache")).written().out, []string{"copy-lost"},
			[]string{"copy-lost"}, to,
		},
		"another shard got them": {purge(t, before, third).written().out, []string{"stale-copy"},
			[]string{"copy-lost", "stale-copy"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := sound
			m.caches = []string{c.cache}
			for _, want := range [][]string{c.before, c.history} {
				v := m.verdict(t)
				require.Subset(t, codesOf(v), want, "%+v", v.Findings)
				if m.cachesBefore = nil; len(want) > 0 {
					named := func(f move.Finding) bool { return f.Key == c.key || c.key == "" }
					require.True(t, slices.ContainsFunc(v.Findings, named), "%s: %+v", c.key, v.Findings)
					require.False(t, v.Sound())
				}
			}
		})
	}
}

// TestMoveProviderScrubbed checks a cache without history, using only the input of its purge.
func TestMoveProviderScrubbed(t *testing.T) {
	m, o := exporterMove(t), toShard1
	o.Scrub = true
	m.caches = []string{purge(t, m.cachesBefore[0], o).written().out}
	m.requireSound(t)
	m.cachesBefore = nil
	v := m.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 14)
	require.Contains(t, v.Unchecked[0].Reason, "--cache-before")
}

// TestMoveProviderOfOneEtcd checks that with the cache in the origin's etcd, one purge changes
// both, and is verified with its input and without.
func TestMoveProviderOfOneEtcd(t *testing.T) {
	m := moveWith(t, claimsInOne(t), recorded(t, kcptest.ClaimsShard1), move.Extract{Name: exporter}, move.Import{},
		allow("exports-in-cache"))
	m.requireFound(t, "copy-lost")
	for _, scrub := range []bool{true, false} {
		m.originOut = purge(t, m.origin, move.Purge{Name: exporter, ToShard: "shard-1", Scrub: scrub},
			led).written().out
		m.requireSound(t)
		without := m
		without.origin = ""
		if !scrub {
			without.requireSound(t)
		} else {
			v := without.verdict(t)
			require.Empty(t, v.Findings)
			require.NotEmpty(t, v.Unchecked)
		}
	}
	m.originOut = edited(t, m.originOut, flip(asOf(claimsCopy, "shard-1")))
	m.requireFound(t, "copy-changed")
	m.origin = ""
	m.requireFound(t, "copy-changed")
}

// TestMoveProviderToTheCache checks that with the cache in the destination's etcd, its copies move
// in the output of the import.
func TestMoveProviderToTheCache(t *testing.T) {
	const name = kcptest.ClaimsProvider1
	m := moveOf(t, name, recorded(t, kcptest.ClaimsShard1), claimsInOne(t))
	came := importInto(t, m.archive, m.destination, move.Import{}).written()
	came.requireSteps("--from-shard shard-1 --to-shard root; restore that output then",
		"kcp verify "+m.archive+" ORIGIN-OUT OUT-2")
	came.requireNoStep("CACHE-OUT")
	m.destinationOut = purge(t, came.out, move.Purge{Name: name, FromShard: "shard-1", ToShard: "root"}).written().out
	m.requireSound(t)
	m.destination = ""
	m.requireSound(t)
	m.destinationOut = edited(t, m.destinationOut, drop(exportsDir+"root/"+name+"/one.dev"))
	require.Contains(t, codesOf(m.verdict(t)), "copy-lost")
}
