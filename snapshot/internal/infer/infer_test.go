package infer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// entries is a log in memory.
type entries []wal.Entry

func (l entries) Entries(_ context.Context, from uint64) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) {
		for _, e := range l {
			if e.Index >= from && !yield(e, nil) {
				return
			}
		}
	}
}

// truth is a record of the model.
type truth struct {
	Record
	lease int64
}

// model is a store with clients that know old revisions: their requests often fail.
type model struct {
	r        *rand.Rand
	rev      int64
	live     map[string]*truth
	history  map[string][]int64 // by key: all revisions, also of before a deletion
	leases   map[int64]bool
	granted  []int64 // leases, in order
	records  []truth
	log      entries
	keys     int
	stale    int // one of so many requests compares an old revision
	sequence int
}

func newModel(r *rand.Rand) *model {
	return &model{r: r, rev: 1, live: map[string]*truth{}, history: map[string][]int64{}, leases: map[int64]bool{},
		keys: 4 + r.IntN(60), stale: 2 + r.IntN(30)}
}

func (m *model) put(rec truth) {
	rec.Main = m.rev + 1
	key := string(rec.Key)
	if old := m.live[key]; !rec.Tombstone {
		rec.Create, rec.Version = rec.Main, 1
		if old != nil {
			rec.Create, rec.Version = old.Create, old.Version+1
		}
		m.live[key] = &rec
		m.history[key] = append(m.history[key], rec.Main)
	} else {
		delete(m.live, key)
	}
	m.records = append(m.records, rec)
}

func (m *model) append(r *pb.InternalRaftRequest) {
	data, err := proto.Marshal(r)
	if err != nil {
		panic(err)
	}
	m.log = append(m.log, wal.Entry{Index: uint64(len(m.log) + 1), Term: 2, Data: data})
}

// step makes one request.
func (m *model) step() {
	m.sequence++
	switch n := m.r.IntN(40); {
	case n == 0:
		id := int64(1000 + m.sequence)
		m.leases[id], m.granted = true, append(m.granted, id)
		m.append(&pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: id, TTL: 60}})
		return
	case n == 1:
		m.revoke()
		return
	case n < 5:
		m.other(n)
		return
	}
	key := fmt.Sprintf("/k%02d", m.r.IntN(m.keys))
	current, x := m.live[key], int64(0)
	if current != nil {
		x = current.Main
	}
	if all := m.history[key]; m.r.IntN(m.stale) == 0 && len(all) > 0 {
		x = all[max(0, len(all)-1-m.r.IntN(3))]
	}
	compare := &pb.Compare{Key: []byte(key), Target: pb.Compare_MOD,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: x}}
	holds := current == nil && x == 0 || current != nil && current.Main == x
	read := &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}
	txn := &pb.TxnRequest{Compare: []*pb.Compare{compare}, Failure: []*pb.RequestOp{{Request: read}}}
	rec := truth{Record: Record{Key: []byte(key)}}
	if x > 0 && m.r.IntN(4) == 0 {
		rec.Tombstone = true
		txn.Success = []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}}}
	} else {
		rec.Value = fmt.Appendf(nil, "value %d of %s", m.sequence, key)
		if len(m.granted) > 0 && m.r.IntN(5) == 0 {
			rec.lease = m.granted[m.r.IntN(len(m.granted))]
		}
		txn.Success = []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: rec.Key, Value: rec.Value, Lease: rec.lease}}}}
	}
	m.append(&pb.InternalRaftRequest{Txn: txn})
	if holds {
		m.put(rec)
		m.rev++
	}
}

