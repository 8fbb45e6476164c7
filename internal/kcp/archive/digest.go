package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Digest identifies a set of records, in any order, by the data that a move preserves: key, value
// and lease TTL. The digest is the SHA-256 of the SHA-256s of all records in ascending order, with
// 32 bytes a record in memory. A record is hashed as the length of its key (8 bytes, big-endian),
// the key without the storage prefix, the length of its value (8 bytes), the value and the TTL (8
// bytes).
type Digest struct {
	hashes [][sha256.Size]byte
	bytes  int64
	hash   hash.Hash
}

// NewDigest returns a Digest of no records.
func NewDigest() *Digest { return &Digest{hash: sha256.New()} }

// Add adds a record: its key without the storage prefix ("/core/configmaps/..."), its stored value,
// and the TTL of its lease in seconds, 0 for no lease and for a missing lease.
func (d *Digest) Add(key, value []byte, ttl int64) {
	d.hash.Reset()
	writeFields(d.hash, key, value)
	writeNumbers(d.hash, ttl)
	d.hashes = append(d.hashes, [sha256.Size]byte(d.hash.Sum(nil)))
	d.bytes += int64(len(key)) + int64(len(value))
}

// Sum returns the count and digest of the records so far.
func (d *Digest) Sum() Sum {
	slices.SortFunc(d.hashes, func(a, b [sha256.Size]byte) int { return slices.Compare(a[:], b[:]) })
	whole := sha256.New()
	for _, h := range d.hashes {
		_, _ = whole.Write(h[:])
	}
	return Sum{Keys: len(d.hashes), Bytes: d.bytes, SHA256: fmt.Sprintf("%x", whole.Sum(nil))}
}

// Rest identifies the records that a move does not change, by all their data: whole key, revisions,
// version, lease and value, in revision order. Rest is one SHA-256 over all records: the length of
// the key (8 bytes, big-endian), the key, the length of the value, the value, then create revision,
// mod revision, version and lease, 8 bytes each.
type Rest struct {
	keys  int
	bytes int64
	hash  hash.Hash
}

// NewRest returns a Rest of no records.
func NewRest() *Rest { return &Rest{hash: sha256.New()} }

// Add adds the next record in revision order.
func (r *Rest) Add(rec *snapshot.Record) {
	writeFields(r.hash, rec.Key, rec.Value)
	writeNumbers(r.hash, rec.CreateRevision, rec.ModRevision, rec.Version, rec.Lease)
	r.keys++
	r.bytes += int64(len(rec.Key)) + int64(len(rec.Value))
}

// Sum returns the count and digest of the records so far.
func (r *Rest) Sum() Sum {
	return Sum{Keys: r.keys, Bytes: r.bytes, SHA256: fmt.Sprintf("%x", r.hash.Sum(nil))}
}

// writeFields hashes each field after its length, so that different lists never hash the same
// bytes.
func writeFields(h hash.Hash, fields ...[]byte) {
	for _, f := range fields {
		writeNumbers(h, int64(len(f)))
		_, _ = h.Write(f)
	}
}

func writeNumbers(h hash.Hash, numbers ...int64) {
	var buf [8]byte
	for _, n := range numbers {
		_, _ = h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(n)))
	}
}

// Tally counts the records of an archive, in revision order, and fills its manifest. A Tally uses
// about a hundred bytes a record.
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

// NewTally returns a Tally for records whose keys begin with prefix. leases are the TTLs of all
// leases, in seconds, by ID.
func NewTally(prefix string, leases map[int64]int64) *Tally {
	return &Tally{
		prefix: prefix, ttl: leases, clusters: map[string]*Digest{}, resources: map[string]*counted{},
		definitions: map[string]string{},
		leases:      map[int64]int{}, encryption: map[string]int{}, total: NewDigest(), asStored: NewRest(),
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

// Fill writes the counts into m. Clusters and Definitions of m must be listed already; an entry
// without records gets an empty Sum.
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
