package move_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/sections"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// extractOf is the path of an archive of a logical cluster.
func extractOf(t testing.TB, shard string, o extraction) string {
	t.Helper()
	o.In, o.Out = shard, filepath.Join(t.TempDir(), o.Name+".archive.db")
	r, err := runExtract(context.Background(), o)
	require.NoError(t, err, "%+v", r.Problems)
	return o.Out
}

// arrival is a run of Import.
type arrival struct {
	t      testing.TB
	in     string
	out    string
	report *report
	err    error
}

// importInto imports an archive. run holds what is not of ImportOptions: Encryption, Allow,
// Prefixes.
func importInto(t testing.TB, from, shard string, o move.Import, run transform.Options) arrival {
	t.Helper()
	ctx := context.Background()
	file, err := snapshot.Open(ctx, from, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	o.Archive = file
	o.Manifest, err = archive.OpenChecked(ctx, file)
	require.NoError(t, err)
	o.Prefixes = run.Prefixes
	a := arrival{t: t, in: shard, out: filepath.Join(t.TempDir(), "out.db")}
	run.Command, run.In, run.Out = "kcp import", a.in, a.out
	r, err := transform.Run(ctx, run, &o)
	a.report, a.err = reportOf(r), err
	return a
}

// written requires that the run succeeded.
func (a arrival) written() arrival {
	a.t.Helper()
	require.NoError(a.t, a.err, "%+v", a.report.Problems)
	require.Equal(a.t, transform.Written, a.report.Outcome)
	return a
}

// refused requires that the run was refused, for this code among others.
func (a arrival) refused(code string) []finding.Finding {
	a.t.Helper()
	require.ErrorIs(a.t, a.err, transform.ErrRefused, "%+v", a.report.Problems)
	_, err := os.Stat(a.out)
	require.ErrorIs(a.t, err, os.ErrNotExist)
	require.Contains(a.t, codes(a.report), code)
	return slices.DeleteFunc(slices.Clone(a.report.Problems), func(p finding.Finding) bool { return p.Code.Name != code })
}

// arrived is what a real etcd restored from the output has that the input has not; what it has of
// the input must be the same.
func (a arrival) arrived(changed ...string) (came []etcdtest.KV, leases map[int64]int64) {
	a.t.Helper()
	before, _ := kcptest.Dump(a.t, a.in)
	after, leases := kcptest.Dump(a.t, a.out)
	was := map[string]etcdtest.KV{}
	for _, kv := range before {
		was[string(kv.Key)] = kv
	}
	for _, kv := range after {
		old, there := was[string(kv.Key)]
		switch {
		case !there:
			came = append(came, kv)
			continue
		case slices.Contains(changed, string(kv.Key)):
			require.Greater(a.t, kv.ModRevision, old.ModRevision, "%s", kv.Key)
		default:
			require.Equal(a.t, old, kv)
		}
		delete(was, string(kv.Key))
	}
	require.Empty(a.t, was, "lost")
	return came, leases
}

// value is what the output has under a key, read without an etcd, which takes its time to start.
func (a arrival) value(key string) string {
	a.t.Helper()
	s, err := snapshot.Open(context.Background(), a.out, snapshot.Config{})
	require.NoError(a.t, err)
	defer s.Close()
	rec, err := s.Get(context.Background(), []byte(key))
	require.NoError(a.t, err)
	require.NotNil(a.t, rec, "no such key: %s", key)
	return string(rec.Value)
}

// ofCluster are the records of one logical cluster.
func ofCluster(kvs []etcdtest.KV, cluster string) (found []etcdtest.KV) {
	for _, kv := range kvs {
		if clusterOf(kv.Key) == cluster {
			found = append(found, kv)
		}
	}
	return found
}

// TestImport: all records of consumer come to shard-1, under their keys, byte for byte, the Event
// with a lease of the same TTL; each at a revision of its own, as created; the definitions are
// there already, and all else stays.
func TestImport(t *testing.T) {
	root := kcptest.Recorded(t, kcptest.Root)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	require.Equal(t, transform.Changes{Created: 36}, a.report.Changes)

	came, leases := a.arrived()
	all, origins := kcptest.Dump(t, root)
	want := ofCluster(all, kcptest.Consumer)
	require.Len(t, came, 36)
	require.Len(t, want, 36)
	revisions := map[int64]bool{}
	leased := 0
	for n, kv := range came {
		require.Equal(t, string(want[n].Key), string(kv.Key))
		require.Equal(t, string(want[n].Value), string(kv.Value), "%s", kv.Key)
		require.Equal(t, origins[want[n].Lease], leases[kv.Lease], "TTL of %s", kv.Key)
		require.Equal(t, kv.CreateRevision, kv.ModRevision)
		require.EqualValues(t, 1, kv.Version)
		require.False(t, revisions[kv.ModRevision], "one main revision a record")
		revisions[kv.ModRevision] = true
		if kv.Lease != 0 {
			leased++
			require.Positive(t, leases[kv.Lease])
		}
	}
	require.Equal(t, 1, leased)
	byOrigin := slices.SortedFunc(slices.Values(want), func(x, y etcdtest.KV) int { return int(x.ModRevision - y.ModRevision) })
	byArrival := slices.SortedFunc(slices.Values(came), func(x, y etcdtest.KV) int { return int(x.ModRevision - y.ModRevision) })
	for n := range byOrigin {
		require.Equal(t, string(byOrigin[n].Key), string(byArrival[n].Key), "in the order of the origin")
	}
}

// TestImportReceipt: the receipt is the archive's, and the rest is all that the input has.
func TestImportReceipt(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Len(t, a.report.Clusters, 1)
	c := a.report.Clusters[0]
	require.Equal(t, []any{kcptest.Consumer, "root:consumer", 36}, []any{c.Name, c.Path, c.Keys})
	require.Equal(t, a.report.Input.Keys, a.report.Rest.Keys)
	require.Equal(t, from, a.report.Archive.Path)
	require.Len(t, a.report.Archive.SHA256, 64)

	back := extractOf(t, a.out, extraction{Name: kcptest.Consumer})
	file, err := snapshot.Open(context.Background(), back, snapshot.Config{})
	require.NoError(t, err)
	defer file.Close()
	m, err := archive.Open(context.Background(), file)
	require.NoError(t, err)
	require.Equal(t, m.Clusters[0].Sum.SHA256, c.SHA256, "whoever extracts it from there has the same digest")
}

// TestImportDeterministic: twice the same, to the byte.
func TestImportDeterministic(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer, WithChildren: true})
	shard := kcptest.Recorded(t, kcptest.Shard1)
	one := importInto(t, from, shard, move.Import{}, transform.Options{}).written()
	two := importInto(t, from, shard, move.Import{}, transform.Options{}).written()
	require.Equal(t, one.report.Output.SHA256, two.report.Output.SHA256)
	require.Len(t, one.report.Clusters, 2)
	came, _ := one.arrived()
	require.NotEmpty(t, ofCluster(came, kcptest.Child))
	require.Len(t, ofCluster(came, kcptest.Consumer), 36)
}

