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

// Tally counts the records of an archive, in revision order. A Tally uses about a hundred bytes a
// record.
type Tally struct {
	prefixes   []string
	ttl        map[int64]int64 // by id
	leases     map[int64]int
	encryption map[string]int
	total      *Digest
	asStored   *Rest
}

// NewTally returns a Tally for records whose keys are below the storage prefixes. leases are the
// TTLs of all leases, in seconds, by ID.
func NewTally(prefixes []string, leases map[int64]int64) *Tally {
	return &Tally{prefixes: prefixes, ttl: leases, leases: map[int64]int{}, encryption: map[string]int{},
		total: NewDigest(), asStored: NewRest()}
}

// Add counts a record, also in digests. It reports whether the key is below one of the prefixes;
// other records are not counted.
func (t *Tally) Add(rec *snapshot.Record, digests ...*Digest) bool {
	key, below := relative(t.prefixes, rec.Key)
	if !below {
		return false
	}
	for _, d := range append(digests, t.total) {
		d.Add(key, rec.Value, t.ttl[rec.Lease])
	}
	t.asStored.Add(rec)
	if rec.Lease != 0 {
		t.leases[rec.Lease]++
	}
	if name, encrypted := encoding.Encryption(rec.Value); encrypted {
		t.encryption[name]++
	}
	return true
}

// relative returns a key without its storage prefix, the longest of several.
func relative(prefixes []string, key []byte) (rest []byte, below bool) {
	for _, prefix := range prefixes {
		if len(key) > len(prefix) && string(key[:len(prefix)]) == prefix && key[len(prefix)] == '/' &&
			(!below || len(key)-len(prefix) < len(rest)) {
			rest, below = key[len(prefix):], true
		}
	}
	return rest, below
}

// Counts returns the counts so far.
func (t *Tally) Counts() Counts {
	c := Counts{Leases: []Lease{}, Encryption: []Encryption{}, Total: t.total.Sum(), AsStored: t.asStored.Sum()}
	for _, id := range slices.Sorted(maps.Keys(t.leases)) {
		c.Leases = append(c.Leases, Lease{ID: strconv.FormatInt(id, 16), TTL: t.ttl[id], Keys: t.leases[id]})
	}
	for _, name := range slices.Sorted(maps.Keys(t.encryption)) {
		c.Encryption = append(c.Encryption, Encryption{Name: name, Keys: t.encryption[name]})
	}
	return c
}

// maxTTL is the longest TTL that a server grants, in seconds (etcd server/lease/lessor.go,
// MaxLeaseTTL).
const maxTTL = 9_000_000_000

// Leases returns the leases that an archive can have: those with a TTL that a server grants.
func Leases(all map[int64]int64) map[int64]int64 {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(_, ttl int64) bool { return ttl <= 0 || ttl > maxTTL })
	return some
}

// Held returns the leases of the archive for [snapshot.Content].
func (c *Counts) Held() (held []snapshot.Lease, err error) {
	for _, l := range c.Leases {
		id, err := strconv.ParseInt(l.ID, 16, 64)
		if err != nil {
			return nil, err
		}
		if l.TTL > 0 {
			held = append(held, snapshot.Lease{ID: id, TTL: l.TTL})
		}
	}
	return held, nil
}

// ClusterTally counts the records of an archive of logical clusters, and fills its manifest.
type ClusterTally struct {
	*Tally
	clusters    map[string]*Digest
	resources   map[string]*counted // by Dir
	definitions map[string]string   // SHA-256 of the value, by UID
}

// counted is one resource of one logical cluster.
type counted struct {
	cluster  string
	resource Resource
	digest   *Digest
}

// NewClusterTally returns a ClusterTally for records whose keys begin with prefix. leases are the
// TTLs of all leases, in seconds, by ID.
func NewClusterTally(prefix string, leases map[int64]int64) *ClusterTally {
	return &ClusterTally{Tally: NewTally([]string{prefix}, leases), clusters: map[string]*Digest{},
		resources: map[string]*counted{}, definitions: map[string]string{}}
}

// Add counts a record of a logical cluster and resource; the Sum of the resource is ignored.
func (t *ClusterTally) Add(rec *snapshot.Record, cluster string, of Resource) {
	c := t.resources[of.Dir]
	if c == nil {
		c = &counted{cluster, of, NewDigest()}
		t.resources[of.Dir] = c
	}
	if t.clusters[cluster] == nil {
		t.clusters[cluster] = NewDigest()
	}
	t.Tally.Add(rec, c.digest, t.clusters[cluster])
}

// AddDefinition counts the record of a bound definition.
func (t *ClusterTally) AddDefinition(rec *snapshot.Record, uid string) {
	t.definitions[uid] = fmt.Sprintf("%x", sha256.Sum256(rec.Value))
	t.Tally.Add(rec)
}

// Fill writes the counts into m. Clusters and Definitions of m must be listed already; an entry
// without records gets an empty Sum.
func (t *ClusterTally) Fill(m *Manifest) {
	m.Counts = t.Counts()
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
