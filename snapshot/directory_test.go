package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/replay"
)

// unzstd expands a recorded file of testdata/wal.
func unzstd(t testing.TB, name string) string {
	t.Helper()
	packed := must(os.Open(filepath.Join("..", "testdata", "wal", name+".zst")))(t)
	defer packed.Close()
	z := must(zstd.NewReader(packed))(t)
	defer z.Close()
	path := filepath.Join(t.TempDir(), name)
	etcdtest.WriteNew(t, path, z)
	return path
}

// crashed copies the data directory of a server without pending requests, as a crash leaves it:
// lazy servers hold back their database.
func crashed(t testing.TB, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "crashed.etcd")
	require.NoError(t, os.CopyFS(out, os.DirFS(dir)))
	return out
}

// lazy makes a server write its database only when a compaction requires it.
func lazy(cfg *embed.Config) { cfg.BackendBatchInterval, cfg.BackendBatchLimit = time.Hour, 1<<30 }

// TestDirectory compares copies of the data directory of a running server, whose database is older
// than its log, with the server: all keys at all revisions, records and HashKV.
func TestDirectory(t *testing.T) {
	for seed := range uint64(2) {
		o := newRandom(t, seed, 11, 150, lazy)
		for range 2 {
			dir := crashed(t, o.dir)
			etcdtest.Keep(t, dir)
			s := open(t, dir)
			require.NotNil(t, s.DataDir())
			require.Greater(t, s.DataDir().Entry, s.DataDir().Database)
			o.checkSnapshot(s)
			for range 40 {
				o.step()
			}
		}
	}
}

// odd makes random requests: transactions within transactions with all kinds of conditions, on
// ranges too, puts that keep value or lease, reads at revisions, deletions of ranges, leases, and
// alarms. Many requests fail.
type odd struct {
	r      *rand.Rand
	client *clientv3.Client
	leases []int64
	rev    int64
}

func (o *odd) key() string { return fmt.Sprintf("k%02d", o.r.IntN(25)) }

func (o *odd) op(depth int) clientv3.Op {
	var opts []clientv3.OpOption
	switch n := o.r.IntN(12); {
	case n < 5:
		value := strings.Repeat("v", o.r.IntN(3)*o.r.IntN(300))
		if len(o.leases) > 0 && o.r.IntN(3) == 0 {
			opts = append(opts, clientv3.WithLease(clientv3.LeaseID(o.leases[o.r.IntN(len(o.leases))])))
		} else if o.r.IntN(5) == 0 {
			opts = append(opts, clientv3.WithIgnoreLease())
		}
		if o.r.IntN(5) == 0 {
			value, opts = "", append(opts, clientv3.WithIgnoreValue())
		}
		return clientv3.OpPut(o.key(), value, opts...)
	case n < 7:
		return clientv3.OpDelete(o.key())
	case n < 8:
		return clientv3.OpDelete(o.key(), clientv3.WithRange(o.key()+"x"))
	case n < 9:
		return clientv3.OpGet(o.key(), clientv3.WithRev(o.r.Int64N(o.rev+3)))
	case depth < 3:
		return o.txn(depth + 1)
	}
	return clientv3.OpDelete(o.key(), clientv3.WithFromKey())
}