// TestImportDryRun plans the same and writes nothing.
func TestImportDryRun(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{DryRun: true})
	require.NoError(t, a.err)
	require.Equal(t, transform.Planned, a.report.Outcome)
	require.Equal(t, 36, a.report.Clusters[0].Keys)
	require.Nil(t, a.report.Rest)
	_, err := os.Stat(a.out)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestImportPrefix: on a shard that stores below another prefix, the keys are below that.
func TestImportPrefix(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	a := importInto(t, from, below(t, kcptest.Recorded(t, kcptest.Shard1), "/shard/one"), move.Import{}, transform.Options{}).written()
	came, _ := a.arrived()
	require.Len(t, came, 36)
	for _, kv := range came {
		k, err := keys.KCPShard{Prefix: "/shard/one"}.Parse(kv.Key)
		require.NoError(t, err)
		require.Equal(t, kcptest.Consumer, k.Cluster)
	}
}

// below is a shard's file with all keys below another prefix than /registry.
func below(t testing.TB, shard, prefix string) string {
	t.Helper()
	kvs, _ := kcptest.Dump(t, shard)
	var script strings.Builder
	for _, kv := range kvs {
		key := string(kv.Key)
		if rest, ok := strings.CutPrefix(key, "/registry/"); ok {
			key = prefix + "/" + rest
		}
		fmt.Fprintf(&script, "put %s %q\n", key, kv.Value)
	}
	return etcdtest.Build(t, script.String())
}

