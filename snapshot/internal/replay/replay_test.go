package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// listed are the keys of a store for tests, sorted; the ordinal is the index.
type listed []*mvcc.Record

func (l listed) Find(key []byte, rec *mvcc.Record) (uint32, bool, error) {
	compare := func(r *mvcc.Record, key []byte) int { return bytes.Compare(r.Key, key) }
	n, found := slices.BinarySearchFunc(l, key, compare)
	if found {
		*rec = *l[n]
	}
	return uint32(n), found, nil
}

func (l listed) At(ordinal uint32, rec *mvcc.Record) error {
	*rec = *l[ordinal]
	return nil
}

func (l listed) From(_ context.Context, key []byte, fn func(*mvcc.Record, uint32) (bool, error)) error {
	for n, rec := range l {
		if bytes.Compare(rec.Key, key) >= 0 {
			if more, err := fn(rec, uint32(n)); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

func (l listed) Leased(_ context.Context, fn func(*mvcc.Record, uint32)) error {
	for n, rec := range l {
		if rec.Lease != 0 {
			fn(rec, uint32(n))
		}
	}
	return nil
}

// store returns a store of 100 keys, some with a lease.
func store() *Store {
	s := &Store{Revision: 101, Leases: []mvcc.Lease{{ID: 7, TTL: 60}}}
	var keys listed
	for n := range int64(100) {
		keys = append(keys, &mvcc.Record{Revision: mvcc.Revision{Main: n + 2}, Key: fmt.Appendf(nil, "/k%02d", n),
			Value: bytes.Repeat([]byte("v"), 50), CreateRevision: n + 2, ModRevision: n + 2, Version: 1,
			Lease: n % 2 * 7})
	}
	s.Keys = keys
	return s
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// started returns a replay on a store.
func started(t testing.TB, s *Store, emit func(*mvcc.Record) error) *Replay {
	t.Helper()
	return must(New(nil, s, 1<<30, emit))(t)
}

// TestBounded checks that a log of small entries that copy a large value again and again does not
// fill the disk.
func TestBounded(t *testing.T) {
	n := 0
	r := started(t, store(), func(*mvcc.Record) error { n++; return nil })
	key := []byte("/k07")
	r.most = 10 * int64(len(key)+50)
	again := must(proto.Marshal(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: key, IgnoreValue: true}}))(t)
	var err error
	for err == nil && n < 100 {
		err = r.Apply(t.Context(), wal.Entry{Index: 1, Term: 1, Data: again})
	}
	require.ErrorIs(t, err, ErrRefused)
	require.Equal(t, 10, n)
}

// TestReplayReads ends a replay whose requests read far more than the log has: short transactions
// that compare the values of all keys, and deletions of ranges without a key.
func TestReplayReads(t *testing.T) {
	base := store()
	compare := func(target pb.Compare_CompareTarget) *pb.InternalRaftRequest {
		return &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Compare: []*pb.Compare{{Key: []byte{0}, RangeEnd: []byte{0},
			Target: target, Result: 9}}}} // etcd takes an unknown result for true
	}
	for name, request := range map[string]*pb.InternalRaftRequest{
		"compare versions": compare(pb.Compare_VERSION),
		"compare values":   compare(pb.Compare_VALUE),
		"delete all":       {DeleteRange: &pb.DeleteRangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := started(t, base, func(*mvcc.Record) error { return nil })
			r.reads = maxReads - 10*100*readOfKey
			data, n := must(proto.Marshal(request))(t), 0
			var err error
			for ; err == nil && n < 12; n++ {
				err = r.Apply(t.Context(), wal.Entry{Index: 7, Term: 1, Data: data})
			}
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorContains(t, err, "entry 7: the conditions and ranges of its requests read too many keys")
			require.Less(t, n, 12)
		})
	}
}

// TestReplaySwift checks that the time of a request does not grow with the alarms of a hostile log.
func TestReplaySwift(t *testing.T) {
	r := started(t, &Store{Revision: 1}, func(*mvcc.Record) error { return nil })
	apply := func(request *pb.InternalRaftRequest) {
		data := must(proto.Marshal(request))(t)
		require.NoError(t, r.Apply(t.Context(), wal.Entry{Index: 1, Term: 1, Data: data}))
	}
	begun := time.Now()
	for i := range 100_000 {
		apply(&pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: 1, Alarm: 7, MemberID: uint64(i)}})
		apply(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("k")}})
	}
	require.Less(t, time.Since(begun), 20*time.Second)
	require.EqualValues(t, 100_001, r.Revision)
}

// TestRequestsOfNoServer checks the errors of entries with right checksums that no etcd writes.
func TestRequestsOfNoServer(t *testing.T) {
	nested := &pb.TxnRequest{}
	for range maxNested + 2 {
		nested = &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: nested}}}}
	}
	for text, data := range map[string][]byte{
		"a put without a key":           must(proto.Marshal(&pb.InternalRaftRequest{Put: &pb.PutRequest{}}))(t),
		"transactions nested deeper":    must(proto.Marshal(&pb.InternalRaftRequest{Txn: nested}))(t),
		"not a protobuf message":        {0x22, 2, 0xff, 0xff}, // a put
		"a request unknown to etcd 3.7": {0xf2, 7, 1, 0},
	} {
		r := started(t, &Store{Revision: 1}, func(*mvcc.Record) error { return nil })
		err := r.Apply(t.Context(), wal.Entry{Index: 7, Term: 1, Data: data})
		require.ErrorContains(t, err, "entry 7: ")
		require.ErrorContains(t, err, text)
		require.Equal(t, text != "a request unknown to etcd 3.7", errors.Is(err, wal.ErrUnusable), "%v", err)
	}
}

// FuzzEntry applies an entry of arbitrary bytes to a store: an error, or records that follow each
// other, and no panic.
func FuzzEntry(f *testing.F) {
	put := &pb.PutRequest{Key: []byte("/a"), Value: []byte("value")}
	op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
	del := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("/"), RangeEnd: []byte("0")}}}
	compare := &pb.Compare{Key: []byte("/a"), Target: pb.Compare_VALUE, RangeEnd: []byte{0}}
	txn := &pb.TxnRequest{Compare: []*pb.Compare{compare}, Success: []*pb.RequestOp{op, del},
		Failure: []*pb.RequestOp{del, op}}
	nested := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn}}
	for _, r := range []*pb.InternalRaftRequest{
		{Put: put}, {Txn: txn},
		{Txn: &pb.TxnRequest{Failure: []*pb.RequestOp{nested, op}, Success: []*pb.RequestOp{nested}}},
		{LeaseGrant: &pb.LeaseGrantRequest{ID: 7, TTL: 60}}, {LeaseRevoke: &pb.LeaseRevokeRequest{ID: 7}},
		{Compaction: &pb.CompactionRequest{Revision: 2}}, {Alarm: &pb.AlarmRequest{Action: 1, Alarm: 1, MemberID: 9}},
	} {
		f.Add(must(proto.Marshal(r))(f))
	}
	base := store()
	f.Fuzz(func(t *testing.T, data []byte) {
		var last mvcc.Revision
		r := started(t, base, func(rec *mvcc.Record) error {
			require.Positive(t, rec.Revision.Compare(last))
			require.NotEmpty(t, rec.Key)
			last = rec.Revision
			return nil
		})
		before := r.Revision
		err := r.Apply(t.Context(), wal.Entry{Index: 1, Term: 1, Data: data})
		if err == nil && r.subs > 0 {
			require.Equal(t, before+1, r.Revision)
			require.Equal(t, mvcc.Revision{Main: r.Revision, Sub: r.subs - 1}, last)
		}
	})
}
