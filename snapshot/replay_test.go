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
			require.Equal(t, Revision{r.revision, r.subs - 1}, last)
		}
	})
}
