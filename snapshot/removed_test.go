package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// event is a change that a watch received.
type event struct {
	Rev, Sub        int64
	Del             bool
	Key             string
	Value           []byte
	Create, Version int64
	Lease           int64
}

// eventsOf returns all events of a recorded cluster, by revision.
func eventsOf(t testing.TB, name string) map[Revision]event {
	t.Helper()
	f := must(os.Open(filepath.Join("..", "testdata", "wal", name)))(t)
	defer f.Close()
	all := map[Revision]event{}
	for lines := json.NewDecoder(must(gzip.NewReader(f))(t)); ; {
		var e event
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[Revision{Main: e.Rev, Sub: e.Sub}] = e
	}
}

// entry returns the revision key and the KeyValue of the event.
func (e event) entry() string {
	rec := Record{Revision: Revision{Main: e.Rev, Sub: e.Sub}, Tombstone: e.Del, Key: []byte(e.Key), Value: e.Value,
		CreateRevision: e.Create, ModRevision: e.Rev, Version: e.Version, Lease: e.Lease}
	el := new(mvcc.Encoder).Element(&rec)
	return string(el.Key) + string(el.Value)
}

func (e event) requireEqual(t testing.TB, r *Record) {
	t.Helper()
	require.Equal(t, e.Key, string(r.Key), r.Revision)
	require.Equal(t, e.Del, r.Tombstone, r.Revision)
	require.Equal(t, string(e.Value), string(r.Value), r.Revision)
	require.Equal(t, []int64{e.Create, e.Version, e.Lease}, []int64{r.CreateRevision, r.Version, r.Lease}, r.Revision)
}

// TestRemovedAreTrue compares the records found in the free pages of a snapshot with all events of
// its cluster.
func TestRemovedAreTrue(t *testing.T) {
	ctx := context.Background()
	events := eventsOf(t, "kube37.truth.jsonl.gz")
	path := etcdtest.Unpack(t, filepath.Join("..", "testdata", "wal", "kube37.snapshot.db.gz"))
	s := must(Open(ctx, path, Config{FreePages: true}))(t)
	defer s.Close()
	seen, removed, last := map[Revision]bool{}, 0, Revision{}
	for r, err := range s.Records(ctx) {
		require.NoError(t, err)
		require.Positive(t, r.Revision.Compare(last))
		last = r.Revision
		events[r.Revision].requireEqual(t, r)
		if seen[r.Revision] = true; r.FreePage {
			removed++
		}
	}
	require.Equal(t, 1973, removed)
	require.Len(t, seen, 1973+must(s.Status(ctx))(t).Records)
	for r, err := range s.History(ctx, []byte("/registry/configmaps/shop-10/cm1")) {
		require.NoError(t, err)
		require.True(t, r.FreePage)
		break // a reader may stop
	}
	for r := range must(Open(ctx, path, Config{}))(t).Records(ctx) {
		require.False(t, r.FreePage)
	}
	for d, err := range s.Deleted(ctx, nil) {
		require.NoError(t, err)
		require.Nil(t, get(t, s, string(d.Key)))
		if d.Revision.Main > 0 {
			require.True(t, events[d.Revision].Del)
			require.Equal(t, string(d.Key), events[d.Revision].Key)
		}
		if d.Last != nil {
			events[d.Last.Revision].requireEqual(t, d.Last)
			require.True(t, d.Revision.Main == 0 || d.Last.Revision.Compare(d.Revision) < 0)
		}
	}
}

// TestRemovedInParts checks that the same records are found whatever the parts of the search.
func TestRemovedInParts(t *testing.T) {
	s := open(t, etcdtest.Unpack(t, filepath.Join("..", "testdata", "wal", "kube37.snapshot.db.gz")))
	r := must(s.removed(t.Context()))(t)
	spans := must(s.db.Unused(t.Context()))(t)
	for _, size := range []int64{100, 4096, 1 << 30} {
		var all []found
		for _, span := range spans {
			for from := span.From; from < span.To; from += size {
				all = r.find(bolt.Span{From: from, To: min(from+size, span.To)}, span.To, all)
			}
		}
		all = must(r.without(&bolt.Cursor{DB: s.db, Bucket: s.db.Bucket("key")}))(t)
		require.Equal(t, r.found, all)
	}
}