func (o *odd) txn(depth int) clientv3.Op {
	var conditions []clientv3.Cmp
	for range o.r.IntN(3) {
		result, key := []string{"=", "!=", "<", ">"}[o.r.IntN(4)], o.key()
		var c clientv3.Cmp
		switch o.r.IntN(5) {
		case 0:
			c = clientv3.Compare(clientv3.ModRevision(key), result, o.r.Int64N(o.rev+1))
		case 1:
			c = clientv3.Compare(clientv3.CreateRevision(key), result, o.r.Int64N(2)*o.r.Int64N(o.rev+1))
		case 2:
			c = clientv3.Compare(clientv3.Version(key), result, o.r.IntN(4))
		case 3:
			c = clientv3.Compare(clientv3.Value(key), result, strings.Repeat("v", o.r.IntN(3)*o.r.IntN(300)))
		case 4:
			lease := int64(0)
			if len(o.leases) > 0 {
				lease = o.leases[o.r.IntN(len(o.leases))]
			}
			c = clientv3.Compare(clientv3.LeaseValue(key), result, lease)
		}
		if o.r.IntN(4) == 0 {
			c = c.WithRange(key + "~")
		}
		conditions = append(conditions, c)
	}
	branch := func() (ops []clientv3.Op) {
		for range o.r.IntN(4) {
			ops = append(ops, o.op(depth))
		}
		return ops
	}
	return clientv3.OpTxn(conditions, branch(), branch())
}

func (o *odd) step(t *testing.T) {
	ctx := t.Context()
	switch n := o.r.IntN(60); {
	case n < 4:
		if l, err := o.client.Grant(ctx, 3600); err == nil {
			o.leases = append(o.leases, int64(l.ID))
		}
	case n < 6 && len(o.leases) > 2: // the lease stays in o.leases: later puts with it fail
		_, _ = o.client.Revoke(ctx, clientv3.LeaseID(o.leases[o.r.IntN(len(o.leases))]))
	case n < 7:
		_, _ = o.client.Compact(ctx, o.rev-o.r.Int64N(30))
	case n < 9:
		action := []pb.AlarmRequest_AlarmAction{pb.AlarmRequest_ACTIVATE, pb.AlarmRequest_DEACTIVATE}[o.r.IntN(2)]
		_, err := pb.NewMaintenanceClient(o.client.ActiveConnection()).Alarm(ctx,
			&pb.AlarmRequest{Action: action, Alarm: pb.AlarmType_NOSPACE, MemberID: 7})
		require.NoError(t, err)
	default:
		r, err := o.client.Do(ctx, o.op(0))
		if err == nil && r.Txn() != nil {
			o.rev = max(o.rev, r.Txn().Header.Revision)
		}
	}
}

// TestOddRequests compares the log of odd requests with the server.
func TestOddRequests(t *testing.T) {
	for seed := range uint64(3) {
		dir := filepath.Join(t.TempDir(), "odd.etcd")
		server := etcdtest.Start(t, dir, lazy)
		client := must(clientv3.New(clientv3.Config{Endpoints: []string{server.URL}, Logger: zap.NewNop()}))(t)
		o := &odd{r: rand.New(rand.NewPCG(seed, 12)), client: client, rev: 1}
		for range 500 {
			o.step(t)
		}
		checkServed(t, open(t, crashed(t, dir)), server)
		require.NoError(t, client.Close())
	}
}

// checkServed compares a data directory with the server on it: keys, leases, alarms and HashKV.
func checkServed(t *testing.T, s *Snapshot, server *etcdtest.Server) {
	t.Helper()
	ctx := t.Context()
	revision := etcdtest.Revision(t, server)
	require.Equal(t, revision, must(s.Revision(ctx))(t))
	require.Equal(t, etcdtest.Dump(t, server, 0), liveAt(t, s, "", revision))
	granted := must(server.Client.Leases(ctx))(t)
	leases := must(s.Leases(ctx))(t)
	require.Len(t, leases, len(granted.Leases))
	for _, l := range granted.Leases {
		require.Contains(t, leases, int64(l.ID))
	}
	st := must(s.Status(ctx))(t)
	alarms := must(server.Client.AlarmList(ctx))(t)
	require.Len(t, st.Alarms, len(alarms.Alarms))
	hash, _, _ := etcdtest.HashKV(t, server, 0)
	require.Equal(t, fmt.Sprint(hash), st.HashKV)
	require.Empty(t, findings(t, s))
}

