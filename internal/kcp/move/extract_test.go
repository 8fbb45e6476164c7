package move_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
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
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/sections"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// extraction is a run of Extract.
type extraction struct {
	Name, In, Out, AsShard string
	WithChildren, DryRun   bool
	Prefixes, Allow        []string
	Decrypter              transform.Encrypter
	Progress               func(phase string, part func() float64)
}

// extractReport is its report.
type extractReport struct {
	*report
	Manifest *archive.Manifest
}

func runExtract(ctx context.Context, e extraction) (*extractReport, error) {
	r, err := transform.Run(ctx, transform.Options{
		Command: "kcp extract", In: e.In, Out: e.Out, DryRun: e.DryRun, Allow: e.Allow, Prefixes: e.Prefixes, Encryption: e.Decrypter, Progress: e.Progress,
	}, &move.Extract{Name: e.Name, Archive: e.Out, AsShard: e.AsShard, WithChildren: e.WithChildren, Prefixes: e.Prefixes})
	return &extractReport{reportOf(r), sections.Of[move.Manifest](r).Manifest}, err
}

// tryExtract runs Extract into a new file.
func tryExtract(t testing.TB, in string, o extraction) (*extractReport, string, error) {
	t.Helper()
	o.In, o.Out = in, filepath.Join(t.TempDir(), "archive.db")
	r, err := runExtract(context.Background(), o)
	return r, o.Out, err
}

// refusedExtract is tryExtract that must be refused.
func refusedExtract(t testing.TB, in string, o extraction) *extractReport {
	t.Helper()
	r, out, err := tryExtract(t, in, o)
	require.ErrorIs(t, err, transform.ErrRefused, "%+v", r.Problems)
	require.NoFileExists(t, out)
	return r
}

// extracted is tryExtract that must succeed.
func extracted(t testing.TB, in string, o extraction) (*extractReport, string) {
	t.Helper()
	r, out, err := tryExtract(t, in, o)
	require.NoError(t, err, "%+v", r.Problems)
	require.Equal(t, transform.Written, r.Outcome)
	return r, out
}

// requireSame requires that a real etcd serves from the archive what it serves from the shard below
// the keys that are meant, revisions, versions, leases and all, and nothing else.
func requireSame(t testing.TB, shard, archived string, meant func(key []byte) bool) []etcdtest.KV {
	t.Helper()
	before, leasesBefore := kcptest.Dump(t, shard)
	after, leases := kcptest.Dump(t, archived)
	before = slices.DeleteFunc(before, func(kv etcdtest.KV) bool { return !meant(kv.Key) })
	require.Equal(t, before, after)
	held := map[int64]int64{}
	for _, kv := range before {
		if kv.Lease != 0 {
			held[kv.Lease] = leasesBefore[kv.Lease]
		}
	}
	require.Equal(t, held, leases)
	return after
}

// isBound tells whether key is that of a definition in system:bound-crds.
func isBound(key []byte) bool { return clusterOf(key) == "system:bound-crds" }

// needed tells whether key is that of a definition that the manifest lists.
func needed(m *archive.Manifest, key []byte) bool {
	return slices.ContainsFunc(m.Definitions, func(d archive.Definition) bool { return m.Origin.Prefix+d.Key == string(key) })
}

