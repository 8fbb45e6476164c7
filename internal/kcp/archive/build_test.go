package archive

import (
	"context"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

const (
	prefix  = "/registry"
	cluster = "2y3qvnqz5ga11oc4"
	child   = "1n7wq48mavio4f0j"
	crd     = "9a1d7f1e-6a0b-4c39-b3bb-1f3f0f6b3c7e"
)

// content is an archive in the making: records by key, and the manifest that Build would get for
// them.
type content struct {
	records  map[string]*snapshot.Record
	leases   map[int64]int64
	manifest Manifest
}

// dirs are the folders of the fixture's resources.
func dirs() map[string]Resource {
	return map[string]Resource{
		"/core/configmaps/" + cluster + "/":                             {Resource: "configmaps"},
		"/core/events/" + cluster + "/":                                 {Resource: "events"},
		"/core.kcp.io/logicalclusters/customresources/" + cluster + "/": {Resource: "logicalclusters.core.kcp.io", Custom: true},
		"/core/configmaps/" + child + "/":                               {Resource: "configmaps"},
	}
}

const definitionDir = "/apiextensions.k8s.io/customresourcedefinitions/system:bound-crds/"

// sample is an archive of two logical clusters with a lease, a definition, and an encrypted value.
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
			Revision: snapshot.Revision{Main: rev}, Key: []byte(prefix + kv[0]), Value: []byte(kv[1]), CreateRevision: rev - 1, ModRevision: rev, Version: 2,
		}
	}
	c.records["/core/events/"+cluster+"/default/e"].Lease = 0x6bb5
	sum := NewDigest().Sum()
	c.manifest = Manifest{
		APIVersion: APIVersion, Kind: Kind, Format: Format, Name: cluster,
		Origin:      Origin{Shard: "root", Prefix: prefix, SHA256: sum.SHA256, Revision: 100, Rest: sum},
		Clusters:    []Cluster{{Name: child, Path: "root:consumer:child"}, {Name: cluster, Path: "root:consumer", Owner: Owner{Cluster: "root", Name: "consumer"}}},
		Definitions: []Definition{{UID: crd, Key: definitionDir + crd, Resource: "widgets.example.dev", Schema: "v1.widgets", StoredVersions: []string{"v1"}}},
		Missing:     []Definition{}, Identities: []Identity{{Hash: sum.SHA256, Resources: []string{"widgets.example.dev"}, Exports: []Export{{Name: "example.dev"}}}},
	}
	c.tally().Fill(&c.manifest)
	return c
}

func (c *content) tally() *Tally {
	t := NewTally(prefix, c.leases)
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
	return slices.SortedFunc(maps.Values(c.records), func(a, b *snapshot.Record) int { return a.Revision.Compare(b.Revision) })
}

// build writes the file with the notes that m has.
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
	_, err := snapshot.Build(context.Background(), path, snapshot.Content{Records: records, Leases: leases, Revision: 100, Notes: notes}, nil)
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
