package snapshot

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// mutantsVariable sets the number of mutants of TestMutants; "make mutants" sets the variable.
const (
	mutantsVariable = "SNAPSHOT_MUTANTS"
	mutantsDefault  = 24
)

// mutant is a recorded snapshot with a fault and a right digest. The same number makes the same
// mutant.
type mutant struct {
	number int
	what   string
	bytes  []byte
}

// newMutant changes one of bases with one of the mutations.
func newMutant(t testing.TB, number int, bases [][]byte) mutant {
	r := rand.New(rand.NewPCG(uint64(number), 9))
	base := bases[r.IntN(len(bases))]
	ways := mutations()
	names := slices.Sorted(maps.Keys(ways))
	what := names[number%len(names)]
	image := ways[what](t, r, bytes.Clone(imageOf(base)))
	return mutant{number, what, withDigest(image)}
}

// mutations returns the ways to change an image.
func mutations() map[string]func(t testing.TB, r *rand.Rand, image []byte) []byte {
	onImage := func(edit func(r *rand.Rand, image []byte)) func(testing.TB, *rand.Rand, []byte) []byte {
		return func(_ testing.TB, r *rand.Rand, image []byte) []byte {
			edit(r, image)
			return image
		}
	}
	return map[string]func(t testing.TB, r *rand.Rand, image []byte) []byte{
		"bytes":     onImage(etcdtest.FlipBits),
		"zeros":     onImage(etcdtest.ZeroBytes),
		"page":      onImage(etcdtest.SplicePage),
		"header":    onImage(editHeader),
		"meta":      onImage(editMeta),
		"free list": editFreeList,
		"record":    changeRecord,
		"entry":     changeEntry,
		"bucket":    changeBucket,
	}
}

// editHeader changes a field of a page's header or of one of its elements.
func editHeader(r *rand.Rand, image []byte) {
	id := 2 + r.IntN(len(image)/4096-2)
	p := bolt.Page(image[id*4096:])
	odd := []uint64{0, 1, 2, uint64(r.IntN(12)), uint64(id), 0xffff, 1 << 31, 1<<63 - 1}[r.IntN(8)]
	switch r.IntN(6) {
	case 0:
		put64(p, odd)
	case 1:
		put16(p[8:], []uint16{0, 1, 2, 4, 0x10, 3}[r.IntN(6)])
	case 2:
		put16(p[10:], uint16(p.Count()+r.IntN(5)-2))
	case 3:
		put32(p[12:], uint32(odd))
	default:
		at := bolt.HeaderSize + r.IntN(max(1, min(p.Count(), 200)))*bolt.ElementSize + r.IntN(4)*4
		if r.IntN(2) == 0 {
			odd = uint64(le.Uint32(p[at:])) + uint64(r.IntN(9)) - 4
		}
		put32(p[at:], uint32(odd))
	}
}

// editMeta changes a field of one or both metas, with a right checksum.
func editMeta(r *rand.Rand, image []byte) {
	which, field := r.IntN(3), r.IntN(6)
	odd := []uint64{0, 1, 2, 3, uint64(r.IntN(len(image) / 4096)), 1 << 40, ^uint64(0)}[r.IntN(7)]
	for i := range 2 {
		m, err := bolt.ParseMeta(image[i*4096:])
		if err != nil || which == 1-i {
			continue
		}
		switch field {
		case 0:
			m.Root = odd
		case 1:
			m.HighWater += odd%5 - 2
		case 2:
			m.TxID = odd
		case 3:
			m.Freelist = odd
		case 4:
			m.Sequence = odd
		case 5:
			m.PageSize = 4096 << r.IntN(3)
		}
		m.Put(image[i*4096:(i+1)*4096], uint64(i))
	}
}