// TestRecordedCrash reads the data directory of an etcd 3.6 after SIGKILL, whose database lacks 21
// entries, and compares it with a snapshot of the restarted server.
func TestRecordedCrash(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "crash36")
	etcdtest.Keep(t, dir)
	restarted := open(t, unzstd(t, "crash36.restarted.db"))
	for _, path := range []string{dir, filepath.Join(dir, "member")} {
		s := open(t, path)
		require.Equal(t, &DataDir{Cluster: "7d022c578071762c", Member: "7fd8bbd609f19519", Database: 5495, Entry: 5516},
			s.DataDir())
		require.Equal(t, []string{
			"a data directory: its database ends with entry 5495, and 21 later entries of its log are added",
		}, s.Warnings())
		want, got := must(restarted.Status(t.Context()))(t), must(s.Status(t.Context()))(t)
		require.Equal(t, []any{want.HashKV, want.Revision, want.Records, want.Leases},
			[]any{got.HashKV, got.Revision, got.Records, got.Leases})
		require.Equal(t, must(restarted.Leases(t.Context()))(t), must(s.Leases(t.Context()))(t))
		require.Equal(t, modelOf(t, restarted), modelOf(t, s))
		require.Equal(t, uint64(5516), got.ConsistentIndex)
		require.Empty(t, findings(t, s))
	}
	out := filepath.Join(t.TempDir(), "out.db")
	require.Equal(t, int64(4198), must(Write(t.Context(), out, open(t, dir), seq(), WriteConfig{}))(t).Revision)
	require.Empty(t, findings(t, open(t, out)))
}

// TestSeveralMembers leaves out entries beyond the committed one if other members vote.
func TestSeveralMembers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "voters.etcd")
	server := etcdtest.Start(t, dir, lazy)
	for i := range 50 {
		etcdtest.Run(t, server, fmt.Sprintf("put key%02d value", i))
	}
	dir = crashed(t, dir)
	whole := open(t, dir)
	require.Zero(t, whole.DataDir().Uncommitted)
	db := must(bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil))(t)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(mvcc.MetaBucket)).Put([]byte("confState"), []byte(`{"voters":[1,2,3]}`))
	}))
	require.NoError(t, db.Close())
	s := open(t, dir)
	left := s.DataDir().Uncommitted
	require.NotZero(t, left) // the log stores the commit of an entry with a later one
	require.Equal(t, whole.DataDir().Entry, s.DataDir().Entry+left)
	require.Equal(t, must(whole.Revision(t.Context()))(t), must(s.Revision(t.Context()))(t)+int64(left))
	warnings := s.Warnings()
	require.Contains(t, warnings[len(warnings)-1], "left out")
	require.Contains(t, warnings[len(warnings)-1], "key49")
}

