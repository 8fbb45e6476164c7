package snapshot

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	raftlog "github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// A log of small entries that copy a large value again and again does not fill the disk.
func TestReplayBounded(t *testing.T) {
	dir := recordedMember(t, "crash36")
	_, err := Open(t.Context(), dir, Config{MaxExpand: 100})
	require.ErrorIs(t, err, errNotReplayed)
	require.ErrorContains(t, err, "the records of the log have more than 100 bytes")

	base := open(t, copyOf(t, fixture(t)))
	n := 0
	r, err := newReplay(t.Context(), nil, base, func(*Record) error { n++; return nil })
	require.NoError(t, err)
	var long *Record
	for rec, err := range base.Live(t.Context(), nil) {
		require.NoError(t, err)
		if len(rec.Value) > 0 {
			copied := *rec
			copied.Key, copied.Value = slices.Clone(rec.Key), slices.Clone(rec.Value)
			long = &copied
			break
		}
	}
	r.most = 10 * int64(len(long.Key)+len(long.Value))
	again := must(proto.Marshal(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: long.Key, IgnoreValue: true}}))(t)
	for err = nil; err == nil && n < 100; {
		err = r.apply(t.Context(), raftlog.Entry{Index: 1, Term: 1, Data: again})
	}
	require.ErrorIs(t, err, errNotReplayed)
	require.Equal(t, 10, n)
}

// TestReplayReads ends a replay whose requests read far more than the log has: short transactions
// that compare the values of all keys, and deletions of ranges without a key.
func TestReplayReads(t *testing.T) {
	base := open(t, copyOf(t, fixture(t)))
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
			r := must(newReplay(t.Context(), nil, base, func(*Record) error { return nil }))(t)
			r.reads = maxReads - 10*int64(r.x.alive)*readOfKey
			data, n := must(proto.Marshal(request))(t), 0
			var err error
			for ; err == nil && n < 12; n++ {
				err = r.apply(t.Context(), raftlog.Entry{Index: 7, Term: 1, Data: data})
			}
			require.ErrorIs(t, err, errNotReplayed)
			require.ErrorContains(t, err, "entry 7: the conditions and ranges of its requests read too many keys")
			require.Less(t, n, 12)
		})
	}
}

// TestReplaySwift checks that the time of a request does not grow with the alarms of a hostile log.
func TestReplaySwift(t *testing.T) {
	r := must(newReplay(t.Context(), nil, nil, func(*Record) error { return nil }))(t)
	apply := func(request *pb.InternalRaftRequest) {
		data := must(proto.Marshal(request))(t)
		require.NoError(t, r.apply(t.Context(), raftlog.Entry{Index: 1, Term: 1, Data: data}))
	}
	swift(t, func() {
		for i := range 100_000 {
			apply(&pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: 1, Alarm: 7, MemberID: uint64(i)}})
			apply(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("k")}})
		}
	})
	require.EqualValues(t, 100_001, r.revision)
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
		r := must(newReplay(t.Context(), nil, nil, func(*Record) error { return nil }))(t)
		err := r.apply(t.Context(), raftlog.Entry{Index: 7, Term: 1, Data: data})
		require.ErrorContains(t, err, "entry 7: ")
		require.ErrorContains(t, err, text)
		require.Equal(t, text != "a request unknown to etcd 3.7", IsDamage(err), "%v", err)
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
	base := open(f, copyOf(f, fixture(f)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var last Revision
		r, err := newReplay(t.Context(), nil, base, func(rec *Record) error {
			require.Positive(t, rec.Revision.Compare(last))
			require.NotEmpty(t, rec.Key)
			last = rec.Revision
			return nil
		})
		require.NoError(t, err)
		before := r.revision
		err = r.apply(t.Context(), raftlog.Entry{Index: 1, Term: 1, Data: data})
		if err == nil && r.subs > 0 {
			require.Equal(t, before+1, r.revision)
			require.Equal(t, Revision{Main: r.revision, Sub: r.subs - 1}, last)
		}
	})
}
