package move_test

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// rewrite is a snapshot with changes on top that no etcd would make.
func rewrite(
	t *testing.T, in string, leases []snapshot.Lease, changes func(yield func(snapshot.Change, error) bool),
) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "rewritten.db")
	_, err := snapshot.Write(context.Background(), out, openFile(t, in), changes, snapshot.WriteConfig{Leases: leases})
	require.NoError(t, err)
	return out
}

// leaseOf has a record name a lease, granted or not.
func leaseOf(t *testing.T, in, key string, lease int64) string {
	t.Helper()
	rec, err := openFile(t, in).Get(context.Background(), []byte(key))
	require.NoError(t, err)
	return rewrite(t, in, nil, func(yield func(snapshot.Change, error) bool) {
		yield(snapshot.Change{Key: rec.Key, Value: rec.Value, Lease: lease, Prior: rec.ModRevision}, nil)
	})
}

// arriveIn has the records of consumer in the archive, with their leases, on top of a destination.
func (m moveFiles) arriveIn(t *testing.T, destination string) string {
	t.Helper()
	var leases []snapshot.Lease
	for id, ttl := range leasesOf(t, m.archive) {
		leases = append(leases, snapshot.Lease{ID: id, TTL: ttl})
	}
	slices.SortFunc(leases, func(a, b snapshot.Lease) int { return cmp.Compare(a.ID, b.ID) })
	src := openFile(t, m.archive)
	return rewrite(t, destination, leases, func(yield func(snapshot.Change, error) bool) {
		for rec, err := range src.Live(context.Background(), nil) {
			if err == nil && clusterOf(rec.Key) != consumer {
				continue
			}
			if !yield(snapshot.Change{Key: rec.Key, Value: rec.Value, Lease: rec.Lease}, err) {
				return
			}
		}
	})
}

// TestVerifyStillMigrating: the mark of a live migration is found where the LogicalCluster is the
// archive's, to the byte.
func TestVerifyStillMigrating(t *testing.T) {
	m := moveWith(t, root(t, migrating(consumer)), shard1(t), itself, move.Import{}, allow("migrating"))
	m.destinationOut = m.arriveIn(t, m.destination)
	m.requireFound(t, "still-migrating")
}

// TestVerifyDefinitions: a definition that came is the archive's to the byte; one that was there
// before keeps all but its stored versions, and has those of both.
func TestVerifyDefinitions(t *testing.T) {
	sound := moveOf(t, consumer, root(t), shard1(t))
	into := func(before ...edit) moveFiles {
		m := sound
		m.destination = edited(t, m.destination, before...)
		m.destinationOut = m.arriveIn(t, m.destination)
		return m
	}
	m := into(drop(widgetsDefinition))
	changed := swapped(t, valueIn(t, m.archive, widgetsDefinition), `"apis.kcp.io/bound-crd"`,
		`"apis.kcp.io/bound-crt"`)
	m.destinationOut = m.arriveIn(t, edited(t, m.destination, put(widgetsDefinition, changed)))
	for _, m := range []moveFiles{m, m.withoutInputs()} {
		require.Equal(t, widgetsDefinition, m.requireFound(t, "definition-changed").Findings[0].Key)
	}
	into(swap(widgetsDefinition, `"apis.kcp.io/schema-name"`, `"apis.kcp.io/schema-nome"`)).requireSound(t)
	into(swap(widgetsDefinition, `"apiVersion":"apiextensions.k8s.io/v1"`,
		`"apiVersion":"apiextensions.k8s.io/v1beta1"`,
		`"scope":"Namespaced"`, `"scope":"Cluster"`)).requireFound(t, "definition-changed")

	m = moveOf(t, consumer, sound.origin, shard1(t, storedVersions(`"v0"`)))
	m.requireSound(t)
	for _, before := range []string{`"v0","v9"`, `"v1"`, `"v1","v0"`} { // lost, invented, in another order
		m.destination = shard1(t, storedVersions(before))
		m.requireFound(t, "destination-touched")
	}
	moveOf(t, consumer, root(t, storedVersions(`"v0","v1"`)), sound.destination).requireSound(t) // the spec lacks v0
}

// TestVerifyNames: a name that differs from the archive's does not hide copies of the origin, nor
// does the name of a third shard.
func TestVerifyNames(t *testing.T) {
	m := moveOf(t, consumer, root(t), shard1(t))
	_, err := m.open(t, func(m *move.Move) { m.FromShard = "shard-9" }).Verify(t.Context())
	require.ErrorIs(t, err, move.ErrFromShard)
	notes := func(v *move.Verdict) string { return strings.Join(v.Notes, "\n") }
	require.NotContains(t, notes(m.requireSound(t, func(m *move.Move) { m.FromShard = "root" })), "says of itself")
	require.Contains(t, notes(m.verdict(t, func(m *move.Move) { m.AsShard = "shard-9" })),
		`says of itself that it is shard "shard-1", and is checked as "shard-9"`)

	copied := func(shard string) string {
		return "/cache/rbac.authorization.k8s.io/clusterrolebindings/customresources/" + shard + "/" + consumer +
			"/workspace-admin"
	}
	cache, o := recorded(t, kcptest.Cache), move.Purge{Name: consumer, FromShard: "root"}
	purged := purge(t, cache, o).written().out
	m.caches = []string{purged}
	m.requireSound(t)
	m.caches = []string{cache, purged}
	require.Equal(t, cache, m.requireFound(t, "stale-copy").Findings[0].File)
	m.caches = []string{edited(t, purged, put(copied("shard-9"), "x"))}
	require.Equal(t, copied("shard-9"), m.requireFound(t, "stale-copy").Findings[0].Key)
	m.caches = []string{edited(t, purged, put(copied("shard-1"), "x"))}
	m.requireFound(t, "copy-changed") // the destination's, but another than the origin wrote
	o.ToShard = "shard-1"
	m.caches = []string{purge(t, cache, o).written().out}
	m.requireSound(t)
}