// editFreeList stores a free list in a free page, or, without a free page, in another page.
func editFreeList(t testing.TB, r *rand.Rand, image []byte) []byte {
	m := mustMeta(image)
	used := reachable(t, open(t, copyOf(t, withDigest(bytes.Clone(image)))))
	var free []uint64
	for id := range m.HighWater {
		if !used[id] {
			free = append(free, id)
		}
	}
	if len(free) == 0 {
		free = []uint64{uint64(r.IntN(int(m.HighWater)))}
	}
	m.Freelist = free[0]
	p := image[m.Freelist*4096 : (m.Freelist+1)*4096]
	clear(p)
	put64(p, m.Freelist)
	put16(p[8:], bolt.FlagFreelist)
	ids := slices.Clone(free[1:])
	switch r.IntN(8) {
	case 0: // a right list
	case 1:
		ids = append(ids, uint64(r.IntN(int(m.HighWater))))
	case 2:
		ids = append(ids, m.HighWater+uint64(r.IntN(9)))
	case 3:
		r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	case 4:
		ids = append(ids, ids...)
	case 5:
		ids = ids[:r.IntN(len(ids)+1)]
	case 6:
		put16(p[8:], uint16(1<<r.IntN(8)))
	case 7:
		put32(p[12:], uint32(r.IntN(3)))
		put64(p, uint64(r.IntN(int(m.HighWater))))
	}
	put16(p[10:], uint16(len(ids)))
	for i, id := range ids {
		put64(p[bolt.HeaderSize+8*i:], id)
	}
	copy(image, m.Pages())
	return image
}

// changeRecord changes one record of the key bucket through bbolt.
func changeRecord(t testing.TB, r *rand.Rand, image []byte) []byte {
	return imageOf(rebuilt(t, withDigest(image), 4096,
		func(tx *bbolt.Tx) error { return changeOne(r, tx.Bucket([]byte("key"))) }))
}

// smallBuckets returns the buckets of a server except the key bucket.
func smallBuckets() []string {
	return slices.DeleteFunc(mvcc.Buckets(), func(name string) bool { return name == "key" })
}

// changeEntry changes an entry of another bucket, or adds one.
func changeEntry(t testing.TB, r *rand.Rand, image []byte) []byte {
	names := smallBuckets()
	return imageOf(rebuilt(t, withDigest(image), 4096, func(tx *bbolt.Tx) error {
		name := names[r.IntN(len(names))]
		b := tx.Bucket([]byte(name))
		if k, _ := b.Cursor().First(); k != nil && r.IntN(4) > 0 {
			return changeOne(r, b)
		}
		keys := map[string][]string{
			mvcc.MetaBucket: {"consistent_index", "term", "confState", "storageVersion", "scheduledCompactRev",
				"finishedCompactRev"},
			"cluster": {"clusterVersion", "downgrade"}, "auth": {"authEnabled", "authRevision"},
			"alarm":           {"\x08\x01\x10\x01", "\x08\x01\x10\x02", "\x10\x01", "\x08"},
			"members":         {"1", "ffffffffffffffff", "g"},
			"members_removed": {"1", "x"}, "lease": {"\x00\x00\x00\x00\x00\x00\x00\x09", "9"}, "authUsers": {"u"},
			"authRoles": {"r"},
		}[name]
		values := [][]byte{
			nil, {0}, {1}, {8, 9, 16, 60}, {0xff}, []byte("3.6.0"), []byte("3.9.0"), []byte("2.3.0"), []byte("{}"),
			[]byte(`{"enabled":true}`),
			mvcc.AppendRevisionKey(nil, Revision{Main: r.Int64()}, false),
			mvcc.AppendRevisionKey(nil, Revision{Main: int64(r.IntN(40))}, r.IntN(2) == 0),
			make([]byte, 8), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		}
		return b.Put([]byte(keys[r.IntN(len(keys))]), values[r.IntN(len(values))])
	}))
}

// changeBucket removes, adds or nests a bucket.
func changeBucket(t testing.TB, r *rand.Rand, image []byte) []byte {
	return imageOf(rebuilt(t, withDigest(image), 4096, func(tx *bbolt.Tx) error {
		name := []byte(mvcc.Buckets()[r.IntN(len(mvcc.Buckets()))])
		switch r.IntN(4) {
		case 0:
			_, err := tx.Bucket(name).CreateBucket([]byte("nested"))
			return err
		case 1:
			_, err := tx.CreateBucket([]byte(strconv.Itoa(r.IntN(1000))))
			return err
		}
		return tx.DeleteBucket(name)
	}))
}

