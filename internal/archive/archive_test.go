package archive

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// TestVector is the test vector of docs/reference/formats.md.
func TestVector(t *testing.T) {
	d := NewDigest()
	require.Equal(t, Sum{SHA256: fmt.Sprintf("%x", sha256.Sum256(nil))}, d.Sum())
	d.Add([]byte("/core/configmaps/2y3qvnqz5ga11oc4/default/a"), []byte("one"), 0)
	d.Add([]byte("/core/events/2y3qvnqz5ga11oc4/default/b"), []byte("two"), 3600)
	require.Equal(t, Sum{Keys: 2, Bytes: 88,
		SHA256: "04dba227103b72c89674d7123975058c3781feb6b5637be4010b1ab6d78c8e49"}, d.Sum())

	r := NewRest()
	r.Add(&snapshot.Record{Key: []byte("/registry/core/configmaps/2y3qvnqz5ga11oc4/default/a"), Value: []byte("one"),
		CreateRevision: 7, ModRevision: 9, Version: 2})
	r.Add(&snapshot.Record{
		Key: []byte("/registry/core/events/2y3qvnqz5ga11oc4/default/b"), Value: []byte("two"), CreateRevision: 12,
		ModRevision: 12, Version: 1, Lease: 0x6bb5a1fa600bfdc9,
	})
	require.Equal(t, Sum{Keys: 2, Bytes: 106,
		SHA256: "c9bfd458de6be709b11b249f3f6a0f7cc171985df827693efe7fa216c8e07b33"}, r.Sum())
}

func TestSameDigestInAnyOrder(t *testing.T) {
	type record struct {
		key, value string
		ttl        int64
	}
	records := []record{{"/a", "1", 0}, {"/b", "2", 60}, {"/c", "", 0}, {"/d", "1", 0}}
	sum := func(records []record) Sum {
		d := NewDigest()
		for _, r := range records {
			d.Add([]byte(r.key), []byte(r.value), r.ttl)
		}
		return d.Sum()
	}
	want := sum(records)
	slices.Reverse(records)
	require.Equal(t, want, sum(records))

	d := NewDigest()
	d.Add([]byte("/a"), []byte("1"), 0)
	_ = d.Sum() // records may be added after a Sum
	for _, r := range records[:3] {
		d.Add([]byte(r.key), []byte(r.value), r.ttl)
	}
	require.Equal(t, want, d.Sum())

	for _, other := range [][]record{ // different sets of records
		{{"/a", "1", 0}, {"/b", "2", 61}, {"/c", "", 0}, {"/d", "1", 0}},
		{{"/a1", "", 0}, {"/b", "2", 60}, {"/c", "", 0}, {"/d", "1", 0}},
		{{"/a", "2", 0}, {"/b", "1", 60}, {"/c", "", 0}, {"/d", "1", 0}},
		{{"/a", "1", 0}, {"/b", "2", 60}, {"/c", "", 0}},
		{{"/a", "1", 0}, {"/a", "1", 0}, {"/b", "2", 60}, {"/c", "", 0}, {"/d", "1", 0}},
	} {
		require.NotEqual(t, want.SHA256, sum(other).SHA256)
	}
}

// TestRestIsExact checks that the digest of [Rest] depends on every field of a record.
func TestRestIsExact(t *testing.T) {
	sum := func(change func(*snapshot.Record)) string {
		rec := &snapshot.Record{Key: []byte("/a"), Value: []byte("bc"), CreateRevision: 3, ModRevision: 4,
			Version: 2, Lease: 5}
		change(rec)
		r := NewRest()
		r.Add(rec)
		return r.Sum().SHA256
	}
	seen := map[string]bool{}
	for _, change := range []func(*snapshot.Record){
		func(*snapshot.Record) {},
		func(r *snapshot.Record) { r.Key, r.Value = []byte("/ab"), []byte("c") },
		func(r *snapshot.Record) { r.Value = []byte("bd") },
		func(r *snapshot.Record) { r.CreateRevision++ },
		func(r *snapshot.Record) { r.ModRevision++ },
		func(r *snapshot.Record) { r.Version++ },
		func(r *snapshot.Record) { r.Lease = 0 },
	} {
		require.False(t, seen[sum(change)])
		seen[sum(change)] = true
	}
}