// other makes a request without a condition, one with the version of a key, or one of several keys.
func (m *model) other(kind int) {
	key := func() []byte { return fmt.Appendf(nil, "/k%02d", m.r.IntN(m.keys)) }
	value := fmt.Appendf(nil, "value %d", m.sequence)
	put := func(key []byte) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value}}}
	}
	switch {
	case kind == 2 && m.r.IntN(2) == 0:
		k := key()
		m.append(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: k, Value: value}})
		m.put(truth{Record: Record{Key: k, Value: value}})
	case kind == 2:
		k := key()
		m.append(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: k}})
		if m.live[string(k)] == nil {
			return
		}
		m.put(truth{Record: Record{Key: k, Tombstone: true}})
	case kind == 3: // as API servers do before a compaction
		k, version := []byte("compact_rev_key"), int64(0)
		if rec := m.live[string(k)]; rec != nil {
			version = max(0, rec.Version-m.r.Int64N(2))
		}
		m.append(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: k, TargetUnion: &pb.Compare_Version{Version: version}}},
			Success: []*pb.RequestOp{put(k)}}})
		if rec := m.live[string(k)]; rec == nil && version > 0 || rec != nil && rec.Version != version {
			return
		}
		m.put(truth{Record: Record{Key: k, Value: value}})
	default:
		a, b := key(), key()
		if string(a) == string(b) {
			return
		}
		x := int64(0)
		if rec := m.live[string(a)]; rec != nil {
			x = rec.Main
		}
		if all := m.history[string(a)]; m.r.IntN(m.stale) == 0 && len(all) > 0 {
			x = all[len(all)-1]
		}
		del := &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: b}}
		m.append(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: a, Target: pb.Compare_MOD,
				TargetUnion: &pb.Compare_ModRevision{ModRevision: x}}},
			Success: []*pb.RequestOp{{Request: del}, put(a)}}})
		if rec := m.live[string(a)]; rec == nil && x > 0 || rec != nil && rec.Main != x {
			return
		}
		sub := int64(0)
		if m.live[string(b)] != nil {
			m.put(truth{Record: Record{Key: b, Tombstone: true}})
			sub++
		}
		m.put(truth{Record: Record{Key: a, Value: value, Sub: sub}})
	}
	m.rev++
}

// revoke ends the oldest lease.
func (m *model) revoke() {
	if len(m.granted) == 0 {
		return
	}
	id := m.granted[0]
	m.granted = m.granted[1:]
	delete(m.leases, id)
	m.append(&pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}})
	var keys []string
	for key, rec := range m.live {
		if rec.lease == id {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for sub, key := range keys {
		m.put(truth{Record: Record{Key: []byte(key), Tombstone: true, Sub: int64(sub)}})
	}
	if len(keys) > 0 {
		m.rev++
	}
}

// database returns the store compacted at a revision.
func (m *model) database(compacted int64) Database {
	last := map[string]int{}
	for i, rec := range m.records {
		if rec.Main <= compacted {
			last[string(rec.Key)] = i
		}
	}
	return Database{Revision: m.rev, Compacted: compacted, Leases: m.leases, Each: func(fn func(*Record) error) error {
		for i, rec := range m.records {
			if rec.Main <= compacted && (last[string(rec.Key)] != i || rec.Tombstone) {
				continue
			}
			one := rec.Record
			live := m.live[string(rec.Key)]
			one.Live = live != nil && live.Main == rec.Main
			if err := fn(&one); err != nil {
				return err
			}
		}
		return nil
	}}
}

// check solves the log from an entry on, and compares all sure writes and all complete states with
// the model.
func (m *model) check(t testing.TB, first int, compacted int64) (sure int, solved bool) {
	db := m.database(compacted)
	sol, err := Solve(context.Background(), m.log[first:], uint64(len(m.log)), db)
	if errors.Is(err, ErrUnsolved) {
		return 0, false
	}
	require.NoError(t, err)
	known := map[[2]int64]truth{}
	for _, rec := range m.records {
		known[[2]int64{rec.Main, rec.Sub}] = rec
	}
	states := map[[2]int64]bool{}
	require.NoError(t, sol.Each(context.Background(), func(w *Write) error {
		want, is := known[[2]int64{w.Main, w.Sub}]
		require.True(t, is, "record %d.%d", w.Main, w.Sub)
		require.Equal(t, string(want.Key), string(w.Key), "record %d.%d", w.Main, w.Sub)
		require.Equal(t, want.Tombstone, w.Tombstone)
		require.Equal(t, string(want.Value), string(w.Value))
		if w.Version != 0 {
			require.Equal(t, []int64{want.Create, want.Version, want.lease}, []int64{w.Create, w.Version, w.Lease})
		}
		if !w.Removed {
			states[[2]int64{w.Main, w.Sub}] = true
		}
		return nil
	}))
	require.NoError(t, db.Each(func(r *Record) error {
		states[[2]int64{r.Main, r.Sub}] = true
		return nil
	}))
	want, have := map[string]int64{}, map[string]int64{}
	set := func(state map[string]int64, rec truth) {
		if delete(state, string(rec.Key)); !rec.Tombstone {
			state[string(rec.Key)] = rec.Main
		}
	}
	for i, rec := range m.records {
		set(want, rec)
		if states[[2]int64{rec.Main, rec.Sub}] {
			set(have, rec)
		}
		if rec.Main >= sol.Complete && (i+1 == len(m.records) || m.records[i+1].Main > rec.Main) {
			require.Equal(t, want, have, "revision %d", rec.Main)
		}
	}
	return sol.Sure, true
}

// TestSolveModel makes logs with failed requests and leases, and begins them at many entries: no
// sure write is wrong.
func TestSolveModel(t *testing.T) {
	sure, solved, all := 0, 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 36))
		m := newModel(r)
		for range 100 + r.IntN(700) {
			m.step()
		}
		for range 12 {
			n, is := m.check(t, r.IntN(len(m.log)-10), 1+r.Int64N(m.rev))
			all++
			if is {
				sure, solved = sure+n, solved+1
			}
		}
	}
	t.Logf("%d of %d logs solved, %d sure writes", solved, all, sure)
	require.Greater(t, solved, all*3/4)
	require.Greater(t, sure, 50*solved)
}

