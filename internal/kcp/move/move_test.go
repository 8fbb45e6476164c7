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

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
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
	m := moveFiles{origin: origin, destination: destination, archive: extractOf(t, origin, extraction{Name: name})}
	m.originOut = purgeOf(t, name, origin)
	m.destinationOut = importInto(t, m.archive, destination, move.Import{}, transform.Options{}).written().out
	return m
}

// purgeOf is a file without a logical cluster.
func purgeOf(t testing.TB, name, in string) (out string) {
	t.Helper()
	return purgeWith(t, in, move.Purge{Name: name}, "owner-points-here")
}

// purgeWith is the output of a purge.
func purgeWith(t testing.TB, in string, o move.Purge, allow ...string) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "purged.db")
	r, err := transform.Run(context.Background(), transform.Options{In: in, Out: out, Allow: allow, Prefixes: o.Prefixes}, &o)
	require.NoError(t, err, "%+v", r.Problems)
	return out
}

// verdict opens the files of a move and checks it.
func (m moveFiles) verdict(t testing.TB, more ...func(*move.Move)) *move.Verdict {
	t.Helper()
	v, err := m.verify(t, more...)
	require.NoError(t, err)
	return v
}

func (m moveFiles) verify(t testing.TB, more ...func(*move.Move)) (*move.Verdict, error) {
	t.Helper()
	return m.open(t, more...).Verify(context.Background())
}

func (m moveFiles) open(t testing.TB, more ...func(*move.Move)) move.Move {
	t.Helper()
	open := func(path string) *inspect.Reader {
		if path == "" {
			return nil
		}
		return inspect.NewReader(openFile(t, path), nil)
	}
	move := move.Move{
		Archive: open(m.archive), OriginOut: open(m.originOut), DestinationOut: open(m.destinationOut),
		Origin: open(m.origin), Destination: open(m.destination),
	}
	for _, path := range m.caches {
		move.Caches = append(move.Caches, open(path))
	}
	for _, path := range m.cachesBefore {
		move.CachesBefore = append(move.CachesBefore, open(path))
	}
	for _, change := range more {
		change(&move)
	}
	return move
}

// requireSound requires that each question is answered with no.
func requireSound(t testing.TB, v *move.Verdict) {
	t.Helper()
	require.Empty(t, v.Findings)
	require.Empty(t, v.Unchecked)
	require.Len(t, v.Answers, len(move.Questions()))
	for _, a := range v.Answers {
		require.Equal(t, "no", a.Answer, "%s", a.Question)
		require.NotZero(t, a.Checked, "%s", a.Question)
	}
	require.True(t, v.Sound())
}

// withTTL are keys with their values and lease TTLs, as a restored etcd answers.
func withTTL(t testing.TB, path string, of func(key []byte) bool) map[string][2]any {
	t.Helper()
	kvs, leases := kcptest.Dump(t, path)
	found := map[string][2]any{}
	for _, kv := range kvs {
		if of(kv.Key) {
			require.Equal(t, kv.Lease != 0, leases[kv.Lease] != 0, "%s", kv.Key)
			found[string(kv.Key)] = [2]any{string(kv.Value), leases[kv.Lease]}
		}
	}
	return found
}

// TestThereAndBack: a logical cluster that goes to another shard and comes back has the same keys,
// values and lease TTLs as at first, and so has everything else on both shards, to the revision;
// each move is found sound.
func TestThereAndBack(t *testing.T) {
	for _, name := range []string{kcptest.Consumer, kcptest.Other} {
		t.Run(name, func(t *testing.T) {
			root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
			there := moveOf(t, name, root, shard1)
			requireSound(t, there.verdict(t))
			back := moveOf(t, name, there.destinationOut, there.originOut)
			requireSound(t, back.verdict(t))

			its := func(key []byte) bool { return clusterOf(key) == name }
			all := func([]byte) bool { return true }
			require.NotEmpty(t, withTTL(t, there.destinationOut, its))
			require.Equal(t, withTTL(t, root, its), withTTL(t, there.destinationOut, its))
			require.Empty(t, withTTL(t, there.originOut, its))
			require.Equal(t, withTTL(t, root, all), withTTL(t, back.destinationOut, all))
			require.Equal(t, withTTL(t, shard1, all), withTTL(t, back.originOut, all))
			requireSameRest(t, root, back.destinationOut, its)
			requireSameRest(t, shard1, back.originOut, its)
		})
	}
}

