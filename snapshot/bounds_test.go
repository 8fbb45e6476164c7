package snapshot

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// crafted returns a snapshot with a manual page layout: fn returns the root of the key bucket.
func crafted(t testing.TB, fn func(w *bolt.Writer) uint64) []byte {
	t.Helper()
	out := &growing{}
	w := &bolt.Writer{Out: out, PageSize: 4096, Next: 2}
	header := le.AppendUint64(nil, fn(w))
	inline := make([]byte, bolt.HeaderSize)
	put16(inline[8:], bolt.FlagLeaf)
	root, err := w.Page(bolt.FlagLeaf, []bolt.Element{
		{Flags: bolt.FlagBucket, Key: []byte("key"), Value: le.AppendUint64(header, 0)},
		{Flags: bolt.FlagBucket, Key: []byte("meta"), Value: append(make([]byte, bolt.BucketHeaderSize), inline...)},
	})
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	m := bolt.Meta{PageSize: 4096, Root: root, Freelist: bolt.NoFreelist, HighWater: w.Next, TxID: 7}
	copy(out.b, m.Pages())
	return withDigest(out.b)
}

func emit(t testing.TB, w *bolt.Writer, kind uint16, elems []bolt.Element) uint64 {
	t.Helper()
	id := must(w.Page(kind, elems))(t)
	return id
}

func encoded(rec Record) bolt.Element {
	return new(mvcc.Encoder).Element(&rec)
}

// swift fails the test if fn takes more than a generous time: each case below would take minutes or
// never end if work grew with sizes claimed by the file, or with the square of its content.
func swift(t testing.TB, fn func()) {
	t.Helper()
	start := time.Now()
	fn()
	require.Less(t, time.Since(start), 30*time.Second)
}

// TestClaimsOfOverflow checks thousands of pages that each claim the rest of the file as overflow.
func TestClaimsOfOverflow(t *testing.T) {
	b := crafted(t, func(w *bolt.Writer) uint64 {
		var kids []bolt.Element
		for i := range 30_000 {
			el := encoded(created(int64(i+2), "/k", "v"))
			kids = append(kids, bolt.Element{Key: el.Key, Child: emit(t, w, bolt.FlagLeaf, []bolt.Element{el})})
		}
		return emit(t, w, bolt.FlagBranch, kids)
	})
	image := imageOf(b)
	for id := 2; id < 30_002; id++ {
		put32(image[id*4096+12:], uint32(len(image)/4096-id-1))
	}
	path := copyOf(t, withDigest(image))
	swift(t, func() { refused(t, path, ErrDamaged, "is used twice") })
}

// TestManyVersionsInOnePage checks a page of 60,000 records of one key.
func TestManyVersionsInOnePage(t *testing.T) {
	const n = 60_000
	path := copyOf(t, crafted(t, func(w *bolt.Writer) uint64 {
		var elems []bolt.Element
		for i := range n {
			rec := Record{Revision: Revision{Main: int64(i + 2)}, Key: []byte("/k"), CreateRevision: 2,
				ModRevision: int64(i + 2), Version: int64(i + 1)}
			elems = append(elems, encoded(rec))
		}
		return emit(t, w, bolt.FlagLeaf, elems)
	}))
	swift(t, func() {
		s := open(t, path)
		require.Empty(t, findings(t, s))
		rec := must(s.Get(context.Background(), []byte("/k")))(t)
		require.Equal(t, int64(n), rec.Version)
		out, _ := write(t, s, WriteConfig{}, put("/k", "new"))
		sound(t, out)
	})
}

// TestDeepChain checks branches with one child each, deeper than any tree of bbolt.
func TestDeepChain(t *testing.T) {
	path := copyOf(t, crafted(t, func(w *bolt.Writer) uint64 {
		el := encoded(created(2, "/k", "v"))
		id := emit(t, w, bolt.FlagLeaf, []bolt.Element{el})
		for range 2000 {
			id = emit(t, w, bolt.FlagBranch, []bolt.Element{{Key: el.Key, Child: id}})
		}
		return id
	}))
	swift(t, func() { refused(t, path, ErrDamaged, "deeper than 64 levels") })
}

