package snapshot

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// revisionKeySize is main i64, '_', sub i64, all big-endian (etcd server/storage/mvcc/revision.go); a deletion has one
	// byte more, the mark.
	revisionKeySize = 17
	tombstoneMark   = 't'
)

// Revision is the place of a record in etcd's history: Main counts transactions, Sub the operations within one.
type Revision struct{ Main, Sub int64 }

// Compare orders revisions as etcd commits them.
func (r Revision) Compare(o Revision) int {
	switch {
	case r.Main != o.Main:
		if r.Main < o.Main {
			return -1
		}
		return 1
	case r.Sub < o.Sub:
		return -1
	case r.Sub > o.Sub:
		return 1
	}
	return 0
}

func (r Revision) String() string { return fmt.Sprintf("%d.%d", r.Main, r.Sub) }

// Record is one entry of etcd's key bucket: what a Put stored, or a tombstone. Key and Value alias the mapped file: they are
// valid until Close and must not be written to.
type Record struct {
	Revision       Revision
	Tombstone      bool   // a deletion: Key only, everything below is zero
	Key            []byte // empty for the record that "etcdutl snapshot restore --bump-revision" leaves behind
	Value          []byte
	CreateRevision int64 // main revision of the Put that began this life of the key
	ModRevision    int64 // main revision of this Put; Kubernetes shows it as resourceVersion
	Version        int64 // Puts in this life of the key, from 1
	Lease          int64 // lease id, 0 for none
}

// parseRevisionKey decodes a key of the key bucket.
func parseRevisionKey(k []byte) (r Revision, tombstone bool, err error) {
	switch {
	case len(k) == revisionKeySize:
	case len(k) == revisionKeySize+1 && k[revisionKeySize] == tombstoneMark:
		tombstone = true
	default:
		return r, false, fmt.Errorf("%w: revision key of %d bytes", ErrDamaged, len(k))
	}
	if k[8] != '_' {
		return r, false, fmt.Errorf("%w: revision key without separator", ErrDamaged)
	}
	main, sub := binary.BigEndian.Uint64(k), binary.BigEndian.Uint64(k[9:])
	if main > math.MaxInt64 || sub > math.MaxInt64 {
		return r, false, fmt.Errorf("%w: negative revision", ErrDamaged)
	}
	return Revision{int64(main), int64(sub)}, tombstone, nil
}

// appendRevisionKey is the inverse of parseRevisionKey.
func appendRevisionKey(b []byte, r Revision, tombstone bool) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.Main))
	b = append(b, '_')
	b = binary.BigEndian.AppendUint64(b, uint64(r.Sub))
	if tombstone {
		b = append(b, tombstoneMark)
	}
	return b
}

// Field numbers of mvccpb.KeyValue (etcd api/mvccpb/kv.proto).
const (
	fieldKey = iota + 1
	fieldCreateRevision
	fieldModRevision
	fieldVersion
	fieldValue
	fieldLease
)

// parseRecord decodes an entry of the key bucket into rec, by hand: a generic protobuf decoder costs ten times as much and
// copies the value. Unknown fields are passed over, as protobuf asks.
func parseRecord(k, v []byte, rec *Record) error {
	*rec = Record{}
	var err error
	if rec.Revision, rec.Tombstone, err = parseRevisionKey(k); err != nil {
		return err
	}
	for len(v) > 0 {
		num, typ, n := protowire.ConsumeTag(v)
		if n < 0 || num > protowire.MaxValidNumber { // which etcd's decoder refuses too, and dies
			return fmt.Errorf("%w: record %s is not a KeyValue", ErrDamaged, rec.Revision)
		}
		v = v[n:]
		if n = rec.field(num, typ, v); n < 0 {
			return fmt.Errorf("%w: record %s is not a KeyValue (field %d)", ErrDamaged, rec.Revision, num)
		}
		v = v[n:]
	}
	return nil
}

// field takes one field from the front of v and returns its length, negative when it is malformed.
func (r *Record) field(num protowire.Number, typ protowire.Type, v []byte) int {
	switch {
	case typ == protowire.BytesType && (num == fieldKey || num == fieldValue):
		b, n := protowire.ConsumeBytes(v)
		if n < 0 {
			return n
		}
		b = b[:len(b):len(b)]
		if num == fieldKey {
			r.Key = b
		} else {
			r.Value = b
		}
		return n
	case typ == protowire.VarintType && num >= fieldCreateRevision && num <= fieldLease && num != fieldValue:
		x, n := protowire.ConsumeVarint(v)
		switch num {
		case fieldCreateRevision:
			r.CreateRevision = int64(x)
		case fieldModRevision:
			r.ModRevision = int64(x)
		case fieldVersion:
			r.Version = int64(x)
		case fieldLease:
			r.Lease = int64(x)
		}
		return n
	}
	if num <= fieldLease {
		return -1 // of another type: etcd 3.4 to 3.6 die of it, 3.7 passes over what the record says
	}
	return protowire.ConsumeFieldValue(num, typ, v)
}

// appendKeyValue encodes the record as etcd does: fields in order, zero ones left out; a tombstone has its key only.
func (r *Record) appendKeyValue(b []byte) []byte {
	b = appendBytesField(b, fieldKey, r.Key)
	if r.Tombstone {
		return b
	}
	b = appendIntField(b, fieldCreateRevision, r.CreateRevision)
	b = appendIntField(b, fieldModRevision, r.ModRevision)
	b = appendIntField(b, fieldVersion, r.Version)
	b = appendBytesField(b, fieldValue, r.Value)
	return appendIntField(b, fieldLease, r.Lease)
}

func appendBytesField(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func appendIntField(b []byte, num protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}