// changeOne changes the key or the value of one entry of b.
func changeOne(r *rand.Rand, b *bbolt.Bucket) error {
	var keys [][]byte
	if err := b.ForEach(func(k, _ []byte) error {
		keys = append(keys, bytes.Clone(k))
		return nil
	}); err != nil || len(keys) == 0 {
		return err
	}
	k := keys[r.IntN(len(keys))]
	v := bytes.Clone(b.Get(k))
	if r.IntN(3) == 0 {
		if err := b.Delete(k); err != nil || r.IntN(4) == 0 {
			return err
		}
		if k = changeBytes(r, k); len(k) == 0 {
			k = []byte{0}
		}
	} else {
		v = changeBytes(r, v)
	}
	return b.Put(k, v)
}

func changeBytes(r *rand.Rand, b []byte) []byte {
	switch r.IntN(5) {
	case 0:
		return b[:r.IntN(len(b)+1)]
	case 1:
		return append(b, byte(r.IntN(256)))
	case 2:
		return slices.Insert(b, r.IntN(len(b)+1), byte(r.IntN(256)))
	}
	if len(b) > 0 {
		b[r.IntN(min(len(b), 24))] ^= 1 << r.IntN(8)
	}
	return b
}

// verdict is the result of this package for a file.
type verdict struct {
	Findings []string
	Odd      []string
	Served   string         // see servedSum
	Classes  map[Class]bool // of Findings and Odd
}

// worst returns the worst class, or "".
func (v verdict) worst() Class {
	for _, class := range []Class{Fatal, Lies, Warning} {
		if v.Classes[class] {
			return class
		}
	}
	return ""
}

func checkMutant(t testing.TB, path string) verdict {
	t.Helper()
	v := verdict{Classes: map[Class]bool{}}
	s, err := Open(t.Context(), path, Config{})
	if err != nil {
		v.Findings, v.Classes[ClassOf(err)] = []string{err.Error()}, true
		return v
	}
	defer s.Close()
	for _, err := range findings(t, s) {
		v.Findings, v.Classes[ClassOf(err)] = append(v.Findings, err.Error()), true
	}
	for err := range Odd(t.Context(), s) {
		v.Odd, v.Classes[ClassOf(err)] = append(v.Odd, err.Error()), true
	}
	if len(v.Findings) == 0 {
		v.Served = servedSum(liveAt(t, s, "", revision(t, s)))
	}
	return v
}

// servedSum identifies the data served to a client: every live key with all its numbers.
func servedSum(kvs []etcdtest.KV) string {
	h := sha256.New()
	for _, kv := range kvs {
		fmt.Fprintf(h, "%q %q %d %d %d %d\n", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease)
	}
	return fmt.Sprintf("%d keys, %x", len(kvs), h.Sum(nil)[:8])
}

// TestMutants checks that this package agrees with bbolt's own check, a restore and a real server
// about a mutant. Every difference is listed in explained.
func TestMutants(t *testing.T) {
	n := mutantsDefault
	if text := os.Getenv(mutantsVariable); text != "" {
		n = must(strconv.Atoi(text))(t)
	}
	bases := [][]byte{rebuilt(t, fixture(t), 4096, withKeys(300))}
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		b := must(os.ReadFile(filepath.Join("..", "testdata", "etcd", "etcd-"+release+".db")))(t)
		bases = append(bases, b)
	}
	counts := make(chan string, n)
	t.Run("each", func(t *testing.T) {
		for i := range n {
			m := newMutant(t, i, bases)
			t.Run(fmt.Sprintf("%d %s", i, m.what), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "in.db")
				require.NoError(t, os.WriteFile(path, m.bytes, 0o600))
				peer := askPeers(t, path)
				ours := checkMutant(t, path)
				why := compare(ours, peer)
				if why == unexplained {
					t.Errorf("not explained: %+v, peers say %+v", ours, peer)
				}
				counts <- why
			})
		}
	})
	close(counts)
	sums := map[string]int{}
	for why := range counts {
		sums[why]++
	}
	for _, why := range slices.Sorted(maps.Keys(sums)) {
		t.Logf("%4d %s", sums[why], why)
	}
}
