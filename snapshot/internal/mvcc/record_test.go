package mvcc

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// FuzzRevisionKey checks that a parsed key is encoded to the same bytes.
func FuzzRevisionKey(f *testing.F) {
	f.Add(AppendRevisionKey(nil, Revision{Main: 5, Sub: 1}, false))
	f.Add(AppendRevisionKey(nil, Revision{Main: math.MaxInt64, Sub: math.MaxInt64}, true))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, tombstone, err := ParseRevisionKey(b)
		if err != nil {
			require.ErrorIs(t, err, bolt.ErrDamaged)
			return
		}
		require.Equal(t, b, AppendRevisionKey(nil, r, tombstone))
	})
}

// FuzzRecord checks that an encoded record parses to itself, and that etcd's own protobuf code
// reads and writes the same.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("/k"), []byte("v"), int64(3), int64(9), int64(2), int64(77), false)
	f.Add([]byte("/k"), []byte{}, int64(0), int64(0), int64(0), int64(0), true)
	f.Add([]byte{}, []byte("v"), int64(math.MaxInt64), int64(-1), int64(math.MinInt64), int64(1), false)
	f.Fuzz(func(t *testing.T, key, value []byte, create, mod, version, lease int64, tombstone bool) {
		rec := Record{Revision: Revision{Main: 9}, Key: key, Tombstone: tombstone}
		if !tombstone {
			rec.Value, rec.CreateRevision, rec.ModRevision, rec.Version, rec.Lease = value, create, mod, version, lease
		}
		k, v := AppendRevisionKey(nil, rec.Revision, tombstone), AppendKeyValue(nil, &rec)
		var got Record
		require.NoError(t, ParseRecord(k, v, &got))
		require.Equal(t, string(rec.Key), string(got.Key))
		require.Equal(t, string(rec.Value), string(got.Value))
		rec.Key, rec.Value, got.Key, got.Value = nil, nil, nil, nil
		require.Equal(t, rec, got)

		kv := &mvccpb.KeyValue{Key: key}
		if !tombstone {
			kv = &mvccpb.KeyValue{Key: key, Value: value, CreateRevision: create, ModRevision: mod,
				Version: version, Lease: lease}
		}
		theirs, err := proto.MarshalOptions{Deterministic: true}.Marshal(kv)
		require.NoError(t, err)
		require.Equal(t, string(theirs), string(v))
	})
}

// FuzzKeyValue checks that ParseRecord reads the same fields as etcd's protobuf code, and rejects
// the same bytes. ParseRecord also rejects a known field of another wire type: etcd 3.4 to 3.6
// crash on such a field, 3.7 treats it as unknown.
func FuzzKeyValue(f *testing.F) {
	f.Add(AppendKeyValue(nil, &Record{Key: []byte("/k"), Value: []byte("v"), ModRevision: 300, Version: 1, Lease: -1}))
	f.Add([]byte{0x0a, 0x05, 'x'})
	f.Add([]byte{0x3b, 0x3c})
	f.Add([]byte("\xa8\xeb\x87\x8c\x12p")) // a field number beyond the maximum
	f.Add([]byte("\r\x13s\xe5\x9d"))       // the key as four bytes of a fixed width
	f.Fuzz(func(t *testing.T, b []byte) {
		var got Record
		err := ParseRecord(AppendRevisionKey(nil, Revision{Main: 1}, false), b, &got)
		var theirs mvccpb.KeyValue
		if proto.Unmarshal(b, &theirs) != nil || ofAnotherWireType(b) {
			require.ErrorIs(t, err, bolt.ErrDamaged)
			return
		}
		require.NoError(t, err)
		require.Equal(t, string(theirs.Key), string(got.Key))
		require.Equal(t, string(theirs.Value), string(got.Value))
		require.Equal(t, []int64{theirs.CreateRevision, theirs.ModRevision, theirs.Version, theirs.Lease},
			[]int64{got.CreateRevision, got.ModRevision, got.Version, got.Lease})
	})
}

// ofAnotherWireType reports whether b, a valid message, has a field of KeyValue with a wrong wire
// type.
func ofAnotherWireType(b []byte) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		b = b[n:]
		switch num {
		case fieldKey, fieldValue:
			if typ != protowire.BytesType {
				return true
			}
		case fieldCreateRevision, fieldModRevision, fieldVersion, fieldLease:
			if typ != protowire.VarintType {
				return true
			}
		}
	}
	return false
}

// TestLeaseAtTheEnd checks that old bytes behind a record are no lease.
func TestLeaseAtTheEnd(t *testing.T) {
	for lease, behind := range map[int64]string{
		0: "\x30\x05garbage", 7: "\x00\x00", 1 << 62: "garbage", -1: "garbage", 300: "",
	} {
		rec := Record{Key: []byte("/k"), Value: []byte("v"), CreateRevision: 5, ModRevision: 5, Version: 1,
			Lease: lease}
		b := AppendKeyValue(nil, &rec)
		require.Equal(t, len(b), KeyValueSize(append(slices.Clone(b), behind...), false, false), lease)
	}
}