// TestExtractExactly: the 36 keys of consumer and the definitions that it binds, and nothing of the
// namespace that is named like it.
func TestExtractExactly(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := extracted(t, in, extraction{Name: kcptest.Consumer})
	m := r.Manifest
	require.Len(t, m.Clusters, 1)
	c := m.Clusters[0]
	require.Equal(t, 36, c.Keys)
	require.Equal(t, []string{kcptest.Consumer, "root:consumer", "root", "root", "consumer"}, []string{c.Name, c.Path, c.Shard, c.Owner.Cluster, c.Owner.Name})
	require.Equal(t, archive.Origin{Shard: "root", Prefix: "/registry", SHA256: r.Input.SHA256, Revision: r.Input.Revision, Rest: m.Origin.Rest}, m.Origin)
	require.Equal(t, r.Input.Keys-36, m.Origin.Rest.Keys)
	require.NotEmpty(t, m.Definitions)
	require.Empty(t, m.Missing)
	require.Empty(t, m.Encryption)
	require.Equal(t, m.Total.Keys, r.Output.Keys)
	require.Equal(t, m.Total.Keys, 36+len(m.Definitions))
	require.Equal(t, r.Input.Revision, r.Output.Revision)
	require.Equal(t, []string{"children-stay"}, codes(r.report))

	kvs := requireSame(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer || needed(m, key) })
	for _, trapped := range kcptest.Trapped() {
		require.False(t, slices.ContainsFunc(kvs, func(kv etcdtest.KV) bool { return string(kv.Key) == trapped }))
	}
	require.Equal(t, len(m.Definitions), len(slices.DeleteFunc(slices.Clone(kvs), func(kv etcdtest.KV) bool { return !isBound(kv.Key) })))
	require.NotEmpty(t, m.Leases, "consumer has an Event")

	s := openFile(t, out)
	read, err := archive.Open(context.Background(), s)
	require.NoError(t, err)
	require.Equal(t, m, read)
	require.NoError(t, archive.Check(context.Background(), s, read))
}

func openFile(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestExtractIdentities: what the cluster binds, and what it exports itself.
func TestExtractIdentities(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	identity := func(m *archive.Manifest, hash string) *archive.Identity {
		for i := range m.Identities {
			if m.Identities[i].Hash == hash {
				return &m.Identities[i]
			}
		}
		return nil
	}
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	bound := identity(r.Manifest, kcptest.ExampleDev)
	require.NotNil(t, bound)
	require.False(t, bound.Own)
	require.Equal(t, []string{"pods", "sprockets.example.dev", "widgets.example.dev"}, bound.Resources)
	require.Equal(t, []archive.Export{{Cluster: kcptest.Provider, Path: "root:provider", Name: "example.dev"}}, bound.Exports)
	require.NotNil(t, identity(r.Manifest, kcptest.Tenancy))

	r, _ = extracted(t, in, extraction{Name: kcptest.Provider})
	exported := identity(r.Manifest, kcptest.ExampleDev)
	require.NotNil(t, exported)
	require.True(t, exported.Own)
	require.Equal(t, []archive.Export{{Cluster: kcptest.Provider, Path: "root:provider", Name: "example.dev"}}, exported.Exports)
}

func TestExtractChildren(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := extracted(t, in, extraction{Name: kcptest.Consumer, WithChildren: true})
	require.Len(t, r.Manifest.Clusters, 2)
	require.Equal(t, kcptest.Child, r.Manifest.Clusters[0].Name)
	require.Equal(t, kcptest.Consumer, r.Manifest.Name)
	require.Empty(t, r.Problems)
	requireSame(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || clusterOf(key) == kcptest.Child || needed(r.Manifest, key)
	})
	require.Equal(t, r.Input.Keys-r.Manifest.Clusters[0].Keys-36, r.Manifest.Origin.Rest.Keys)
}

