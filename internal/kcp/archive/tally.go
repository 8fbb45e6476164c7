package archive

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Tally counts the records of an archive, in revision order, and fills its manifest. It keeps about
// a hundred bytes a record.
type Tally struct {
	prefix      string
	ttl         map[int64]int64 // by id
	clusters    map[string]*Digest
	resources   map[string]*counted // by Dir
	definitions map[string]string   // SHA-256 of the value, by UID
	leases      map[int64]int
	encryption  map[string]int
	total       *Digest
	asStored    *Rest
}

// counted is one resource of one logical cluster.
type counted struct {
	cluster  string
	resource Resource
	digest   *Digest
}

// NewTally makes a Tally of records whose keys begin with prefix. leases are the TTLs of all
// leases, in seconds, by ID.
func NewTally(prefix string, leases map[int64]int64) *Tally {
	return &Tally{
		prefix: prefix, ttl: leases, clusters: map[string]*Digest{}, resources: map[string]*counted{}, definitions: map[string]string{},
		leases: map[int64]int{}, encryption: map[string]int{}, total: NewDigest(), asStored: NewRest(),
	}
}

// Add counts a record of a logical cluster and resource; the Sum of the resource is ignored.
func (t *Tally) Add(rec *snapshot.Record, cluster string, of Resource) {
	c := t.resources[of.Dir]
	if c == nil {
		c = &counted{cluster, of, NewDigest()}
		t.resources[of.Dir] = c
	}
	if t.clusters[cluster] == nil {
		t.clusters[cluster] = NewDigest()
	}
	t.add(rec, c.digest, t.clusters[cluster])
}

// AddDefinition counts the record of a bound definition.
func (t *Tally) AddDefinition(rec *snapshot.Record, uid string) {
	t.definitions[uid] = fmt.Sprintf("%x", sha256.Sum256(rec.Value))
	t.add(rec)
}

func (t *Tally) add(rec *snapshot.Record, digests ...*Digest) {
	key, ttl := rec.Key[len(t.prefix):], t.ttl[rec.Lease]
	for _, d := range append(digests, t.total) {
		d.Add(key, rec.Value, ttl)
	}
	t.asStored.Add(rec)
	if rec.Lease != 0 {
		t.leases[rec.Lease]++
	}
	if name, encrypted := encoding.Encryption(rec.Value); encrypted {
		t.encryption[name]++
	}
}

// Fill writes the counts into m, whose Clusters and Definitions are listed already. One without
// records has an empty Sum.
func (t *Tally) Fill(m *Manifest) {
	m.Total, m.AsStored = t.total.Sum(), t.asStored.Sum()
	m.Leases, m.Encryption = []Lease{}, []Encryption{}
	for _, id := range slices.Sorted(maps.Keys(t.leases)) {
		m.Leases = append(m.Leases, Lease{ID: strconv.FormatInt(id, 16), TTL: t.ttl[id], Keys: t.leases[id]})
	}
	for _, name := range slices.Sorted(maps.Keys(t.encryption)) {
		m.Encryption = append(m.Encryption, Encryption{Name: name, Keys: t.encryption[name]})
	}
	for i := range m.Definitions {
		m.Definitions[i].SHA256 = t.definitions[m.Definitions[i].UID]
	}
	resources := map[string][]Resource{} // by cluster
	for _, dir := range slices.Sorted(maps.Keys(t.resources)) {
		c := t.resources[dir]
		c.resource.Sum = c.digest.Sum()
		resources[c.cluster] = append(resources[c.cluster], c.resource)
	}
	for i := range m.Clusters {
		c := &m.Clusters[i]
		c.Resources, c.Sum = append([]Resource{}, resources[c.Name]...), cmp.Or(t.clusters[c.Name], NewDigest()).Sum()
	}
}
