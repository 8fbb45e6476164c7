package mvcc

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
	// RevisionKeySize is the size of main i64, '_', sub i64, all big-endian (etcd
	// server/storage/mvcc/revision.go); the key of a deletion has one more byte, the mark.
	RevisionKeySize = 17
	TombstoneMark   = 't'
)

// MaxRevision limits the revision of a store. A server panics at the write after math.MaxInt64;
// some writes must remain possible after a restore.
const MaxRevision = math.MaxInt64 - 1<<20

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

// ParseRevisionKey decodes a key of the key bucket.
func ParseRevisionKey(k []byte) (r Revision, tombstone bool, err error) {
	tombstone = len(k) == RevisionKeySize+1 && k[RevisionKeySize] == TombstoneMark
	if len(k) != RevisionKeySize && !tombstone {
		return r, false, fmt.Errorf("%w: revision key of %d bytes", bolt.ErrDamaged, len(k))
	}
	if k[8] != '_' {
		return r, false, fmt.Errorf("%w: revision key without separator", bolt.ErrDamaged)
	}
	main, sub := binary.BigEndian.Uint64(k), binary.BigEndian.Uint64(k[9:])
	if main > math.MaxInt64 || sub > math.MaxInt64 {
		return r, false, fmt.Errorf("%w: negative revision", bolt.ErrDamaged)
	}
	return Revision{int64(main), int64(sub)}, tombstone, nil
}

// AppendRevisionKey is the inverse of ParseRevisionKey.
func AppendRevisionKey(b []byte, r Revision, tombstone bool) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.Main))
	b = append(b, '_')
	b = binary.BigEndian.AppendUint64(b, uint64(r.Sub))
	if tombstone {
		b = append(b, TombstoneMark)
	}
	return b
}

// SplitEntry separates the revision key at the beginning of b from the KeyValue behind it.
func SplitEntry(b []byte) (k, v []byte) {
	n := RevisionKeySize
	if b[n] == TombstoneMark {
		n++
	}
	return b[:n:n], b[n:]
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

// ParseRecord decodes an entry of the key bucket into rec, by hand: a generic protobuf decoder
// costs ten times as much and copies the value. Unknown fields are skipped, as in protobuf.
func ParseRecord(k, v []byte, rec *Record) (err error) {
	*rec = Record{}
	if rec.Revision, rec.Tombstone, err = ParseRevisionKey(k); err != nil {
		return err
	}
	for len(v) > 0 {
		num, typ, n := protowire.ConsumeTag(v)
		if n < 0 || num > protowire.MaxValidNumber { // etcd's decoder also fails, and the server crashes
			return fmt.Errorf("%w: record %s is not a KeyValue", bolt.ErrDamaged, rec.Revision)
		}
		v = v[n:]
		if n = rec.field(num, typ, v); n < 0 {
			return fmt.Errorf("%w: record %s is not a KeyValue (field %d)", bolt.ErrDamaged, rec.Revision, num)
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

// AppendKeyValue encodes the KeyValue of r like etcd: fields in order, without zero fields; a
// tombstone has only its key.
func AppendKeyValue(b []byte, r *Record) []byte {
	b = AppendBytes(b, fieldKey, r.Key)
	if r.Tombstone {
		return b
	}
	b = AppendInt(b, fieldCreateRevision, r.CreateRevision)
	b = AppendInt(b, fieldModRevision, r.ModRevision)
	b = AppendInt(b, fieldVersion, r.Version)
	b = AppendBytes(b, fieldValue, r.Value)
	return AppendInt(b, fieldLease, r.Lease)
}

// KeyValueSize returns the length of the KeyValue at the beginning of b; 0 for none. The length
// follows from the fields. With unnumbered, create revision and version may be absent.
func KeyValueSize(b []byte, tombstone, unnumbered bool) int {
	at := 0
	skip := func(num protowire.Number, typ protowire.Type) bool {
		if at == len(b) || uint64(b[at]) != protowire.EncodeTag(num, typ) {
			return false
		}
		n := protowire.ConsumeFieldValue(num, typ, b[at+1:])
		if n >= 0 {
			at += 1 + n
		}
		return n >= 0
	}
	if !skip(fieldKey, protowire.BytesType) {
		return 0
	}
	if tombstone {
		return at
	}
	for _, num := range []protowire.Number{fieldCreateRevision, fieldModRevision, fieldVersion} {
		if !skip(num, protowire.VarintType) && !(unnumbered && num != fieldModRevision) {
			return 0
		}
	}
	value := at < len(b) && uint64(b[at]) == protowire.EncodeTag(fieldValue, protowire.BytesType) // absent if empty
	if value && !skip(fieldValue, protowire.BytesType) {
		return 0 // cut off
	}
	end := at
	// A lease is optional, and old bytes may follow the last record of a page. The field of an ID
	// by etcd has 9 or 10 bytes; a shorter field needs a revision key or zeros behind it.
	const usual = 9
	if skip(fieldLease, protowire.VarintType) && at-end < usual && at < len(b) && b[at] != 0 {
		return end
	}
	return at
}

// Encoder encodes records in one reused buffer.
type Encoder struct{ key, value []byte }

// Element returns the entry of the key bucket for r, valid until the next call.
func (e *Encoder) Element(r *Record) bolt.Element {
	e.key = AppendRevisionKey(e.key[:0], r.Revision, r.Tombstone)
	e.value = AppendKeyValue(e.value[:0], r)
	return bolt.Element{Key: e.key, Value: e.value}
}

// AppendBytes appends a field to a message, unless v is empty.
func AppendBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// AppendInt appends a field to a message, unless v is 0.
func AppendInt(b []byte, num protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}

// Lie is an error of class Lies: a server starts, and serves numbers that no writer stored.
type Lie struct{ error }

func (l Lie) Unwrap() error { return l.error }

// CheckRecord checks the numbers of rec against before, the previous record of the same key or nil.
// A server serves wrong numbers unchanged, and optimistic locking breaks.
func CheckRecord(before, rec *Record) error {
	if err := Follows(before, rec); err != nil {
		return Lie{fmt.Errorf("%w: record %s of key %q: %w", bolt.ErrDamaged, rec.Revision, Clip(rec.Key), err)}
	}
	return nil
}

// CheckGone returns ErrOdd for the deletion of a key that does not exist. Up to the compact
// revision a compaction may have removed the previous record.
func CheckGone(before, rec *Record, compacted int64) error {
	if !rec.Tombstone || before == nil && rec.Revision.Main <= compacted || before != nil && !before.Tombstone {
		return nil
	}
	return fmt.Errorf("%w: record %s of key %q deletes a key that does not exist", ErrOdd, rec.Revision, Clip(rec.Key))
}

// Follows is CheckRecord without the name of the record in the error.
func Follows(before, r *Record) error {
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

// Clip returns the beginning of a long key, for a message.
func Clip(key []byte) []byte { return key[:min(len(key), 300)] }