// TestExtractGrandchildren: however deep, and those that live elsewhere are named. Whose child one
// is its LogicalCluster says, and not a Workspace that anyone may write.
func TestExtractGrandchildren(t *testing.T) {
	grand, elsewhere := "3grandchild00000", "4elsewhere000000"
	workspace := func(in, name string) string {
		return "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + in + "/" + name
	}
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		ws := kcptest.Get(t, client, workspace(kcptest.Consumer, "child"))
		for name, cluster := range map[string]string{"grand": grand, "elsewhere": elsewhere, "stolen": kcptest.Other} {
			named := bytes.ReplaceAll(bytes.ReplaceAll(ws, []byte(kcptest.Child), []byte(cluster)), []byte(`"name":"child"`), []byte(`"name":"`+name+`"`))
			named = bytes.ReplaceAll(named, []byte(`"kcp.io/cluster":"`+kcptest.Consumer), []byte(`"kcp.io/cluster":"`+kcptest.Child))
			kcptest.Put(t, client, workspace(kcptest.Child, name), named)
		}
		lc := kcptest.Get(t, client, kcptest.LogicalClusterKey(kcptest.Child))
		lc = bytes.ReplaceAll(lc, []byte(kcptest.Child), []byte(grand))
		lc = bytes.ReplaceAll(lc, []byte(`"cluster":"`+kcptest.Consumer), []byte(`"cluster":"`+kcptest.Child))
		kcptest.Put(t, client, kcptest.LogicalClusterKey(grand), bytes.ReplaceAll(lc, []byte(`"name":"child"`), []byte(`"name":"grand"`)))
	})
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer, WithChildren: true})
	require.Len(t, r.Manifest.Clusters, 3)
	require.NotNil(t, r.Manifest.Cluster(grand))
	require.Equal(t, []string{"child-elsewhere"}, codes(r.report))
	require.Len(t, r.Problems, 2)
	require.Contains(t, r.Problems[0].Reason+r.Problems[1].Reason, `"4elsewhere000000", behind Workspace "elsewhere"`)
	require.Contains(t, r.Problems[0].Reason+r.Problems[1].Reason, `"11iehthilu5atzgl" lives here, but says that it does not belong`)
}

// TestExtractNamePrefix: a logical cluster whose name begins as this one's does not come along.
func TestExtractNamePrefix(t *testing.T) {
	longer, shorter := kcptest.Consumer+"x", kcptest.Consumer[:15]
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		for _, name := range []string{longer, shorter} {
			lc := bytes.ReplaceAll(kcptest.Get(t, client, kcptest.LogicalClusterKey(kcptest.Consumer)), []byte(kcptest.Consumer), []byte(name))
			kcptest.Put(t, client, kcptest.LogicalClusterKey(name), lc)
			kcptest.Put(t, client, "/registry/core/configmaps/"+name+"/default/a", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default"}}`))
		}
	})
	for name, n := range map[string]int{kcptest.Consumer: 36, longer: 2, shorter: 2} {
		r, out := extracted(t, in, extraction{Name: name})
		require.Equal(t, n, r.Manifest.Clusters[0].Keys)
		requireSame(t, in, out, func(key []byte) bool { return clusterOf(key) == name || needed(r.Manifest, key) })
	}
}

// TestExtractOfSeveralStorages: a cache of the same file is no part of the archive, nor of what the
// origin keeps once it is purged.
func TestExtractOfSeveralStorages(t *testing.T) {
	in := kcptest.Single(t)
	r, out := extracted(t, in, extraction{Name: kcptest.Provider})
	requireSame(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Provider || needed(r.Manifest, key) })

	purgedReport, purgedOut := purged(t, in, move.Purge{Name: kcptest.Provider}, "owner-points-here", "exports-in-cache")
	require.Positive(t, purgedReport.Clusters[0].Copies)
	require.Equal(t, *purgedReport.Rest, r.Manifest.Origin.Rest)
	require.Equal(t, purgedReport.Clusters[0].SHA256, r.Manifest.Clusters[0].SHA256)
	require.NotEmpty(t, purgedOut)
}

// TestExtractAsShard: a shard that does not say what it is called has to be named, where copies in
// its cache depend on that.
func TestExtractAsShard(t *testing.T) {
	in := kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey("system:shard"))
	})
	_, _, err := tryExtract(t, in, extraction{Name: kcptest.Provider})
	require.ErrorIs(t, err, move.ErrShardUnknown)
	r, _ := extracted(t, in, extraction{Name: kcptest.Provider, AsShard: "root"})
	require.Equal(t, "root", r.Manifest.Origin.Shard)
	require.Contains(t, r.Steps, "take it out here: etcdshift kcp purge "+kcptest.Provider+" "+in+" ORIGIN-OUT --as-shard root --to-shard NEW-SHARD")
	gone, _ := purged(t, in, move.Purge{Name: kcptest.Provider, AsShard: "root"}, "owner-points-here", "exports-in-cache")
	require.Equal(t, *gone.Rest, r.Manifest.Origin.Rest)
}