// TestSharedValue checks 60,000 records that share one value of 16 MiB: a terabyte to read.
func TestSharedValue(t *testing.T) {
	b := crafted(t, func(w *bolt.Writer) uint64 {
		elems := make([]bolt.Element, 60_000)
		for i := range elems {
			elems[i] = bolt.Element{Key: mvcc.AppendRevisionKey(nil, Revision{Main: int64(i + 2)}, false)}
		}
		elems[len(elems)-1].Value = make([]byte, 16<<20)
		return emit(t, w, bolt.FlagLeaf, elems)
	})
	p := bolt.Page(b[2*4096:])
	at := func(i int) int { return bolt.HeaderSize + i*bolt.ElementSize }
	value := at(p.Count()-1) + int(le.Uint32(p[at(p.Count()-1)+4:])) + mvcc.RevisionKeySize
	for i := range p.Count() - 1 {
		put32(p[at(i)+4:], uint32(value-mvcc.RevisionKeySize-at(i)))
		put32(p[at(i)+12:], 16<<20)
	}
	path := copyOf(t, withDigest(imageOf(b)))
	swift(t, func() { refused(t, path, ErrDamaged, "shares bytes") })
}

// TestClaimsOfMemory checks implausible buckets, members and versions that would fill memory when
// kept or printed.
func TestClaimsOfMemory(t *testing.T) {
	fill := func(n int, key func(i int) string, value string) func(b *bbolt.Bucket) error {
		return func(b *bbolt.Bucket) error {
			for i := range n {
				if err := b.Put([]byte(key(i)), []byte(value)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	number := func(i int) string { return fmt.Sprintf("%020d", i) }
	tests := []struct {
		name, bucket string
		fill         func(b *bbolt.Bucket) error
		text         string
	}{
		{"many members", "members", fill(5000, number, `{"name":"x"}`), "more than 256 members"},
		{"member of a megabyte", "members", fill(1, number, `{"peerURLs":[`+strings.Repeat(`"",`, 1<<18)+`""]}`), ""},
		{"member not JSON", "members", fill(1, number, `{"name":`), ""},
		{"member nested", "members", fill(1, number, strings.Repeat("[", 16000)), ""},
		{"storage version", "meta", fill(1, func(int) string { return "storageVersion" }, strings.Repeat("3", 1<<20)),
			""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error { return tt.fill(tx.Bucket([]byte(tt.bucket))) })
			path := copyOf(t, b)
			if tt.text != "" {
				require.NotEmpty(t, suspect(t, path, ErrDamaged, tt.text), "Write does not read them")
				return
			}
			bounded(t, func() {
				errs, _ := exercise(t, path)
				require.Empty(t, errs, "a restore accepts it")
				if tt.bucket == "members" {
					require.Contains(t, mustMembers(t, path), Member{ID: number(0)})
				}
				require.LessOrEqual(t, len(status(t, path).StorageVersion), 64)
			})
		})
	}
	for _, tt := range []struct {
		n, size int
		text    string
	}{{20_000, 10, "more than 16384 buckets"}, {3, 20_000, "a bucket's name has 20000 bytes"}} {
		b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
			for i := range tt.n {
				if _, err := tx.CreateBucket([]byte(fmt.Sprintf("%0*d", tt.size, i))); err != nil {
					return err
				}
			}
			return nil
		})
		refused(t, copyOf(t, b), ErrDamaged, tt.text)
	}
}

// TestNeverPanics flips a bit of each structural byte and of some others, with the digest
// unchecked: the result is an error that names the file, or an answer.
func TestNeverPanics(t *testing.T) {
	b := rebuilt(t, fixture(t), 1024, nil)
	path := victim(t, b)
	s := open(t, path)
	used := reachable(t, s)
	f := must(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	tried, failed := 0, 0
	for at := range imageOf(b) {
		inPage := at % 1024
		if !used[uint64(at/1024)] || (inPage >= 96 && at%23 != 0) {
			continue
		}
		flipped := []byte{b[at] ^ 1<<(at%8)}
		must(f.WriteAt(flipped, int64(at)))(t)
		for _, err := range readWithoutDigest(t, path) {
			require.ErrorContains(t, err, path)
			require.NotErrorIs(t, err, ErrChanged)
			failed++
		}
		tried++
		must(f.WriteAt(b[at:at+1], int64(at)))(t)
	}
	t.Logf("%d bits, %d errors", tried, failed)
	require.NotZero(t, failed)
	require.Equal(t, sumOf(t, copyOf(t, b)), sumOf(t, path))
}

func mustMembers(t testing.TB, path string) []Member {
	t.Helper()
	members := must(open(t, path).Cluster(context.Background()))(t)
	return members.Members
}
