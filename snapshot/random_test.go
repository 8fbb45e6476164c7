package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// random drives a real server and a model in parallel.
type random struct {
	t       testing.TB
	r       *rand.Rand
	server  *etcdtest.Server
	dir     string // data directory of server
	model   *store
	compact int64
	leases  []int64
	drawn   int64 // number of leases so far
}

// newRandom returns a random after the given number of requests.
func newRandom(t testing.TB, seed, stream uint64, steps int, changes ...etcdtest.Change) *random {
	o := &random{t: t, r: rand.New(rand.NewPCG(seed, stream)), model: &store{rev: 1, lives: map[string]life{}}}
	o.dir = filepath.Join(t.TempDir(), "random.etcd")
	o.server = etcdtest.Start(t, o.dir, changes...)
	for range steps {
		o.step()
	}
	return o
}

// key returns keys with common prefixes, without folders, and in folders with common prefixes.
func (o *random) key() string {
	return []string{"/a/b/", "/a/bb/", "/a/b/c/d/", "/a/c/", "z", "/"}[o.r.IntN(6)] + strconv.Itoa(o.r.IntN(9))
}

func (o *random) value() string {
	sizes := []int{0, 1, 20, 300, 6000}
	return strings.Repeat(string(rune('a'+o.r.IntN(26))), sizes[o.r.IntN(len(sizes))])
}