// TestExtractOfTwoShards: which of two shards in one etcd is meant has to be said.
func TestExtractOfTwoShards(t *testing.T) {
	second, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Shard1))
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		for _, kv := range second {
			if key, ok := strings.CutPrefix(string(kv.Key), "/registry/"); ok {
				kcptest.Put(t, client, "/shard/shard-1/"+key, kv.Value)
			}
		}
	})
	_, _, err := tryExtract(t, in, extraction{Name: kcptest.Consumer})
	require.ErrorIs(t, err, kcp.ErrSeveralShards)
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer, Prefixes: []string{"/registry"}})
	require.Equal(t, 36, r.Manifest.Clusters[0].Keys)
	r, out := extracted(t, in, extraction{Name: kcptest.Consumer1, Prefixes: []string{"/shard/shard-1"}})
	require.Equal(t, "/shard/shard-1", r.Manifest.Origin.Prefix)
	require.Equal(t, "shard-1", r.Manifest.Origin.Shard)
	whole, _ := extracted(t, kcptest.Recorded(t, kcptest.Shard1), extraction{Name: kcptest.Consumer1})
	require.Equal(t, whole.Manifest.Clusters[0].Resources[0].SHA256, r.Manifest.Clusters[0].Resources[0].SHA256, "no prefix, no revision is in a digest")
	require.NoError(t, archive.Check(context.Background(), openFile(t, out), r.Manifest))
}

// TestExtractTwice: the same input gives the same bytes.
func TestExtractTwice(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	before, err := os.ReadFile(in)
	require.NoError(t, err)
	var first []byte
	for range 3 {
		_, out := extracted(t, in, extraction{Name: kcptest.Consumer, WithChildren: true})
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		if first == nil {
			first = text
		}
		require.True(t, bytes.Equal(first, text))
		info, err := os.Stat(out)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	after, err := os.ReadFile(in)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}

// TestExtractLeases: an Event keeps its lease and that its TTL; a lease that the file does not have
// any more is told.
func TestExtractLeases(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := extracted(t, in, extraction{Name: kcptest.Consumer})
	s := openFile(t, in)
	granted, err := s.Leases(context.Background())
	require.NoError(t, err)
	kept, err := openFile(t, out).Leases(context.Background())
	require.NoError(t, err)
	require.Len(t, kept, len(r.Manifest.Leases))
	for id, ttl := range kept {
		require.Equal(t, granted[id], ttl)
		require.Positive(t, ttl)
	}
}

// TestExtractDryRun: everything but the file.
func TestExtractDryRun(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out, err := tryExtract(t, in, extraction{Name: kcptest.Consumer, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, transform.Planned, r.Outcome)
	require.NoFileExists(t, out)
	require.Contains(t, r.Steps, "take it out here: etcdshift kcp purge "+kcptest.Consumer+" "+in+" ORIGIN-OUT --to-shard NEW-SHARD")
	spaced, err := runExtract(context.Background(), extraction{Name: kcptest.Consumer, In: in, Out: filepath.Join(t.TempDir(), "an archive"), DryRun: true})
	require.NoError(t, err)
	require.Contains(t, strings.Join(spaced.Steps, "\n"), "/an archive' DESTINATION")
	written, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Equal(t, written.Manifest, r.Manifest)
	require.Equal(t, written.Clusters, r.Clusters)
}

// TestExtractLostLease: a record of which the shard has no lease any more keeps its number, and the
// archive says that it has no TTL.
func TestExtractLostLease(t *testing.T) {
	ctx := context.Background()
	src := openFile(t, kcptest.Recorded(t, kcptest.Root))
	in := filepath.Join(t.TempDir(), "without-leases.db")
	_, err := snapshot.Build(ctx, in, snapshot.Content{Records: src.Live(ctx, nil), Revision: 796}, nil)
	require.NoError(t, err)
	r, out := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Equal(t, []archive.Lease{{ID: "6bb5a1fa600bfdc9", TTL: 0, Keys: 1}}, r.Manifest.Leases)
	kept, err := openFile(t, out).Leases(ctx)
	require.NoError(t, err)
	require.Empty(t, kept)
	m, err := archive.OpenChecked(ctx, openFile(t, out))
	require.NoError(t, err)
	require.Equal(t, r.Manifest, m)
}

// TestExtractOfHistory: what was written over and what was deleted is not in the archive, nor is
// what was compacted away in its way.
func TestExtractOfHistory(t *testing.T) {
	settings := "/registry/core/configmaps/" + kcptest.Consumer + "/default/settings"
	gone := "/registry/core/configmaps/" + kcptest.Consumer + "/team-a/settings"
	var old []byte
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		old = kcptest.Get(t, client, settings)
		kcptest.Put(t, client, settings, bytes.Replace(old, []byte("1"), []byte("2"), 1))
		kcptest.Delete(t, client, gone)
		kcptest.Put(t, client, settings+"2", []byte("x"))
		kcptest.Delete(t, client, settings+"2")
		kcptest.Put(t, client, settings+"2", bytes.ReplaceAll(old, []byte("settings"), []byte("settingX")))
		kcptest.Delete(t, client, settings+"2")
	})
	r, out := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Equal(t, 35, r.Manifest.Clusters[0].Keys)
	requireSame(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer || needed(r.Manifest, key) })
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(text), string(old))
	require.NotContains(t, string(text), "settingX")
	status, err := openFile(t, out).Status(context.Background())
	require.NoError(t, err)
	require.Zero(t, status.Tombstones)
	require.Equal(t, status.Keys, status.Records)
	require.Empty(t, status.Members)
}