// TestBadDirectories checks the errors of data directories that cannot be used.
func TestBadDirectories(t *testing.T) {
	path := func(parts ...string) string { return filepath.Join(slices.Insert(parts, 1, "member")...) }
	file := "0000000000000000-0000000000000000.wal"
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		is     error
		text   string
	}{
		"no folder of a member": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(path(dir)))
		}, ErrNotSnapshot, "not the data directory of an etcd member"},
		"no log": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(path(dir, "wal")))
		}, ErrLog, "member/wal does not exist"},
		"an empty log": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(path(dir, "wal", file)))
		}, ErrLog, "holds no file of a log"},
		"a wrong checksum": {func(t *testing.T, dir string) {
			f := must(os.OpenFile(path(dir, "wal", file), os.O_RDWR, 0))(t)
			_, err := f.WriteAt([]byte("damage"), 200_000)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, ErrLog, file + ": offset "},
		"a gap": {func(t *testing.T, dir string) {
			db := must(bbolt.Open(path(dir, "snap", "db"), 0o600, nil))(t)
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), []byte{0, 0, 0, 0, 0, 1, 0, 0})
			}))
			require.NoError(t, db.Close())
		}, ErrLog, "the database ends with entry 65536, and the log with entry 5516"},
		"another term": {func(t *testing.T, dir string) {
			db := must(bbolt.Open(path(dir, "snap", "db"), 0o600, nil))(t)
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte(mvcc.MetaBucket)).Put([]byte("term"), []byte{0, 0, 0, 0, 0, 0, 0, 9})
			}))
			require.NoError(t, db.Close())
		}, ErrLog, "of term 9 in the database"},
		"users": {func(t *testing.T, dir string) {
			db := must(bbolt.Open(path(dir, "snap", "db"), 0o600, nil))(t)
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("auth")).Put([]byte("authEnabled"), []byte{1})
			}))
			require.NoError(t, db.Close())
		}, replay.ErrRefused, "authentication is enabled"},
		"a running member": {func(t *testing.T, dir string) {
			f := must(os.Open(path(dir, "snap", "db")))(t)
			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			t.Cleanup(func() { _ = f.Close() })
		}, ErrRunning, "an etcd uses the data directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := etcdtest.RecordedMember(t, "crash36")
			c.change(t, dir)
			if _, err := os.Stat(dir); err == nil {
				etcdtest.Keep(t, dir)
			}
			s, err := Open(context.Background(), dir, Config{})
			if err == nil {
				_ = s.Close()
			}
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, dir)
			require.Equal(t, c.is == ErrLog, IsDamage(err))
		})
	}
}

// TestReceivedDatabase reads a member that ended after its leader sent a database, and before that
// took the place of its own.
func TestReceivedDatabase(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "kube37")
	snap, folder := filepath.Join(dir, "member", "snap"), filepath.Join(dir, "member", "wal")
	want := must(open(t, dir).Status(t.Context()))(t)
	last := open(t, dir).DataDir().Entry
	received := filepath.Join(snap, fmt.Sprintf("%016x.snap.db", last))
	require.NoError(t, os.Rename(filepath.Join(snap, "db"), received))
	old := etcdtest.RecordedMember(t, "crash36")
	require.NoError(t, os.Rename(filepath.Join(old, "member", "snap", "db"), filepath.Join(snap, "db")))
	require.NoError(t, os.RemoveAll(folder))
	metadata := must(proto.Marshal(&pb.Metadata{NodeID: proto.Uint64(7), ClusterID: proto.Uint64(9)}))(t)
	w := must(wal.Create(zap.NewNop(), folder, metadata))(t)
	state := &raftpb.HardState{Term: proto.Uint64(2), Commit: proto.Uint64(3)}
	require.NoError(t, w.Save(state, []*raftpb.Entry{{Index: proto.Uint64(1), Term: proto.Uint64(1)},
		{Index: proto.Uint64(2), Term: proto.Uint64(1)}, {Index: proto.Uint64(3), Term: proto.Uint64(1)}}))
	require.NoError(t, w.SaveSnapshot(&walpb.Snapshot{Index: proto.Uint64(last + 5000), Term: proto.Uint64(2),
		ConfState: &raftpb.ConfState{}}))
	require.NoError(t, w.Close())
	_, err := Open(t.Context(), dir, Config{})
	require.ErrorIs(t, err, ErrLog)
	require.ErrorContains(t, err, "failed to find database snapshot file")
	require.NoError(t, os.Rename(received, filepath.Join(snap, fmt.Sprintf("%016x.snap.db", last+5000))))
	db := must(bbolt.Open(filepath.Join(snap, fmt.Sprintf("%016x.snap.db", last+5000)), 0o600, nil))(t)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		index := binary.BigEndian.AppendUint64(nil, last+5000)
		return tx.Bucket([]byte(mvcc.MetaBucket)).Put([]byte("consistent_index"), index)
	}))
	require.NoError(t, db.Close())
	etcdtest.Keep(t, dir)
	got := must(open(t, dir).Status(t.Context()))(t)
	require.Equal(t, []any{want.HashKV, want.Revision}, []any{got.HashKV, got.Revision})
}
