package bench

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"google.golang.org/protobuf/proto"
)

// Shares of the live keys.
const (
	lateCreates = 0.08 // writes after the compaction; their history is kept
	lateUpdates = 0.19
	lateDeletes = 0.03
	lateWrites  = lateCreates + lateUpdates + lateDeletes
)

// content describes a generated store.
type content struct {
	keys  int // live keys, without extra
	stale int // percent of keys that are stale custom resources: 0 to 25
	seed  uint64
	extra []pair // written first, once
}

type pair struct{ key, value []byte }

// object is a live key.
type object struct {
	id, kind, variant int
	stale             bool
	salt              uint32
	create, mod       int64
	version           int64
	lease             int64
}

// at returns the key of a record in the bucket "key".
func at(rev int64, tombstone bool) []byte {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(rev)), '_')
	b = binary.BigEndian.AppendUint64(b, 0)
	if tombstone {
		b = append(b, 't')
	}
	return b
}

// store writes like an etcd server: in transactions of 10,000 records, into pages filled to 0.9.
type store struct {
	testing.TB
	content
	rng     *rand.Rand
	kinds   []kind
	weighed []int // an index of kinds for each percent

	db      *bbolt.DB
	tx      *bbolt.Tx
	bucket  *bbolt.Bucket
	pending int
	rev     int64
	made    int
	custom  int
	events  int
	live    []object
	dead    [][]byte // keys removed by the compaction
	leases  []int64
}

// generate writes a snapshot with its digest to path.
func generate(t testing.TB, path string, c content) {
	t.Helper()
	work := filepath.Join(t.TempDir(), "work.db")
	// The free list of type map returns pages in random order.
	db, err := bbolt.Open(work, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistArrayType})
	require.NoError(t, err)
	defer func() { require.NoError(t, os.Remove(work)) }()
	defer db.Close()
	s := &store{TB: t, content: c, db: db, rev: 1000, rng: rand.New(rand.NewPCG(c.seed, 7))}
	s.kinds = maker{t, s.rng}.kinds()
	for i, k := range s.kinds {
		s.weighed = append(s.weighed, slices.Repeat([]int{i}, k.weight)...)
	}
	require.Len(t, s.weighed, 100)
	s.begin()
	for _, name := range []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members",
		"members_removed", "meta"} {
		_, err := s.tx.CreateBucket([]byte(name))
		require.NoError(t, err)
	}
	s.restart()
	s.write()
	s.save(path)
}

func (s *store) begin() {
	var err error
	s.tx, err = s.db.Begin(true)
	require.NoError(s, err)
	if s.bucket = s.tx.Bucket([]byte("key")); s.bucket != nil {
		s.bucket.FillPercent = 0.9
	}
	s.pending = 0
}

func (s *store) restart() {
	require.NoError(s, s.tx.Commit())
	s.begin()
}

// write writes the history: a long period before a compaction, and a short period after.
func (s *store) write() {
	for _, p := range s.extra {
		s.rev++
		s.put(&mvccpb.KeyValue{Key: p.key, Value: p.value, CreateRevision: s.rev, ModRevision: s.rev, Version: 1},
			false)
	}
	late := func(share float64) int { return int(share * float64(s.keys)) }
	creates, updates, deletes := late(lateCreates), late(lateUpdates), late(lateDeletes)
	for len(s.live) < s.keys-creates+deletes {
		switch n := s.rng.IntN(100); {
		case n < 11 && len(s.live) > 0:
			s.update()
		case n < 12 && len(s.live) > 0:
			s.remove()
		default:
			s.create()
		}
	}
	s.compact()
	for left := creates + updates + deletes; left > 0; left-- {
		switch n := s.rng.IntN(left); {
		case n < creates:
			s.create()
			creates--
		case n < creates+updates:
			s.update()
			updates--
		default:
			s.remove()
			deletes--
		}
	}
}

func (s *store) create() {
	s.made++
	o := object{id: s.made, kind: s.weighed[s.rng.IntN(100)], variant: s.rng.IntN(variants), salt: s.rng.Uint32(),
		create: s.rev + 1}
	if k := s.kinds[o.kind]; k.stale != nil {
		s.custom++
		o.stale = s.custom*s.stale/25 > (s.custom-1)*s.stale/25
	} else if k.leased {
		if s.events%1000 == 0 { // an API server shares a lease among that many events
			s.leases = append(s.leases, s.rng.Int64())
		}
		s.events++
		o.lease = s.leases[len(s.leases)-1]
	}
	s.live = append(s.live, s.store(o))
}

