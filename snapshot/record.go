package snapshot

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const (
	// revisionKeySize is the size of main i64, '_', sub i64, all big-endian (etcd
	// server/storage/mvcc/revision.go); the key of a deletion has one more byte, the mark.
	revisionKeySize = 17
	tombstoneMark   = 't'
)

// Revision is the position of a record in etcd's history: Main counts transactions, Sub the
// operations within a transaction.
type Revision struct{ Main, Sub int64 }

// Compare orders revisions in commit order.
func (r Revision) Compare(o Revision) int {
	if r.Main != o.Main {
		return cmp.Compare(r.Main, o.Main)
	}
	return cmp.Compare(r.Sub, o.Sub)
}

func (r Revision) String() string { return fmt.Sprintf("%d.%d", r.Main, r.Sub) }

// Record is an entry of etcd's key bucket: a Put or a tombstone. Key and Value alias the mapped
// file: they are valid until Close and must not be written to.
type Record struct {
	Revision       Revision
	Tombstone      bool   // a deletion: only Key is set
	Key            []byte // empty for the record of "etcdutl snapshot restore --bump-revision"
	Value          []byte
	CreateRevision int64 // main revision of the Put that created the key
	ModRevision    int64 // main revision of this Put; Kubernetes shows it as resourceVersion
	Version        int64 // number of Puts since the creation of the key, from 1
	Lease          int64 // lease id, 0 for none
	FreePage       bool  // removed by a compaction, and found in a free page: see Config.FreePages
}

// parseRevisionKey decodes a key of the key bucket.
func parseRevisionKey(k []byte) (r Revision, tombstone bool, err error) {
	tombstone = len(k) == revisionKeySize+1 && k[revisionKeySize] == tombstoneMark
	if len(k) != revisionKeySize && !tombstone {
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

// parseRecord decodes an entry of the key bucket into rec, by hand: a generic protobuf decoder
// costs ten times as much and copies the value. Unknown fields are skipped, as in protobuf.
func parseRecord(k, v []byte, rec *Record) (err error) {
	*rec = Record{}
	if rec.Revision, rec.Tombstone, err = parseRevisionKey(k); err != nil {
		return err
	}
	for len(v) > 0 {
		num, typ, n := protowire.ConsumeTag(v)
		if n < 0 || num > protowire.MaxValidNumber { // etcd's decoder also fails, and the server crashes
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

// field decodes the first field of v and returns its length, negative if the field is malformed.
func (r *Record) field(num protowire.Number, typ protowire.Type, v []byte) int {
	var data *[]byte
	var number *int64
	switch num {
	case fieldKey:
		data = &r.Key
	case fieldValue:
		data = &r.Value
	case fieldCreateRevision:
		number = &r.CreateRevision
	case fieldModRevision:
		number = &r.ModRevision
	case fieldVersion:
		number = &r.Version
	case fieldLease:
		number = &r.Lease
	default:
		return protowire.ConsumeFieldValue(num, typ, v)
	}
	switch {
	case typ == protowire.BytesType && data != nil:
		b, n := protowire.ConsumeBytes(v)
		*data = b[:len(b):len(b)]
		return n
	case typ == protowire.VarintType && number != nil:
		x, n := protowire.ConsumeVarint(v)
		*number = int64(x)
		return n
	}
	return -1 // etcd 3.4 to 3.6 crash on another type, 3.7 skips the field
}

// appendKeyValue encodes the record like etcd: fields in order, without zero fields; a tombstone
// has only its key.
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

// encoder encodes records in one reused buffer.
type encoder struct{ key, value []byte }

// element returns the entry of the key bucket for r, valid until the next call.
func (e *encoder) element(r *Record) bolt.Element {
	e.key = appendRevisionKey(e.key[:0], r.Revision, r.Tombstone)
	e.value = r.appendKeyValue(e.value[:0])
	return bolt.Element{Key: e.key, Value: e.value}
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

// varintField returns the last field of a message with the number want, or 0.
func varintField(msg []byte, want protowire.Number) (value uint64, err error) {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeField(msg)
		if n < 0 {
			return 0, fmt.Errorf("%w: malformed message", ErrDamaged)
		}
		if num == want && typ == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(msg)
			value, _ = protowire.ConsumeVarint(msg[tag:])
		}
		msg = msg[n:]
	}
	return value, nil
}

// checkRecord checks the numbers of rec against before, the previous record of the same key or nil.
// A server serves wrong numbers unchanged, and optimistic locking breaks.
func checkRecord(before, rec *Record) error {
	if err := rec.follows(before); err != nil {
		return lie{fmt.Errorf("%w: record %s of key %q: %w", ErrDamaged, rec.Revision, clip(rec.Key), err)}
	}
	return nil
}

// checkGone returns errOdd for the deletion of a key that does not exist. Up to the compact
// revision a compaction may have removed the previous record.
func checkGone(before, rec *Record, compacted int64) error {
	if !rec.Tombstone || before == nil && rec.Revision.Main <= compacted || before != nil && !before.Tombstone {
		return nil
	}
	return fmt.Errorf("%w: record %s of key %q deletes a key that does not exist", errOdd, rec.Revision, clip(rec.Key))
}

// follows is checkRecord without the name of the record in the error.
func (r *Record) follows(before *Record) error {
	create, version := r.Revision.Main, int64(1)
	if before != nil && !before.Tombstone {
		create, version = before.CreateRevision, before.Version+1
	}
	switch {
	case len(r.Key) == 0:
		return errors.New("it holds more than the record without a key that --bump-revision leaves, which is empty")
	case r.Tombstone: // harmless without an earlier record, which a compaction may have removed
		if r.CreateRevision != 0 || r.ModRevision != 0 || r.Version != 0 || r.Lease != 0 || len(r.Value) != 0 {
			return errors.New("a tombstone holds more than its key")
		}
	case r.ModRevision != r.Revision.Main:
		return fmt.Errorf("mod_revision is %d", r.ModRevision)
	case before == nil: // a server accepts the numbers and continues from them
		if r.CreateRevision <= 0 || r.CreateRevision > r.ModRevision || r.Version < 1 {
			return fmt.Errorf("create_revision %d and version %d do not agree", r.CreateRevision, r.Version)
		}
	case r.CreateRevision != create || r.Version != version:
		return fmt.Errorf("create_revision %d and version %d, want %d and %d",
			r.CreateRevision, r.Version, create, version)
	}
	return nil
}

// clip returns the beginning of a long key, for a message.
func clip(key []byte) []byte { return key[:min(len(key), 300)] }