// requireSameRest requires that all keys but some are at their old revisions, too.
func requireSameRest(t testing.TB, before, after string, but func(key []byte) bool) {
	t.Helper()
	was, _ := kcptest.Dump(t, before)
	is, _ := kcptest.Dump(t, after)
	theirs := func(kv etcdtest.KV) bool { return but(kv.Key) }
	require.Equal(t, slices.DeleteFunc(was, theirs), slices.DeleteFunc(is, theirs))
}

// TestVerifyImports: whatever an import may change, it is found to be the import's, and no more
// than that.
func TestVerifyImports(t *testing.T) {
	root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
	for name, c := range map[string]struct {
		origin, destination string
		extract             extraction
		options             move.Import
		allow               []string
		notes               string // in one of the notes
	}{
		"as it is":                    {origin: root, destination: shard1},
		"definitions brought":         {origin: root, destination: edit1(t, shard1, drop(widgetsDefinition))},
		"stored versions merged":      {origin: root, destination: edit1(t, shard1, swap(widgetsDefinition, `"storedVersions":["v1"]`, `"storedVersions":["v0"]`))},
		"below another prefix":        {origin: root, destination: below(t, shard1, "/shard/one")},
		"out of a live migration":     {origin: migrating(t, root), destination: shard1, extract: extraction{Allow: []string{"migrating"}}, allow: []string{"migrating"}},
		"named, owner elsewhere":      {origin: root, destination: shard1, options: move.Import{AsShard: "shard-1"}},
		"owner fixed, with its child": {origin: root, destination: alsoRoot(t, root, shard1), extract: extraction{WithChildren: true}, options: move.Import{FixOwner: true}},
		"said to live there before": {
			origin: edit1(t, root, swap(kcptest.LogicalClusterKey(kcptest.Consumer), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`)), destination: shard1,
			notes: `which says "root": mend it with --fix-owner`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.extract.Name = kcptest.Consumer
			m := moveFiles{origin: c.origin, destination: c.destination, archive: extractOf(t, c.origin, c.extract)}
			allow := append(c.allow, "owner-points-here")
			m.originOut = purgeWith(t, c.origin, move.Purge{Name: kcptest.Consumer, WithChildren: c.extract.WithChildren}, allow...)
			m.destinationOut = importInto(t, m.archive, c.destination, c.options, transform.Options{}).written().out
			v := m.verdict(t)
			requireSound(t, v)
			require.Equal(t, c.notes != "", strings.Contains(strings.Join(v.Notes, "\n"), "--fix-owner"), "%q", v.Notes)
			require.Contains(t, strings.Join(v.Notes, "\n"), c.notes)
			m.origin, m.destination = "", ""
			requireSound(t, m.verdict(t))
		})
	}
}

func edit1(t *testing.T, path string, change func(*testing.T, *clientv3.Client)) string {
	t.Helper()
	return kcptest.Edit(t, path, func(client *clientv3.Client) { change(t, client) })
}

func migrating(t *testing.T, root string) string {
	t.Helper()
	return edit1(t, root, swap(kcptest.LogicalClusterKey(kcptest.Consumer), `"internal.tenancy.kcp.io/type"`, `"internal.kcp.io/migrating":"root:m","internal.tenancy.kcp.io/type"`))
}

// alsoRoot is a shard that has consumer's Workspace too.
func alsoRoot(t *testing.T, root, shard string) string {
	t.Helper()
	kvs, _ := kcptest.Dump(t, root)
	return edit1(t, shard, func(t *testing.T, client *clientv3.Client) {
		for _, kv := range kvs {
			if key := string(kv.Key); key == kcptest.WorkspaceKey("consumer") || key == kcptest.LogicalClusterKey("root") {
				kcptest.Put(t, client, key, kv.Value)
			}
		}
	})
}

// TestLiveMigrationMended: both shards after kcp's own live migration, which took another tenant's
// objects along, are again as they would be without that damage: the objects are back, no orphan is
// left, nothing else is another.
func TestLiveMigrationMended(t *testing.T) {
	before, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Root))
	root, shard1 := kcptest.LiveMigrated(t)
	mended := putBack(t, shard1, root, move.PutBack{}, transform.Options{}).written().out
	cleaned := purgeWith(t, shard1, move.Purge{Orphans: true})

	trapped := func(key []byte) bool {
		return strings.Contains(string(key), "/"+kcptest.Other+"/"+kcptest.Consumer+"/")
	}
	want := valuesOf(before, kcptest.Other)
	remade := kcptest.Trapped()[0] // by root's controller; that one stays
	broken, _ := kcptest.Dump(t, root)
	want[remade] = valuesOf(broken, kcptest.Other)[remade]
	after, _ := kcptest.Dump(t, mended)
	require.Equal(t, want, valuesOf(after, kcptest.Other))
	requireSameRest(t, root, mended, trapped)

	onShard1, _ := kcptest.Dump(t, cleaned)
	require.Empty(t, ofCluster(onShard1, kcptest.Other))
	require.Len(t, ofCluster(onShard1, kcptest.Consumer), 36)
	requireSameRest(t, shard1, cleaned, trapped)

	// And by a move of its own the logical cluster is back where it was.
	back := moveOf(t, kcptest.Consumer, cleaned, mended)
	requireSound(t, back.verdict(t))
	require.Len(t, withTTL(t, back.destinationOut, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }), 36)
}

// valuesOf are those of a logical cluster, by key.
func valuesOf(kvs []etcdtest.KV, cluster string) map[string]string {
	found := map[string]string{}
	for _, kv := range ofCluster(kvs, cluster) {
		found[string(kv.Key)] = string(kv.Value)
	}
	return found
}

// providerMove moves the owner of APIExports from root to shard-1, its copies in the cache with it.
func providerMove(t testing.TB) moveFiles {
	t.Helper()
	m := moveOf(t, kcptest.ClaimsProvider, kcptest.Recorded(t, kcptest.ClaimsRoot), kcptest.Recorded(t, kcptest.ClaimsShard1))
	m.cachesBefore = []string{kcptest.Recorded(t, kcptest.ClaimsCache)}
	m.caches = []string{purgeWith(t, m.cachesBefore[0], toShard1)}
	return m
}

// claimed are the ConfigMaps that have the label of a permission claim.
func claimed(t testing.TB, path string) (found []etcdtest.KV) {
	t.Helper()
	kvs, _ := kcptest.Dump(t, path)
	return slices.DeleteFunc(kvs, func(kv etcdtest.KV) bool {
		meta, err := encoding.ReadMeta(kv.Value)
		if err != nil || !bytes.Contains(kv.Key, []byte("/core/configmaps/")) {
			return true
		}
		for label := range meta.Labels {
			if bytes.HasPrefix([]byte(label), []byte("claimed.internal.apis.kcp.io/")) {
				return false
			}
		}
		return true
	})
}

// TestMoveProvider: the owner of an APIExport moves; what makes kcp keep the labels of its
// permission claims on other tenants' objects, its copies in the cache, moves with it and is the
// same, key by key; the labels are as they were.
func TestMoveProvider(t *testing.T) {
	m := providerMove(t)
	require.Equal(t, 14, requireMoved(t, m.cachesBefore[0], m.caches[0], kcptest.ClaimsProvider))
	labelled := claimed(t, m.origin)
	require.Len(t, labelled, 32)
	require.Equal(t, labelled, claimed(t, m.originOut))
	requireGone(t, m.origin, m.originOut, func(key []byte) bool { return clusterOf(key) == kcptest.ClaimsProvider })

	v := m.verdict(t)
	requireSound(t, v)
	require.Empty(t, v.Notes)
	with := checkedOf(v, move.QuestionLost)
	without := m
	without.cachesBefore = nil
	v = without.verdict(t)
	requireSound(t, v)
	require.Len(t, v.Notes, 1)
	require.Contains(t, v.Notes[0], "--cache-before")
	require.Equal(t, with, checkedOf(v, move.QuestionLost), "the copies are compared by the history of the purge")
	without.caches = nil
	v = without.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 2, "of each APIExport")
	require.False(t, v.Sound())
}

func checkedOf(v *move.Verdict, q move.Question) int {
	for _, a := range v.Answers {
		if a.Question == q {
			return a.Checked
		}
	}
	return 0
}

// TestMoveProviderSpoiled: what is wrong with the copies is found and named, by their history and
// by the input of the purge.
func TestMoveProviderSpoiled(t *testing.T) {
	sound := providerMove(t)
	to, other := asOf(claimsCopy, "shard-1"), exportsDir+"root/root/tenancy.kcp.io"
	cache := func(m *moveFiles) *string { return &m.caches[0] }
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, m *moveFiles)
		history []string // found without the input of the purge
		before  []string // and with it
		key     string
	}{
		"one is lost":    {on(cache, drop(to)), []string{"copy-lost"}, []string{"copy-lost"}, to},
		"one is changed": {on(cache, flip(to)), []string{"copy-changed"}, []string{"copy-changed"}, to},
		"one is not an exporter's, and lost": {
			on(cache, drop("/cache/core.kcp.io/logicalclusters/customresources/shard-1/"+kcptest.ClaimsProvider+"/cluster")),
			[]string{"copy-lost"}, []string{"copy-lost"}, "/cache/core.kcp.io/logicalclusters/customresources/shard-1/" + kcptest.ClaimsProvider + "/cluster",
		},
		"the origin's are back": {on(cache, put(claimsCopy, "{}")), []string{"stale-copy"}, []string{"stale-copy"}, claimsCopy},
		"another's is gone":     {on(cache, drop(other)), nil, []string{"cache-touched"}, other},
		"one more":              {on(cache, put(to+"2", "{}")), nil, []string{"copy-changed"}, to + "2"},
		"all are deleted": {func(t *testing.T, m *moveFiles) {
			o := toShard1
			o.ToShard = ""
			m.caches = []string{purgeWith(t, m.cachesBefore[0], o, "exports-in-cache")}
		}, []string{"copy-lost"}, []string{"copy-lost"}, to},
		"another shard got them": {func(t *testing.T, m *moveFiles) {
			o := toShard1
			o.ToShard = "shard-2"
			m.caches = []string{purgeWith(t, m.cachesBefore[0], o)}
		}, []string{"stale-copy"}, []string{"copy-lost", "stale-copy"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := sound
			m.caches = slices.Clone(sound.caches)
			c.spoil(t, &m)
			v := m.verdict(t)
			require.Subset(t, codesOf(v), c.before, "%+v", v.Findings)
			requireNames(t, v, c.key)
			m.cachesBefore = nil
			v = m.verdict(t)
			require.Subset(t, codesOf(v), c.history, "%+v", v.Findings)
			if len(c.history) > 0 {
				requireNames(t, v, c.key)
			}
		})
	}
}

func requireNames(t *testing.T, v *move.Verdict, key string) {
	t.Helper()
	require.False(t, v.Sound())
	require.True(t, key == "" || slices.ContainsFunc(v.Findings, func(f move.Finding) bool { return f.Key == key }), "%s: %+v", key, v.Findings)
}

// TestMoveProviderScrubbed: a cache without history is checked by the input of its purge alone.
func TestMoveProviderScrubbed(t *testing.T) {
	m := providerMove(t)
	o := toShard1
	o.Scrub = true
	m.caches = []string{purgeWith(t, m.cachesBefore[0], o)}
	requireSound(t, m.verdict(t))
	m.cachesBefore = nil
	v := m.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 14)
	require.Contains(t, v.Unchecked[0].Reason, "--cache-before")
}

// TestMoveProviderOfOneEtcd: where the origin's etcd holds the cache, one purge does both, and is
// checked with its input and without.
func TestMoveProviderOfOneEtcd(t *testing.T) {
	root := claimsInOne(t)
	m := moveFiles{origin: root, destination: kcptest.Recorded(t, kcptest.ClaimsShard1), archive: extractOf(t, root, extraction{Name: kcptest.ClaimsProvider})}
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
	for _, scrub := range []bool{false, true} {
		m.originOut = purgeWith(t, root, move.Purge{Name: kcptest.ClaimsProvider, ToShard: "shard-1", Scrub: scrub}, "owner-points-here")
		requireSound(t, m.verdict(t))
		without := m
		without.origin = ""
		if v := without.verdict(t); !scrub {
			requireSound(t, v)
		} else {
			require.Empty(t, v.Findings)
			require.NotEmpty(t, v.Unchecked)
		}
	}
	m.originOut = purgeWith(t, root, move.Purge{Name: kcptest.ClaimsProvider}, "owner-points-here", "exports-in-cache")
	require.Equal(t, []string{"copy-lost"}, codesOf(m.verdict(t)))
	m.originOut = purgeWith(t, root, move.Purge{Name: kcptest.ClaimsProvider, ToShard: "shard-1"}, "owner-points-here")
	on(originOut, flip(asOf(claimsCopy, "shard-1")))(t, &m)
	require.Equal(t, []string{"copy-changed"}, codesOf(m.verdict(t)))
	m.origin = ""
	require.Equal(t, []string{"copy-changed"}, codesOf(m.verdict(t)))
}

// TestMoveProviderToTheCache: where the destination's etcd holds the cache, its copies move in the
// output of the import.
func TestMoveProviderToTheCache(t *testing.T) {
	from, to := kcptest.Recorded(t, kcptest.ClaimsShard1), claimsInOne(t)
	archived := extractOf(t, from, extraction{Name: kcptest.ClaimsProvider1})
	m := moveFiles{archive: archived, origin: from, originOut: purgeOf(t, kcptest.ClaimsProvider1, from), destination: to}
	came := importInto(t, archived, to, move.Import{}, transform.Options{}).written()
	require.True(t, hasStep(came.report.Steps, "--from-shard shard-1 --to-shard root; restore that output then"), "%q", came.report.Steps)
	require.True(t, hasStep(came.report.Steps, "kcp verify "+archived+" ORIGIN-OUT OUT-2"), "%q", came.report.Steps)
	require.False(t, hasStep(came.report.Steps, "CACHE-OUT"), "%q", came.report.Steps)
	o := move.Purge{Name: kcptest.ClaimsProvider1, FromShard: "shard-1", ToShard: "root"}
	m.destinationOut = purgeWith(t, came.out, o)
	requireSound(t, m.verdict(t))
	m.destination = ""
	requireSound(t, m.verdict(t))
	one := exportsDir + "root/" + kcptest.ClaimsProvider1 + "/one.dev"
	on(destinationOut, func(t *testing.T, client *clientv3.Client) { kcptest.Delete(t, client, one) })(t, &m)
	require.Contains(t, codesOf(m.verdict(t)), "copy-lost")
}

// TestFrontProxies: every list of steps stops the front-proxies before anything else, and starts
// them after all files are made.
func TestFrontProxies(t *testing.T) {
	root, shard1, cache := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1), kcptest.Recorded(t, kcptest.Cache)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	_, back := purgedRoot(t)
	_, tree := extracted(t, root, extraction{Name: kcptest.Consumer, WithChildren: true})
	inOrder := func(r *report) []string {
		require.Contains(t, r.Steps[0], "stop all front-proxies first")
		require.Contains(t, r.Steps[r.BeforeRestore-2], "restore every member")
		return r.Steps
	}
	purgeSteps := func(in string, o move.Purge) []string {
		r, _ := purged(t, in, o, "owner-points-here")
		return inOrder(r)
	}
	importSteps := func(into string, o move.Import) []string {
		return inOrder(importInto(t, from, into, o, transform.Options{}).written().report)
	}
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	for name, steps := range map[string][]string{
		"extract":           extractSteps(t, root),
		"import":            importSteps(shard1, move.Import{}),
		"import of a tree":  inOrder(importInto(t, tree, shard1, move.Import{}, transform.Options{}).written().report),
		"import where from": importSteps(back, move.Import{}),
		"import fixed":      importSteps(back, move.Import{FixOwner: true, AsShard: "shard-1"}),
		"put back":          inOrder(putBack(t, liveShard1, liveRoot, move.PutBack{}, transform.Options{}).written().report),
		"purge":             purgeSteps(root, move.Purge{Name: kcptest.Consumer}),
		"purge of a tree":   purgeSteps(root, move.Purge{Name: kcptest.Consumer, WithChildren: true}),
		"purge of orphans":  purgeSteps(liveShard1, move.Purge{Orphans: true}),
		"purge of copies":   purgeSteps(cache, move.Purge{Name: kcptest.Consumer, FromShard: "root"}),
		"move of copies":    purgeSteps(cache, move.Purge{Name: kcptest.Provider, FromShard: "root", ToShard: "shard-1"}),
		"purge and move":    purgeSteps(kcptest.Single(t), move.Purge{Name: kcptest.Provider, ToShard: "shard-1"}),
	} {
		t.Run(name, func(t *testing.T) {
			stop := slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, "stop all front-proxies first") })
			start := slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, "start the front-proxies last") })
			require.GreaterOrEqual(t, stop, 0, "%q", steps)
			require.Greater(t, start, stop, "%q", steps)
			for n, step := range steps {
				switch command := strings.Contains(step, "etcdshift kcp "); {
				case n < stop:
					require.NotContains(t, step, "stop ")
					require.False(t, command, "%q", step)
				case n > start:
					require.NotContains(t, step, "etcdutl")
					require.False(t, command && strings.Contains(step, "purge"), "%q", step)
					require.NotContains(t, step, "stop ")
				}
			}
		})
	}
}

func extractSteps(t *testing.T, in string) []string {
	t.Helper()
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	return r.Steps
}
