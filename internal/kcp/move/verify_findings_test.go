package move_test

import (
	"cmp"
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func recordedMove(t *testing.T) moveFiles {
	t.Helper()
	return moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
}

// rewrite is a snapshot with changes on top, whatever etcd would say to them.
func rewrite(t *testing.T, in string, leases []snapshot.Lease, changes iter.Seq2[snapshot.Change, error]) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "rewritten.db")
	_, err := snapshot.Write(context.Background(), out, openFile(t, in), changes, snapshot.WriteConfig{Leases: leases})
	require.NoError(t, err)
	return out
}

// leaseOf has a record name a lease, granted or not.
func leaseOf(t *testing.T, in, key string, lease int64) (out string) {
	t.Helper()
	rec, err := openFile(t, in).Get(context.Background(), []byte(key))
	require.NoError(t, err)
	return rewrite(t, in, nil, func(yield func(snapshot.Change, error) bool) {
		yield(snapshot.Change{Key: rec.Key, Value: rec.Value, Lease: lease, Prior: rec.ModRevision}, nil)
	})
}

// arriveIn is a destination on top of which all that the archive has of Consumer is put by hand,
// with its leases.
func arriveIn(t *testing.T, m moveFiles, destination string) string {
	t.Helper()
	ctx, src := context.Background(), openFile(t, m.archive)
	ttls, err := src.Leases(ctx)
	require.NoError(t, err)
	var leases []snapshot.Lease
	for id, ttl := range ttls {
		leases = append(leases, snapshot.Lease{ID: id, TTL: ttl})
	}
	slices.SortFunc(leases, func(a, b snapshot.Lease) int { return cmp.Compare(a.ID, b.ID) })
	return rewrite(t, destination, leases, func(yield func(snapshot.Change, error) bool) {
		for rec, err := range src.Live(ctx, nil) {
			if err == nil && clusterOf(rec.Key) != kcptest.Consumer {
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
	m := moveFiles{origin: migrating(t, kcptest.Recorded(t, kcptest.Root)), destination: kcptest.Recorded(t, kcptest.Shard1)}
	m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Consumer, Allow: []string{"migrating"}})
	m.originOut = purgeWith(t, m.origin, move.Purge{Name: kcptest.Consumer}, "migrating", "owner-points-here")
	m.destinationOut = arriveIn(t, m, m.destination)
	require.Equal(t, []string{"still-migrating"}, codesOf(m.verdict(t)))
}

// TestVerifyDefinitions: a definition that came is the archive's to the byte; of one that was there
// all but the stored versions is as it was, and these are those of both.
func TestVerifyDefinitions(t *testing.T) {
	sound := recordedMove(t)
	schemaName := func(t *testing.T, client *clientv3.Client) {
		swap(widgetsDefinition, `"apis.kcp.io/schema-name"`, `"apis.kcp.io/schema-nome"`)(t, client)
	}
	without := edit1(t, sound.destination, drop(widgetsDefinition))
	brought, err := openFile(t, sound.archive).Get(context.Background(), []byte(widgetsDefinition))
	require.NoError(t, err)
	t.Run("brought, and edited", func(t *testing.T) {
		m := sound
		text := strings.Replace(string(brought.Value), `"apis.kcp.io/bound-crd"`, `"apis.kcp.io/bound-crt"`, 1)
		require.NotEqual(t, text, string(brought.Value))
		m.destinationOut = arriveIn(t, m, edit1(t, without, put(widgetsDefinition, text)))
		for _, m.destination = range []string{without, ""} {
			v := m.verdict(t)
			require.Equal(t, []string{"definition-changed"}, codesOf(v))
			require.Equal(t, widgetsDefinition, v.Findings[0].Key)
		}
	})
	t.Run("its own, and other metadata", func(t *testing.T) {
		m := sound
		m.destination = edit1(t, m.destination, schemaName)
		m.destinationOut = arriveIn(t, m, m.destination)
		requireSound(t, m.verdict(t))
	})
	t.Run("at another version of its API", func(t *testing.T) {
		m := sound
		m.destination = edit1(t, m.destination, func(t *testing.T, client *clientv3.Client) {
			swap(widgetsDefinition, `"apiVersion":"apiextensions.k8s.io/v1"`, `"apiVersion":"apiextensions.k8s.io/v1beta1"`)(t, client)
			swap(widgetsDefinition, `"scope":"Namespaced"`, `"scope":"Cluster"`)(t, client)
		})
		m.destinationOut = arriveIn(t, m, m.destination)
		require.Equal(t, []string{"definition-changed"}, codesOf(m.verdict(t)))
	})
	t.Run("stored versions", func(t *testing.T) {
		m := sound
		versions := func(of string) string {
			return edit1(t, sound.destination, swap(widgetsDefinition, `"storedVersions":["v1"]`, `"storedVersions":[`+of+`]`))
		}
		m.destination = versions(`"v0"`)
		m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
		requireSound(t, m.verdict(t))
		for _, before := range []string{`"v0","v9"`, `"v1"`, `"v1","v0"`} { // lost, invented, in another order
			m.destination = versions(before)
			require.Equal(t, []string{"destination-touched"}, codesOf(m.verdict(t)), before)
		}
	})
	t.Run("stored version that the spec lacks", func(t *testing.T) {
		m := moveOf(t, kcptest.Consumer, edit1(t, sound.origin, swap(widgetsDefinition, `"storedVersions":["v1"]`, `"storedVersions":["v0","v1"]`)), sound.destination)
		requireSound(t, m.verdict(t))
	})
}

// TestVerifyNames: a name that is not the archive's is no way to hide copies of the origin, nor is
// that of a third shard.
func TestVerifyNames(t *testing.T) {
	m := recordedMove(t)
	_, err := m.verify(t, func(m *move.Move) { m.FromShard = "shard-9" })
	require.ErrorIs(t, err, move.ErrFromShard)
	requireSound(t, m.verdict(t, func(m *move.Move) { m.FromShard = "root" }))

	notes := func(v *move.Verdict) string { return strings.Join(v.Notes, "\n") }
	require.NotContains(t, notes(m.verdict(t)), "says of itself")
	require.Contains(t, notes(m.verdict(t, func(m *move.Move) { m.AsShard = "shard-9" })), `says of itself that it is shard "shard-1", and is checked as "shard-9"`)

	third := "/cache/rbac.authorization.k8s.io/clusterrolebindings/customresources/shard-9/" + kcptest.Consumer + "/workspace-admin"
	purged := purgeWith(t, kcptest.Recorded(t, kcptest.Cache), move.Purge{Name: kcptest.Consumer, FromShard: "root"})
	m.caches = []string{edit1(t, purged, put(third, "x"))}
	v := m.verdict(t)
	require.Equal(t, []string{"stale-copy"}, codesOf(v))
	require.Equal(t, third, v.Findings[0].Key)
	m.caches = []string{edit1(t, purged, put(strings.Replace(third, "shard-9", "shard-1", 1), "x"))}
	require.Equal(t, []string{"copy-changed"}, codesOf(m.verdict(t)), "the destination's, but not what the origin wrote")
	m.caches = []string{purgeWith(t, kcptest.Recorded(t, kcptest.Cache), move.Purge{Name: kcptest.Consumer, FromShard: "root", ToShard: "shard-1"})}
	requireSound(t, m.verdict(t))
}

// withShard is a file that has another shard below a prefix of its own.
func withShard(t *testing.T, path, other, prefix string) string {
	t.Helper()
	kvs, _ := kcptest.Dump(t, other)
	return kcptest.Edit(t, path, func(client *clientv3.Client) {
		for _, kv := range kvs {
			if rest, ok := strings.CutPrefix(string(kv.Key), "/registry/"); ok {
				kcptest.Put(t, client, prefix+"/"+rest, kv.Value)
			}
		}
	})
}

// TestVerifySeveralShards: all storages of both files are checked: the logical cluster is not to
// live in a second one, and identities and Workspaces of another one count.
func TestVerifySeveralShards(t *testing.T) {
	root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
	m := moveFiles{origin: root, destination: shard1, archive: extractOf(t, root, extraction{Name: kcptest.Consumer}), originOut: purgeOf(t, kcptest.Consumer, root)}
	there := func(m *move.Move) { m.Prefixes = []string{"/registry"} }

	m.destination = withShard(t, purgeOf(t, kcptest.Consumer1, shard1), m.originOut, "/shard/root")
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{FixOwner: true}, transform.Options{Prefixes: []string{"/registry"}}).written().out
	requireSound(t, m.verdict(t, there))
	without := m
	without.destination = ""
	requireSound(t, without.verdict(t, there))

	both := withShard(t, root, root, "/shard/two")
	m = moveFiles{origin: both, destination: shard1, archive: extractOf(t, both, extraction{Name: kcptest.Consumer, Prefixes: []string{"/registry"}})}
	m.originOut = purgeWith(t, both, move.Purge{Name: kcptest.Consumer, Prefixes: []string{"/registry"}}, "owner-points-here")
	m.destinationOut = importInto(t, m.archive, shard1, move.Import{}, transform.Options{}).written().out
	v := m.verdict(t)
	require.Equal(t, []string{"elsewhere"}, codesOf(v))
	require.Len(t, v.Findings, 36)
	require.Equal(t, m.originOut, v.Findings[0].File)
}

// TestVerifySplit: a part of the storage that is named as one of its own would hide what lies
// there.
func TestVerifySplit(t *testing.T) {
	m := recordedMove(t)
	for _, file := range []func(*move.Move) **inspect.Reader{
		func(m *move.Move) **inspect.Reader { return &m.OriginOut }, func(m *move.Move) **inspect.Reader { return &m.DestinationOut },
	} {
		_, err := m.verify(t, func(m *move.Move) {
			at := file(m)
			*at = inspect.NewReader((*at).Snapshot(), nil, "/registry", "/registry/core")
			m.Prefixes = []string{"/registry"}
		})
		require.ErrorIs(t, err, kcp.ErrSplit)
	}
}

// TestVerifyLeases: a record that names a lease which nobody granted has none, and nobody else may
// be attached to one that came.
func TestVerifyLeases(t *testing.T) {
	sound := recordedMove(t)
	m := sound
	m.destinationOut = leaseOf(t, m.destinationOut, itsSettings, 4711)
	v := m.verdict(t)
	require.Equal(t, []string{"lease-differs"}, codesOf(v))
	require.Equal(t, itsSettings, v.Findings[0].Key)

	m = sound
	event, err := openFile(t, m.archive).Get(context.Background(), []byte(itsEvent))
	require.NoError(t, err)
	require.NotZero(t, event.Lease)
	m.destinationOut = arriveIn(t, m, m.destination)
	requireSound(t, m.verdict(t))
	m.destination = leaseOf(t, m.destination, another, event.Lease) // in vain, until someone grants it
	m.destinationOut = arriveIn(t, m, m.destination)
	v = m.verdict(t)
	require.Equal(t, []string{"destination-touched"}, codesOf(v))
	require.Equal(t, another, v.Findings[0].Key)
}

// TestVerifyOthersEncrypted: what comes in the clear to a shard that encrypts all others of its
// kind is found.
func TestVerifyOthersEncrypted(t *testing.T) {
	m := recordedMove(t)
	const secrets = "/registry/core/secrets/"
	kvs, _ := kcptest.Dump(t, m.destination)
	m.destination = kcptest.Edit(t, m.destination, func(client *clientv3.Client) {
		encrypted := []byte("k8s:enc:aescbc:v1:k1:0123456789abcdef0123456789abcdef")
		kcptest.Put(t, client, secrets+kcptest.Consumer1+"/default/more", encrypted)
		for _, kv := range kvs {
			if strings.HasPrefix(string(kv.Key), secrets) {
				kcptest.Put(t, client, string(kv.Key), encrypted)
			}
		}
	})
	m.destinationOut = arriveIn(t, m, m.destination)
	v := m.verdict(t)
	require.Equal(t, []string{"in-the-clear"}, codesOf(v))
	require.Equal(t, secrets+kcptest.Consumer+"/default/sec", v.Findings[0].Key)

	m.destination = edit1(t, m.destination, put(secrets+kcptest.Consumer1+"/default/clear", "x"))
	m.destinationOut = arriveIn(t, m, m.destination)
	requireSound(t, m.verdict(t)) // it does not encrypt all
}

// TestVerifyForged: an archive whose manifest passes records off as another type's is damaged.
func TestVerifyForged(t *testing.T) {
	dir := "/core/configmaps/" + kcptest.Consumer + "/"
	s := forged(t, dir+"default/a", archive.Resource{Resource: "secrets", Dir: dir}, kcptest.Consumer, nil)
	v := recordedMove(t).verdict(t, func(m *move.Move) { m.Archive = inspect.NewReader(s, nil) })
	require.Equal(t, []string{"archive-damaged"}, codesOf(v))
}

// TestVerifyUnserved: objects that kcp does not serve on the destination are told of.
func TestVerifyUnserved(t *testing.T) {
	widget := ""
	root := kcptest.Recorded(t, kcptest.Root)
	for rec, err := range openFile(t, root).Live(context.Background(), []byte("/registry/example.dev/widgets/"+kcptest.ExampleDev+"/"+kcptest.Consumer+"/")) {
		require.NoError(t, err)
		widget = string(rec.Key)
	}
	require.NotEmpty(t, widget)
	m := moveFiles{origin: edit1(t, root, swap(widget, `"apiVersion":"example.dev/v1"`, `"apiVersion":"example.dev/v9"`)), destination: kcptest.Recorded(t, kcptest.Shard1)}
	m.archive, m.originOut = extractOf(t, m.origin, extraction{Name: kcptest.Consumer}), purgeOf(t, kcptest.Consumer, m.origin)
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{Allow: []string{"unlisted-version"}}).out
	v := m.verdict(t)
	requireSound(t, v)
	require.Contains(t, strings.Join(v.Notes, "\n"), `stored at version "v9"`)
	require.NotContains(t, strings.Join(recordedMove(t).verdict(t).Notes, "\n"), "definition")
}