// TestVerifySeveralShards: all storages of both files are checked: the logical cluster must not
// live in a second one, and identities and Workspaces of another one count.
func TestVerifySeveralShards(t *testing.T) {
	there := under("/registry")
	prefix := func(m *move.Move) { m.Prefixes = []string{"/registry"} }
	m := moveOf(t, consumer, root(t), shard1(t))
	m.destination = edited(t, purgeOf(t, consumer1, m.destination), withShard(t, m.originOut, "/shard/root"))
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{FixOwner: true}, there).written().out
	m.requireSound(t, prefix)
	m.destination = ""
	m.requireSound(t, prefix)

	m = moveWith(t, root(t, withShard(t, root(t), "/shard/two")), shard1(t), itself, move.Import{}, there)
	v := m.requireFound(t, "elsewhere")
	require.Len(t, v.Findings, 36)
	require.Equal(t, m.originOut, v.Findings[0].File)

	m = moveOf(t, consumer, root(t), shard1(t))
	came, _ := result{t: t, in: m.destination, out: m.destinationOut}.arrived()
	m.destination = edited(t, m.destination, putAll(dumped(t, root(t),
		func(key []byte) bool { return clusterOf(key) != "" }), "/shard/two"))
	m.destinationOut = edited(t, m.destination, putAll(came, ""))
	require.Contains(t, codesOf(m.verdict(t, prefix)), "elsewhere")
	_, err := m.open(t).Verify(t.Context())
	require.ErrorIs(t, err, kcp.ErrSeveralShards)
}

// TestVerifyLeases: a record that names a lease which the file lacks has none, and no record of
// others may be attached to one that came.
func TestVerifyLeases(t *testing.T) {
	sound := moveOf(t, consumer, root(t), shard1(t))
	m := sound
	m.destinationOut = leaseOf(t, m.destinationOut, itsSettings, 4711)
	require.Equal(t, itsSettings, m.requireFound(t, "lease-differs").Findings[0].Key)

	m = sound
	event, err := openFile(t, m.archive).Get(t.Context(), []byte(itsEvent))
	require.NoError(t, err)
	require.NotZero(t, event.Lease)
	m.destinationOut = m.arriveIn(t, m.destination)
	m.requireSound(t)
	m.destination = leaseOf(t, m.destination, another, event.Lease) // until it is granted, in vain
	m.destinationOut = m.arriveIn(t, m.destination)
	require.Equal(t, another, m.requireFound(t, "destination-touched").Findings[0].Key)
}

// TestVerifyInTheClear: a value that was encrypted and is not any more is found without any key, as
// is one that comes in the clear to a shard that encrypts all others of its type. The same bytes
// under the same key are the same value.
func TestVerifyInTheClear(t *testing.T) {
	m := moveWith(t, root(t, put(itsSecret, opaque)), shard1(t), itself, move.Import{}, allow("encrypted"))
	m.requireSound(t)
	m.destinationOut = edited(t, m.destinationOut, put(itsSecret, "in the clear"))
	v := m.requireFound(t, "in-the-clear")
	require.Equal(t, itsSecret, v.Findings[0].Key)
	require.Empty(t, v.Unchecked)
	m.destinationOut = edited(t, m.destinationOut, put(itsSecret, strings.Replace(opaque, "key1", "key2", 1)))
	v = m.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 1)
	u := v.Unchecked[0]
	require.Equal(t, []any{itsSecret, move.QuestionLost, m.archive}, []any{u.Key, u.Question, u.File})
	require.Nil(t, u.Code)
	require.False(t, v.Sound())
	require.Equal(t, "unknown", v.Answers[1].Answer)

	m = moveOf(t, consumer, root(t), shard1(t))
	edits := []edit{put(secrets+consumer1+"/default/more", opaque)}
	for _, kv := range dumped(t, m.destination,
		func(key []byte) bool { return bytes.HasPrefix(key, []byte(secrets)) }) {
		edits = append(edits, put(string(kv.Key), opaque))
	}
	m.destination = edited(t, m.destination, edits...)
	m.destinationOut = m.arriveIn(t, m.destination)
	require.Equal(t, itsSecret, m.requireFound(t, "in-the-clear").Findings[0].Key)
	m.destination = edited(t, m.destination, put(secrets+consumer1+"/default/clear", "x"))
	m.destinationOut = m.arriveIn(t, m.destination)
	m.requireSound(t) // it does not encrypt all
}

// TestVerifyForged: an archive whose manifest gives records another type is damaged.
func TestVerifyForged(t *testing.T) {
	dir := "/core/configmaps/" + consumer + "/"
	s := forged(t, dir+"default/a", archive.Resource{Resource: "secrets", Dir: dir}, consumer, nil)
	v := moveOf(t, consumer, root(t), shard1(t)).verdict(t,
		func(m *move.Move) { m.Archive = inspect.NewReader(s, nil) })
	require.Equal(t, []string{"archive-damaged"}, codesOf(v))
}

// TestVerifyUnserved: objects that kcp does not serve on the destination are in the notes.
func TestVerifyUnserved(t *testing.T) {
	m := moveOf(t, consumer, root(t), shard1(t))
	require.NotContains(t, strings.Join(m.verdict(t).Notes, "\n"), "definition")
	m = moveWith(t, root(t, swap(itsWidget, "example.dev/v1", "example.dev/v9")), m.destination, itself, move.Import{},
		allow("unlisted-version"))
	require.Contains(t, strings.Join(m.requireSound(t).Notes, "\n"), `stored at version "v9"`)
}