func TestOpen(t *testing.T) {
	ctx, c := context.Background(), sample()
	s := c.build(t, c.notes(t))
	m, err := Open(ctx, s)
	require.NoError(t, err)
	require.Equal(t, &c.manifest, m)
	require.NoError(t, Check(ctx, s, m))
	require.Equal(t, 5, m.Total.Keys-len(m.Definitions))
	require.Equal(t, []Lease{{ID: "6bb5", TTL: 3600, Keys: 1}}, m.Leases)
	require.Equal(t, []Encryption{{Name: "aescbc:v1:key1", Keys: 1}}, m.Encryption)
	require.Equal(t, "root:consumer", m.Cluster(cluster).Path)
	require.Equal(t, 4, m.Cluster(cluster).Keys)
	require.Nil(t, m.Cluster("nobody"))

	_, err = Open(ctx, c.build(t, nil))
	require.ErrorIs(t, err, ErrNotArchive)
}

// archiveChange is a change of an archive, and words of its error.
type archiveChange struct {
	do   func(c *content)
	says string
}

func archiveChanges() map[string]archiveChange {
	configmap, event := "/core/configmaps/"+cluster+"/default/a", "/core/events/"+cluster+"/default/e"
	return map[string]archiveChange{
		"a value": {func(c *content) { c.records[configmap].Value[1] ^= 1 },
			`cluster "2y3qvnqz5ga11oc4": configmaps: digest`},
		"a longer value": {func(c *content) {
			c.records[configmap].Value = []byte(
				"longer than it was before, by far")
		}, "configmaps: 1"},
		"a key": {func(c *content) {
			c.records[configmap].Key = []byte(prefix + configmap[:len(configmap)-1] +
				"x")
		}, "configmaps: digest"},
		"another prefix": {func(c *content) { c.records[configmap].Key = []byte("/elsewhere" + configmap) },
			"is not below"},
		"another folder": {func(c *content) {
			c.records[configmap].Key = []byte(prefix + "/core/secrets/" + cluster + "/default/a")
		}, "belongs to nothing"},
		"a folder's own key": {func(c *content) {
			c.records[configmap].Key = []byte(prefix + "/core/configmaps/" +
				cluster + "/")
		}, "belongs to nothing"},
		"another cluster": {func(c *content) {
			c.records[configmap].Key = []byte(prefix + "/core/configmaps/" + child + "/default/x")
		}, "configmaps: 2 keys, the manifest says 1"},
		"a record less": {func(c *content) { delete(c.records, configmap) },
			"configmaps: 1 keys, the manifest says 2"},
		"a resource less": {func(c *content) { delete(c.records, event); c.leases = nil },
			"events: 0 keys, the manifest says 1"},
		"a record more": {func(c *content) {
			c.records["more"] = &snapshot.Record{Revision: snapshot.Revision{Main: 90},
				Key: []byte(prefix + configmap + "2"), CreateRevision: 90, ModRevision: 90, Version: 1}
		}, "configmaps: 3 keys, the manifest says 2"},
		"a revision": {func(c *content) {
			c.records[configmap].Revision.Main++
			c.records[configmap].ModRevision++
		}, "revisions, versions and leases"},
		"a create revision": {func(c *content) { c.records[configmap].CreateRevision-- },
			"revisions, versions and leases"},
		"a version":          {func(c *content) { c.records[configmap].Version++ }, "revisions, versions and leases"},
		"a lease lost":       {func(c *content) { c.records[event].Lease = 0 }, "events: digest"},
		"a lease more":       {func(c *content) { c.records[configmap].Lease = 0x6bb5 }, "configmaps: digest"},
		"a TTL":              {func(c *content) { c.leases[0x6bb5] = 60 }, "events: digest"},
		"a lease not there":  {func(c *content) { c.leases = nil }, "events: digest"},
		"a lease nobody has": {func(c *content) { c.leases[7] = 60 }, "2 leases and 1 of them held"},
		"another lease": {func(c *content) { c.records[event].Lease = 7; c.leases = map[int64]int64{7: 3600} },
			"lease 7"},
		"a definition":      {func(c *content) { c.records[definitionDir+crd].Value[2] ^= 1 }, "definition"},
		"a definition less": {func(c *content) { delete(c.records, definitionDir+crd) }, "is not there"},
		"who encrypted it": {func(c *content) {
			c.records["/core/configmaps/"+cluster+
				"/default/b"].Value[19] = '2'
		}, "digest"},
		"a child's record": {func(c *content) { delete(c.records, "/core/configmaps/"+child+"/default/a") },
			`cluster "1n7wq48mavio4f0j": configmaps: 0 keys`},
		"the revision": {func(c *content) { c.manifest.Origin.Revision = 1 << 62 },
			"at revision 100, the manifest says 4611686018427387904"},
		"a sum in the notes": {func(c *content) { c.manifest.Total.SHA256 = strings.Repeat("0", 64) },
			"all records: digest"},
		"AsStored": {func(c *content) { c.manifest.AsStored.SHA256 = strings.Repeat("0", 64) },
			"revisions, versions and leases"},
		"a cluster's sum": {func(c *content) { c.manifest.Clusters[1].SHA256 = strings.Repeat("0", 64) },
			`cluster "2y3qvnqz5ga11oc4": digest`},
		"leases in the notes": {func(c *content) { c.manifest.Leases = []Lease{} }, "the manifest says otherwise"},
		"more leases": {func(c *content) {
			c.manifest.Leases = append(c.manifest.Leases,
				Lease{ID: "7fff", Keys: 1})
		}, "the manifest lists 2"},
		"encryption": {func(c *content) { c.manifest.Encryption = []Encryption{} }, "encrypted by"},
		"more encryption": {func(c *content) {
			c.manifest.Encryption = append(c.manifest.Encryption,
				Encryption{"kms", 1})
		}, "encryption keys"},
	}
}