func (s *store) update() {
	o := &s.live[s.rng.IntN(len(s.live))]
	s.dead = append(s.dead, at(o.mod, false))
	o.variant = s.rng.IntN(variants)
	*o = s.store(*o)
}

func (s *store) remove() {
	i, last := s.rng.IntN(len(s.live)), len(s.live)-1
	o := s.live[i]
	s.live[i], s.live = s.live[last], s.live[:last]
	s.rev++
	s.put(&mvccpb.KeyValue{Key: s.key(o)}, true)
	s.dead = append(s.dead, at(o.mod, false), at(s.rev, true))
}

// store writes the next version of o.
func (s *store) store(o object) object {
	s.rev++
	o.mod = s.rev
	o.version++
	patterns := s.kinds[o.kind].current
	if o.stale {
		patterns = s.kinds[o.kind].stale
	}
	value := patterns[o.variant].fill(o.name(), o.namespace(), o.uid())
	s.put(&mvccpb.KeyValue{Key: s.key(o), Value: value, CreateRevision: o.create, ModRevision: o.mod,
		Version: o.version, Lease: o.lease}, false)
	return o
}

func (o object) name() string      { return fmt.Sprintf("frontend-%08d-%05x", o.id, o.salt&0xfffff) }
func (o object) namespace() string { return fmt.Sprintf("tenant-%03d", o.salt%namespaces) }
func (o object) uid() string       { return fmt.Sprintf("%08x-0000-4000-8000-%012x", o.salt, o.id) }

func (s *store) key(o object) []byte {
	return []byte("/registry/" + s.kinds[o.kind].resource + "/" + o.namespace() + "/" + o.name())
}

// put adds a record at the current revision.
func (s *store) put(kv *mvccpb.KeyValue, tombstone bool) {
	record, err := proto.Marshal(kv)
	require.NoError(s, err)
	require.NoError(s, s.bucket.Put(at(s.rev, tombstone), record))
	if s.pending++; s.pending == 10_000 {
		s.restart()
	}
}

// compact removes all history, which leaves free pages. Each transaction removes records far apart
// from each other: bbolt merges neighboring pages in random order.
func (s *store) compact() {
	const transactions = 200
	compacted := at(s.rev, false)
	s.restart()
	slices.SortFunc(s.dead, bytes.Compare)
	for first := range transactions {
		for i := first; i < len(s.dead); i += transactions {
			require.NoError(s, s.bucket.Delete(s.dead[i]))
		}
		s.restart()
	}
	s.set("meta", "scheduledCompactRev", compacted)
	s.set("meta", "finishedCompactRev", compacted)
}

func (s *store) set(bucket, key string, value []byte) {
	require.NoError(s, s.tx.Bucket([]byte(bucket)).Put([]byte(key), value))
}

// save completes the history and writes the bytes of "etcdctl snapshot save".
func (s *store) save(path string) {
	s.restart() // bbolt stores the buckets of a transaction in random order
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	s.set("meta", "consistent_index", number(s.rev+500))
	s.set("meta", "term", number(3))
	s.set("meta", "confState", []byte(`{"voters":[1],"auto_leave":false}`))
	s.set("meta", "storageVersion", []byte("3.7.0"))
	s.set("cluster", "clusterVersion", []byte("3.7.0"))
	s.set("members", "0000000000000001",
		[]byte(`{"id":1,"peerURLs":["http://127.0.0.1:2380"],"name":"bench","clientURLs":["http://127.0.0.1:2379"]}`))
	for _, id := range s.leases {
		grant, err := proto.Marshal(&leasepb.Lease{ID: id, TTL: 3660})
		require.NoError(s, err)
		s.set("lease", string(number(id)), grant)
	}
	require.NoError(s, s.tx.Commit())

	out, err := os.Create(path)
	require.NoError(s, err)
	buffered, digest := bufio.NewWriterSize(out, 1<<20), sha256.New()
	require.NoError(s, s.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(io.MultiWriter(buffered, digest))
		return err
	}))
	_, err = buffered.Write(digest.Sum(nil))
	require.NoError(s, err)
	require.NoError(s, buffered.Flush())
	require.NoError(s, out.Close())
}