// impostor is an import that has its proof look at other files than what was written.
type impostor struct {
	*move.Import
	t     *testing.T
	files map[string]string // by what is wrong with them
}

func (i *impostor) Plan(ctx context.Context, v *transform.View) error {
	within := false
	v.Make(transform.Output{Check: func(ctx context.Context, _ *inspect.Reader) error {
		if within {
			return nil
		}
		within = true
		for name, path := range i.files {
			i.t.Run(name, func(t *testing.T) {
				s, err := snapshot.Open(ctx, path, snapshot.Config{})
				require.NoError(t, err)
				defer s.Close()
				require.ErrorIs(t, v.CheckOutput(ctx, inspect.NewReader(s, nil)), snapshot.ErrVerify)
			})
		}
		require.Nil(i.t, sections.Of[move.Receipts](v.Report()).Rest, "what was not proved is not told")
		return nil
	}})
	return i.Import.Plan(ctx, v)
}

// TestImportProof: each way in which an output may be wrong is found, before it gets its name.
func TestImportProof(t *testing.T) {
	ctx := context.Background()
	from, shard := purgedRoot(t)
	o, run := move.Import{FixOwner: true, AsShard: "shard-1"}, transform.Options{}
	out := importInto(t, from, shard, o, run).written().out
	event := "/registry/core/events/" + kcptest.Consumer + "/default/ev1"
	touch := func(key string) func(client *clientv3.Client) {
		return func(client *clientv3.Client) { kcptest.Put(t, client, key, append(kcptest.Get(t, client, key), ' ')) }
	}
	files := map[string]string{"nothing came in": shard}
	for name, change := range map[string]func(client *clientv3.Client){
		"a record is gone":        func(client *clientv3.Client) { kcptest.Delete(t, client, secretOfConsumer) },
		"a record is another":     touch(secretOfConsumer),
		"the lease is gone":       func(client *clientv3.Client) { kcptest.Put(t, client, event, kcptest.Get(t, client, event)) },
		"another TTL":             shorter(t, event),
		"the Workspace is not":    touch(kcptest.WorkspaceKey("consumer")),
		"another tenant's record": touch("/registry/core/configmaps/" + kcptest.Other + "/default/settings"),
		"a tenant's record less": func(client *clientv3.Client) {
			kcptest.Delete(t, client, "/registry/core/configmaps/"+kcptest.Other+"/default/settings")
		},
		"a record more": func(client *clientv3.Client) { kcptest.Put(t, client, "/registry/core/configmaps/x/y/z", []byte("{}")) },
	} {
		files[name] = kcptest.Edit(t, out, change)
	}
	file, err := snapshot.Open(ctx, from, snapshot.Config{})
	require.NoError(t, err)
	defer file.Close()
	o.Archive = file
	o.Manifest, err = archive.Open(ctx, file)
	require.NoError(t, err)
	run.In, run.Out = shard, filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(ctx, run, &impostor{&o, t, files})
	require.NoError(t, err)
	require.NotNil(t, reportOf(r).Rest)
}

// shorter gives the record under a key a lease with another TTL.
func shorter(t testing.TB, key string) func(client *clientv3.Client) {
	return func(client *clientv3.Client) {
		lease, err := client.Grant(context.Background(), 77)
		require.NoError(t, err)
		kcptest.Put(t, client, key, kcptest.Get(t, client, key), clientv3.WithLease(lease.ID))
	}
}