func TestEveryChangeFound(t *testing.T) {
	ctx := context.Background()
	for name, change := range archiveChanges() {
		t.Run(name, func(t *testing.T) {
			c := sample()
			change.do(c)
			s := c.build(t, c.notes(t))
			m, err := Open(ctx, s)
			require.NoError(t, err)
			err = Check(ctx, s, m)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, change.says)
		})
	}
}

// TestManifestChanged checks that a change of any byte of the manifest is found.
func TestManifestChanged(t *testing.T) {
	c := sample()
	notes := c.notes(t)
	text := string(notes["manifest"])
	for from, to := range map[string]string{"root:consumer\"": "root:consumes\"", `"revision": 100`: `"revision": 101`,
		"{": "{ "} {
		changed := strings.Replace(text, from, to, 1)
		require.NotEqual(t, text, changed)
		notes["manifest"] = []byte(changed)
		_, err := Open(context.Background(), c.build(t, notes))
		require.ErrorIs(t, err, ErrDamaged)
	}
	notes["manifest"] = []byte(text)
	delete(notes, "manifest.sha256")
	_, err := Open(context.Background(), c.build(t, notes))
	require.ErrorIs(t, err, ErrDamaged)
}

// TestCheckHistory checks that a file with later writes is not an archive.
func TestCheckHistory(t *testing.T) {
	ctx := context.Background()
	s, err := snapshot.Open(ctx, filepath.Join("..", "..", "testdata", "kubectl", "all.db.gz"), snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	err = scan(ctx, s, func(*snapshot.Record) error { return nil })
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "is no live record")
}

// TestReadsWithoutKeys checks that folders of an unknown layout are counted too; a key belongs to
// the longest matching folder.
func TestReadsWithoutKeys(t *testing.T) {
	ctx, outer, inner := context.Background(), "/some/folder/"+cluster+"/", "/some/folder/"+cluster+"/deeper/"+child+"/"
	c := sample()
	c.records = map[string]*snapshot.Record{}
	c.manifest.Definitions = []Definition{}
	tally := NewClusterTally(prefix, nil)
	for i, dir := range []string{outer, inner} {
		rev := int64(5 + i)
		rec := &snapshot.Record{Revision: snapshot.Revision{Main: rev}, Key: []byte(prefix + dir + "a/b"),
			CreateRevision: rev, ModRevision: rev, Version: 1}
		c.records[dir] = rec
		tally.Add(rec, []string{cluster, child}[i], Resource{Resource: "things", Dir: dir})
	}
	c.leases = nil
	tally.Fill(&c.manifest)
	s := c.build(t, c.notes(t))
	m, err := Open(ctx, s)
	require.NoError(t, err)
	require.NoError(t, Check(ctx, s, m))
	require.Equal(t, []int{1, 1}, []int{m.Cluster(cluster).Keys, m.Cluster(child).Keys})
}

const (
	prefix  = "/registry"
	cluster = "2y3qvnqz5ga11oc4"
	child   = "1n7wq48mavio4f0j"
	crd     = "9a1d7f1e-6a0b-4c39-b3bb-1f3f0f6b3c7e"
)

// content is an archive under construction: records by key, and the manifest that Build would get
// for the records.
type content struct {
	records  map[string]*snapshot.Record
	leases   map[int64]int64
	manifest Manifest
}