// BenchmarkShard is each job on a shard of 2,000 logical clusters, in bytes of its file, beside one
// copy of that file with its SHA-256. The names of what is written are new in each run.
func BenchmarkShard(b *testing.B) {
	const name = "bench00000000777"
	shard, small := kcptest.Many(b, 2000), kcptest.Recorded(b, kcptest.Shard1)
	archived := extractOf(b, shard, extraction{Name: name})
	purged := purgeOf(b, name, shard)
	imported := importInto(b, archived, small, move.Import{}, transform.Options{}).written().out
	out := func() string { return filepath.Join(b.TempDir(), "out.db") }
	for _, job := range []struct {
		name string
		run  func(b *testing.B)
	}{
		{"copy", func(b *testing.B) { copyHashed(b, shard, out()) }},
		{"list", func(b *testing.B) { list(b, shard) }},
		{"extract", func(b *testing.B) { extractOf(b, shard, extraction{Name: name}) }},
		{"purge", func(b *testing.B) { purgeOf(b, name, shard) }},
		{"import", func(b *testing.B) {
			importInto(b, archived, purged, move.Import{}, transform.Options{}).written()
		}},
		{"verify", func(b *testing.B) {
			v, err := moveFiles{archive: archived, origin: shard, originOut: purged, destination: small, destinationOut: imported}.verify(b)
			require.NoError(b, err)
			require.True(b, v.Sound())
		}},
	} {
		b.Run(job.name, func(b *testing.B) {
			info, err := os.Stat(shard)
			require.NoError(b, err)
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				job.run(b)
			}
		})
	}
}

// list is what kcp list does.
func list(b *testing.B, path string) {
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(b, err)
	f, err := kcp.ReadChecked(context.Background(), inspect.NewReader(s, nil))
	require.NoError(b, err)
	kcp.Survey([]kcp.Named{{Path: path, File: f}}, nil)
	_, err = s.Digest(context.Background())
	require.NoError(b, err)
	require.NoError(b, s.Close())
}

func copyHashed(b *testing.B, from, to string) {
	in, err := os.Open(from)
	require.NoError(b, err)
	out, err := os.Create(to)
	require.NoError(b, err)
	_, err = io.Copy(io.MultiWriter(out, sha256.New()), in)
	require.NoError(b, err)
	require.NoError(b, in.Close())
	require.NoError(b, out.Sync())
	require.NoError(b, out.Close())
}