// TestNoPartOfARecord checks that a value of several pages is not found once one of them is used
// again.
func TestNoPartOfARecord(t *testing.T) {
	const size, page = 20000, 4096
	key := mvcc.AppendRevisionKey(make([]byte, page), Revision{Main: 5}, false)
	rec := Record{Key: []byte("/k"), Value: bytes.Repeat([]byte("v"), size),
		CreateRevision: 5, ModRevision: 5, Version: 1}
	b := append(mvcc.AppendKeyValue(key, &rec), make([]byte, page)...)
	c := carver{data: b, pageSize: page, last: 5}
	whole := bolt.Span{To: int64(len(b))}
	require.Len(t, c.find(whole, whole.To, nil), 1)
	put64(b[3*page:], 3)
	copy(b[3*page+8:], []byte{bolt.FlagLeaf, 0})
	require.Empty(t, c.find(whole, whole.To, nil))
	b[3*page+8] = 3
	require.Len(t, c.find(whole, whole.To, nil), 1, "no kind of page")
	put64(b[3*page:], 4)
	b[3*page+8] = bolt.FlagLeaf
	require.Len(t, c.find(whole, whole.To, nil), 1, "another number")
	require.Empty(t, c.find(whole, int64(page+size), nil), "cut off")
	c.last = 4
	require.Empty(t, c.find(whole, whole.To, nil), "a later revision")
}

// TestLeaseAtTheEnd checks that old bytes behind a record are no lease.
func TestLeaseAtTheEnd(t *testing.T) {
	for lease, behind := range map[int64]string{
		0: "\x30\x05garbage", 7: "\x00\x00", 1 << 62: "garbage", -1: "garbage", 300: "",
	} {
		rec := Record{Key: []byte("/k"), Value: []byte("v"), CreateRevision: 5, ModRevision: 5, Version: 1,
			Lease: lease}
		b := mvcc.AppendKeyValue(nil, &rec)
		require.Equal(t, len(b), mvcc.KeyValueSize(append(slices.Clone(b), behind...), false, false), lease)
	}
}

// FuzzFind checks for any bytes that each found record is one, and that they do not overlap.
func FuzzFind(f *testing.F) {
	rec := Record{Key: []byte("/k"), Value: []byte("v"), CreateRevision: 3, ModRevision: 5, Version: 2, Lease: 77}
	f.Add(mvcc.AppendKeyValue(mvcc.AppendRevisionKey(nil, Revision{Main: 5, Sub: 1}, false), &rec), uint16(0))
	gone := &Record{Revision: Revision{Main: 5}, Key: []byte("/k"), Tombstone: true}
	f.Add(mvcc.AppendKeyValue(mvcc.AppendRevisionKey(nil, gone.Revision, true), gone),
		uint16(4000))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		b = append(make([]byte, at), b...)
		c := carver{data: b, pageSize: 4096, last: mvcc.MaxRevision}
		end := int64(0)
		var enc mvcc.Encoder
		for _, one := range c.find(bolt.Span{To: int64(len(b))}, int64(len(b)), nil) {
			require.GreaterOrEqual(t, one.at, end)
			end = one.at + int64(one.size)
			require.LessOrEqual(t, end, int64(len(b)))
			var rec Record
			require.NoError(t, c.parse(one, &rec))
			require.NoError(t, mvcc.Follows(nil, &rec))
			require.Equal(t, one.main, rec.Revision.Main)
			el := enc.Element(&rec)
			require.LessOrEqual(t, len(el.Key)+len(el.Value), int(one.size), "a varint may be longer than needed")
		}
	})
}
