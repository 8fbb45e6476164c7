package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

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

// Check compares the sum of all other live records after a change with that before the change. The
// error wraps snapshot.ErrVerify.
func (s Sum) Check(after Sum) error {
	if s == after {
		return nil
	}
	return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
		snapshot.ErrVerify, after.Keys, after.SHA256, s.Keys, s.SHA256)
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
