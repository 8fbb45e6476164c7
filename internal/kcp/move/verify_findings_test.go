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
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// rewrite returns a snapshot with added changes that etcd would never make.
func rewrite(
	t *testing.T, in string, leases []snapshot.Lease, changes func(yield func(snapshot.Change, error) bool),
) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "rewritten.db")
	_, err := snapshot.Write(context.Background(), out, openFile(t, in), changes, snapshot.WriteConfig{Leases: leases})
	require.NoError(t, err)
	return out
}

// leaseOf sets the lease of a record, granted or not.
func leaseOf(t *testing.T, in, key string, lease int64) string {
	t.Helper()
	rec, err := openFile(t, in).Get(context.Background(), []byte(key))
	require.NoError(t, err)
	return rewrite(t, in, nil, func(yield func(snapshot.Change, error) bool) {
		yield(snapshot.Change{Key: rec.Key, Value: rec.Value, Lease: lease, Prior: rec.ModRevision}, nil)
	})
}

// arriveIn adds the archive's records of consumer, with their leases, to a destination.
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

// TestVerifyStillMigrating checks that the annotation of a live migration is found even in a
// LogicalCluster equal to the archive's.
func TestVerifyStillMigrating(t *testing.T) {
	m := moveWith(t, root(t, migrating(consumer)), shard1(t), itself, move.Import{}, allow("migrating"))
	m.destinationOut = m.arriveIn(t, m.destination)
	m.requireFound(t, "still-migrating")
}

// TestVerifyDefinitions checks that an imported definition is equal to the archive's to the byte;
// an older definition keeps all but its stored versions, and has the stored versions of both.
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

// TestVerifyNames checks that a name that differs from the archive's does not hide copies of the
// origin, nor does the name of a third shard.
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
	m.requireFound(t, "copy-changed") // under the destination's name, but different from the origin's copy
	o.ToShard = "shard-1"
	m.caches = []string{purge(t, cache, o).written().out}
	m.requireSound(t)
}

// TestVerifySeveralShards checks all storages of both files: the logical cluster must not live in a
// second storage, and identities and Workspaces of other storages count.
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

// TestVerifyLeases checks that a record with a missing lease counts as without a lease, and no
// other record may have an imported lease.
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
	m.destination = leaseOf(t, m.destination, another, event.Lease) // set before the grant, in vain
	m.destinationOut = m.arriveIn(t, m.destination)
	require.Equal(t, another, m.requireFound(t, "destination-touched").Findings[0].Key)
}

// TestVerifyInTheClear checks without any key that a value that lost its encryption is found, and a
// plaintext value in a shard that encrypts all other values of the type. Equal bytes under the same
// key are equal values.
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
	m.requireSound(t) // the shard does not encrypt all values
}

// TestVerifyForged checks that an archive is damaged if its manifest assigns records to another
// type.
func TestVerifyForged(t *testing.T) {
	dir := "/core/configmaps/" + consumer + "/"
	s := forged(t, dir+"default/a", archive.Resource{Resource: "secrets", Dir: dir}, consumer, nil)
	v := moveOf(t, consumer, root(t), shard1(t)).verdict(t,
		func(m *move.Move) { m.Archive = inspect.NewReader(s, nil) })
	require.Equal(t, []string{"archive-damaged"}, codesOf(v))
}

// TestVerifyUnserved checks that the notes name objects that kcp does not serve on the destination.
func TestVerifyUnserved(t *testing.T) {
	m := moveOf(t, consumer, root(t), shard1(t))
	require.NotContains(t, strings.Join(m.verdict(t).Notes, "\n"), "definition")
	m = moveWith(t, root(t, swap(itsWidget, "example.dev/v1", "example.dev/v9")), m.destination, itself, move.Import{},
		allow("unlisted-version"))
	require.Contains(t, strings.Join(m.requireSound(t).Notes, "\n"), `stored at version "v9"`)
}