// source is random numbers from bytes.
type source struct {
	data []byte
	n    uint64
}

func (s *source) Uint64() uint64 {
	s.n++
	n := s.n * 0x9e3779b97f4a7c15 // without bytes it goes on, or rand would wait for another number
	if len(s.data) > 0 {
		n ^= uint64(s.data[0]) << 56
		s.data = s.data[1:]
	}
	return n
}

// FuzzSolve makes a log from arbitrary bytes: no sure write is wrong.
func FuzzSolve(f *testing.F) {
	for seed := range byte(5) {
		b := make([]byte, 600)
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b, uint16(seed)*7, uint16(seed)*11)
	}
	f.Fuzz(func(t *testing.T, data []byte, first, compacted uint16) {
		data = data[:min(len(data), 4000)]
		src := &source{data: data}
		m := newModel(rand.New(src))
		for len(src.data) > 0 {
			m.step()
		}
		if len(m.log) > 0 {
			m.check(t, int(first)%len(m.log), 1+int64(compacted)%m.rev)
		}
	})
}

// FuzzHostile solves a log of arbitrary entries with a database of arbitrary numbers: an error, or
// a result, in limited time.
func FuzzHostile(f *testing.F) {
	m := newModel(rand.New(rand.NewPCG(1, 2)))
	for range 20 {
		m.step()
	}
	var all []byte
	for _, e := range m.log {
		all = append(append(all, e.Data...), 0xff)
	}
	f.Add(all, int64(20), int64(10), "/k01")
	f.Fuzz(func(t *testing.T, data []byte, revision, compacted int64, key string) {
		var log entries
		for part := range strings.SplitSeq(string(data), "\xff") {
			log = append(log, wal.Entry{Index: uint64(len(log) + 1), Data: []byte(part)})
		}
		if revision < 1 || compacted < 0 || compacted > revision || revision > 1<<62 {
			return
		}
		db := Database{Revision: revision, Compacted: compacted, Each: func(fn func(*Record) error) error {
			return fn(&Record{Main: revision, Key: []byte(key), Value: data, Create: 1, Version: 2, Live: true})
		}}
		sol, err := Solve(t.Context(), log, uint64(len(log)), db)
		if err == nil {
			require.NoError(t, sol.Each(t.Context(), func(*Write) error { return nil }))
		}
	})
}