// matching returns the live keys of the model for which want returns true, in order.
func (o *random) matching(want func(rec *Record) bool) (keys []string) {
	for key := range o.model.lives {
		if rec := o.model.live(key); rec != nil && want(rec) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// draft is one operation: the request to the server and the resulting writes.
type draft struct {
	op     clientv3.Op
	writes []write1
}

type write1 struct {
	key, value string
	deleted    bool
	lease      int64
}

func (o *random) put(key string) draft {
	value, lease := o.value(), int64(0)
	var opts []clientv3.OpOption
	if len(o.leases) > 0 && o.r.IntN(3) == 0 {
		lease = o.leases[o.r.IntN(len(o.leases))]
		opts = append(opts, clientv3.WithLease(clientv3.LeaseID(lease)))
	}
	if old := o.model.live(key); old != nil && lease == 0 && o.r.IntN(3) == 0 {
		lease, opts = old.Lease, append(opts, clientv3.WithIgnoreLease())
	}
	return draft{clientv3.OpPut(key, value, opts...), []write1{{key: key, value: value, lease: lease}}}
}

func (o *random) delete(key string) draft {
	d := draft{op: clientv3.OpDelete(key)}
	if o.model.live(key) != nil {
		d.writes = []write1{{key: key, deleted: true}}
	}
	return d
}

func (o *random) deleteRange(from, to string) draft {
	d := draft{op: clientv3.OpDelete(from, clientv3.WithRange(to))}
	for _, key := range o.matching(func(r *Record) bool { return string(r.Key) >= from && string(r.Key) < to }) {
		d.writes = append(d.writes, write1{key: key, deleted: true})
	}
	return d
}

// step makes one random request and applies it to the model.
func (o *random) step() {
	ctx, c := context.Background(), o.server.Client
	switch n := o.r.IntN(100); {
	case n < 45:
		o.do(o.put(o.key()))
	case n < 65:
		o.do(o.delete(o.key()))
	case n < 70:
		from, to := o.key(), o.key()
		if from != to {
			o.do(o.deleteRange(min(from, to), max(from, to)))
		}
	case n < 90:
		o.txn()
	case n < 94 && len(o.leases) < 4:
		o.drawn++
		id := o.drawn + int64(o.r.IntN(2))<<61
		etcdtest.Run(o.t, o.server, fmt.Sprintf("grant %d 3600", id))
		o.leases = append(o.leases, id)
	case n < 96 && len(o.leases) > 0:
		i := o.r.IntN(len(o.leases))
		id := o.leases[i]
		o.leases = slices.Delete(o.leases, i, i+1)
		var writes []write1
		for _, key := range o.matching(func(r *Record) bool { return r.Lease == id }) {
			writes = append(writes, write1{key: key, deleted: true})
		}
		_, err := c.Revoke(ctx, clientv3.LeaseID(id))
		require.NoError(o.t, err)
		o.apply(writes)
	case n < 99 && o.compact < o.model.rev:
		o.compactAt(max(o.compact+1, o.model.rev-int64(o.r.IntN(60))))
	}
}

func (o *random) do(d draft) {
	_, err := o.server.Client.Do(context.Background(), d.op)
	require.NoError(o.t, err)
	o.apply(d.writes)
}

// txn sends several operations on different keys, with a deletion of a range without these keys.
func (o *random) txn() {
	var ops []clientv3.Op
	var writes []write1
	used := map[string]bool{}
	for range 1 + o.r.IntN(6) {
		key := o.key()
		if used[key] || key[0] == 'z' {
			continue
		}
		used[key] = true
		d := o.put(key)
		if o.r.IntN(3) == 0 {
			d = o.delete(key)
		}
		ops, writes = append(ops, d.op), append(writes, d.writes...)
	}
	if o.r.IntN(4) == 0 {
		d := o.deleteRange("z", "z5")
		ops, writes = append(ops, d.op), append(writes, d.writes...)
	}
	if len(ops) == 0 {
		return
	}
	_, err := o.server.Client.Txn(context.Background()).Then(ops...).Commit()
	require.NoError(o.t, err)
	o.apply(writes)
}

// apply stores the writes of one request: records of one main revision.
func (o *random) apply(writes []write1) {
	if len(writes) == 0 {
		return
	}
	rev := o.model.rev
	for sub, w := range writes {
		o.model.rev = rev // the model uses a new revision for each write
		o.model.apply(w.key, w.value, w.deleted, w.lease)
		l := o.model.lives[w.key]
		l[len(l)-1].Revision.Sub = int64(sub)
	}
}

// compactAt removes records like a compaction at rev: of the records at or below rev, all except
// the latest of each key, and also the latest if it is a tombstone of an earlier revision (etcd
// server/storage/mvcc/key_index.go).
func (o *random) compactAt(rev int64) {
	var opts []clientv3.CompactOption
	if o.r.IntN(4) > 0 {
		opts = append(opts, clientv3.WithCompactPhysical())
	}
	_, err := o.server.Client.Compact(context.Background(), rev, opts...)
	require.NoError(o.t, err)
	o.compact = rev
	for key, l := range o.model.lives {
		n := 0 // number of records at or below rev
		for n < len(l) && l[n].Revision.Main <= rev {
			n++
		}
		if n > 0 && (!l[n-1].Tombstone || l[n-1].Revision.Main == rev) {
			n--
		}
		if o.model.lives[key] = l[n:]; n == len(l) {
			delete(o.model.lives, key)
		}
	}
}

// check saves a snapshot and compares all ways of reading with the server and the model.
func (o *random) check() { o.checkSnapshot(open(o.t, saved(o.t, o.server))) }

func (o *random) checkSnapshot(s *Snapshot) {
	t := o.t
	oldest, newest, err := s.Kept(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int64{max(o.compact, 1), o.model.rev}, []int64{oldest, newest})
	for rev := oldest; rev <= newest; rev++ {
		o.checkAt(s, rev)
	}
	for _, rev := range []int64{oldest - 1, newest + 1, newest + 1000} {
		o.checkRefused(s, rev)
	}
	st := must(s.Status(context.Background()))(t)
	if st.ScheduledCompact <= st.CompactRevision { // otherwise the file still has records that the model removed
		o.checkRecords(s)
	}
	hash, rev, compacted := etcdtest.HashKV(t, o.server, 0)
	require.Equal(t, []int64{newest, o.compact}, []int64{rev, max(compacted, 0)})
	require.Equal(t, hash, hashKV(t, s))
	require.Empty(t, findings(t, s))
}

// served returns the server's answer for a range at a revision, in key order.
func (o *random) served(rev int64, from string, opts ...clientv3.OpOption) ([]etcdtest.KV, error) {
	return etcdtest.Range(o.t.Context(), o.server, from, append(opts, clientv3.WithRev(rev))...)
}

func (o *random) checkAt(s *Snapshot, rev int64) {
	t := o.t
	want := must(o.served(rev, "\x00", clientv3.WithFromKey()))(t)
	require.Equal(t, want, liveAt(t, s, "", rev), "revision %d", rev)
	prefix := []string{"/a", "/a/b", "/a/b/", "/a/b/c/", "z", "z1", "none"}[rev%7]
	want = must(o.served(rev, prefix, clientv3.WithPrefix()))(t)
	require.Equal(t, want, liveAt(t, s, prefix, rev), "revision %d, %q", rev, prefix)
	key := o.key()
	want = must(o.served(rev, key))(t)
	var got []etcdtest.KV
	if r, err := s.GetAt(context.Background(), []byte(key), rev); r != nil {
		require.NoError(t, err)
		got = append(got, kvOf(r))
	}
	require.Equal(t, want, got, "revision %d, %q", rev, key)
}

// checkRefused requires an error if the server returns one. For revision 0 a server returns the
// latest records; we return an error.
func (o *random) checkRefused(s *Snapshot, rev int64) {
	want, theirs := ErrCompacted, rpctypes.ErrCompacted
	if rev > o.model.rev {
		want, theirs = ErrFuture, rpctypes.ErrFutureRev
	}
	if rev > 0 {
		_, err := o.served(rev, "\x00", clientv3.WithFromKey())
		require.ErrorIs(o.t, err, theirs)
	}
	_, err := s.GetAt(context.Background(), []byte("/a/b/1"), rev)
	require.ErrorIs(o.t, err, want)
	n := 0
	for r, err := range s.LiveAt(context.Background(), nil, rev) {
		require.Nil(o.t, r)
		require.ErrorIs(o.t, err, want)
		require.ErrorContains(o.t, err, fmt.Sprintf("%d was asked for, the file keeps %d to %d", rev,
			max(o.compact, 1), o.model.rev))
		n++
	}
	require.Equal(o.t, 1, n)
}

// checkRecords compares History, Records and Deleted with the model.
func (o *random) checkRecords(s *Snapshot) {
	t := o.t
	var all []Record
	var deleted []Deletion
	for key, l := range o.model.lives {
		all = append(all, l...)
		var history life
		for r, err := range s.History(context.Background(), []byte(key)) {
			require.NoError(t, err)
			history = append(history, *r)
		}
		require.Equal(t, l, history)
		if last := l[len(l)-1]; last.Tombstone {
			d := Deletion{Key: last.Key, Revision: last.Revision}
			if len(l) > 1 {
				d.Last = &l[len(l)-2]
			}
			deleted = append(deleted, d)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return a.Revision.Compare(b.Revision) })
	var records []Record
	for r, err := range s.Records(context.Background()) {
		require.NoError(t, err)
		records = append(records, *r)
	}
	require.Equal(t, all, records)
	slices.SortFunc(deleted, func(a, b Deletion) int { return a.Revision.Compare(b.Revision) })
	for _, prefix := range []string{"", "/a/b", "/a/b/", "z"} {
		var want []Deletion
		for _, d := range deleted {
			if bytes.HasPrefix(d.Key, []byte(prefix)) {
				want = append(want, d)
			}
		}
		require.Equal(t, want, deletedIn(t, s, prefix))
	}
}

func deletedIn(t testing.TB, s *Snapshot, prefix string) (out []Deletion) {
	t.Helper()
	for d, err := range s.Deleted(context.Background(), []byte(prefix)) {
		require.NoError(t, err)
		out = append(out, *d)
	}
	return out
}

// runRandom makes n requests with several checks, also at the end.
func runRandom(t testing.TB, seed uint64, n int) {
	o := newRandom(t, seed, 2, 0)
	defer o.server.Stop()
	o.check() // the empty store
	for i := range n {
		o.step()
		if i == n/3 {
			o.check()
		}
	}
	o.check()
	o.compactAt(o.model.rev)
	o.check()
}

// TestEveryKeptRevision runs random histories on a real server, and compares every range at every
// kept revision with the file, including refused requests. ETCDSHIFT_RANDOM_SEEDS is the number of
// histories, ETCDSHIFT_RANDOM_STEPS their length.
func TestEveryKeptRevision(t *testing.T) {
	number := func(name string, otherwise int) int {
		if v := os.Getenv(name); v != "" {
			n := must(strconv.Atoi(v))(t)
			return n
		}
		return otherwise
	}
	steps := number("ETCDSHIFT_RANDOM_STEPS", 400)
	for seed := range number("ETCDSHIFT_RANDOM_SEEDS", 5) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { runRandom(t, uint64(seed), steps) })
	}
}