// dirs returns the folders of the fixture's resources.
func dirs() map[string]Resource {
	return map[string]Resource{
		"/core/configmaps/" + cluster + "/": {Resource: "configmaps"},
		"/core/events/" + cluster + "/":     {Resource: "events"},
		"/core.kcp.io/logicalclusters/customresources/" + cluster +
			"/": {Resource: "logicalclusters.core.kcp.io", Custom: true},
		"/core/configmaps/" + child + "/": {Resource: "configmaps"},
	}
}

const definitionDir = "/apiextensions.k8s.io/customresourcedefinitions/system:bound-crds/"

// sample returns an archive of two logical clusters with a lease, a definition, and an encrypted
// value.
func sample() *content {
	c := &content{records: map[string]*snapshot.Record{}, leases: map[int64]int64{0x6bb5: 3600}}
	for i, kv := range [][2]string{
		{definitionDir + crd, `{"kind":"CustomResourceDefinition"}`},
		{"/core/configmaps/" + cluster + "/default/a", `{"kind":"ConfigMap","data":{"a":"1"}}`},
		{"/core/configmaps/" + cluster + "/default/b", "k8s:enc:aescbc:v1:key1:\x00\x01\x02"},
		{"/core/events/" + cluster + "/default/e", `{"kind":"Event"}`},
		{"/core.kcp.io/logicalclusters/customresources/" + cluster + "/cluster", `{"kind":"LogicalCluster"}`},
		{"/core/configmaps/" + child + "/default/a", `{"kind":"ConfigMap"}`},
	} {
		rev := int64(10 + 2*i)
		c.records[kv[0]] = &snapshot.Record{
			Revision: snapshot.Revision{Main: rev}, Key: []byte(prefix + kv[0]), Value: []byte(kv[1]),
			CreateRevision: rev - 1, ModRevision: rev, Version: 2,
		}
	}
	c.records["/core/events/"+cluster+"/default/e"].Lease = 0x6bb5
	sum := NewDigest().Sum()
	c.manifest = Manifest{
		APIVersion: APIVersion, Kind: KindClusters, Format: Format, Name: cluster,
		Origin: Origin{Shard: "root", Prefix: prefix, SHA256: sum.SHA256, Revision: 100, Rest: sum},
		Clusters: []Cluster{{Name: child, Path: "root:consumer:child"},
			{Name: cluster, Path: "root:consumer", Owner: Owner{Cluster: "root", Name: "consumer"}}},
		Definitions: []Definition{{UID: crd, Key: definitionDir + crd, Resource: "widgets.example.dev",
			Schema: "v1.widgets", StoredVersions: []string{"v1"}}},
		Missing: []Definition{}, Identities: []Identity{{Hash: sum.SHA256,
			Resources: []string{"widgets.example.dev"}, Exports: []Export{{Name: "example.dev"}}}},
	}
	c.tally().Fill(&c.manifest)
	return c
}

func (c *content) tally() *ClusterTally {
	t := NewClusterTally(prefix, c.leases)
	for _, rec := range c.sorted() {
		key := strings.TrimPrefix(string(rec.Key), prefix)
		if uid, ok := strings.CutPrefix(key, definitionDir); ok {
			t.AddDefinition(rec, uid)
			continue
		}
		for dir, r := range dirs() {
			if strings.HasPrefix(key, dir) {
				r.Dir = dir
				t.Add(rec, strings.Split(dir, "/")[len(strings.Split(dir, "/"))-2], r)
			}
		}
	}
	return t
}

func (c *content) sorted() []*snapshot.Record {
	return slices.SortedFunc(maps.Values(c.records),
		func(a, b *snapshot.Record) int { return a.Revision.Compare(b.Revision) })
}

// build writes the file with the given notes.
func (c *content) build(t testing.TB, notes map[string][]byte) *snapshot.Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive.db")
	var leases []snapshot.Lease
	for id, ttl := range c.leases {
		leases = append(leases, snapshot.Lease{ID: id, TTL: ttl})
	}
	var records iter.Seq2[*snapshot.Record, error] = func(yield func(*snapshot.Record, error) bool) {
		for _, rec := range c.sorted() {
			if !yield(rec, nil) {
				return
			}
		}
	}
	_, err := snapshot.Build(context.Background(), path, snapshot.Content{Records: records, Leases: leases,
		Revision: 100, Notes: notes}, nil)
	require.NoError(t, err)
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func (c *content) notes(t testing.TB) map[string][]byte {
	t.Helper()
	notes, err := c.manifest.Notes()
	require.NoError(t, err)
	return notes
}
