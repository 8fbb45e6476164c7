package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sort"
	"strings"
	"sync"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// records reads the key bucket of a file.
type records struct {
	input
	db *bolt.DB

	mu   sync.Mutex
	idx  *index                // nil until the end of the first scan
	bad  error                 // the error of the first scan
	mark func(key []byte) bool // see Mark

	freePages bool // see Config
	carving   sync.Mutex
	carved    *removed // nil until the first use
}

// log is the key bucket as a list of records in revision order. The ordinal of a record is its
// index in the list.
type log struct {
	*input
	db    *bolt.DB
	keys  *bolt.Bucket
	start []uint32 // ordinal of the first record of each leaf, and the total number
}

// at decodes the record with the given ordinal. Its page was checked for the index; a check for
// each record would take quadratic time.
func (l *log) at(ordinal uint32, rec *Record) error {
	leaf := sort.Search(len(l.start), func(i int) bool { return l.start[i] > ordinal }) - 1
	p := l.keys.Inline
	if l.keys.Root != 0 {
		var err error
		if p, err = l.db.Extent(l.keys.Leaves[leaf]); err != nil {
			return err
		}
	}
	_, k, v := p.Leaf(int(ordinal - l.start[leaf]))
	return mvcc.ParseRecord(k, v, rec)
}

// total returns the number of records.
func (l *log) total() int { return int(l.start[len(l.start)-1]) }

// after returns the ordinal of the first record above main revision rev.
func (l *log) after(rev int64) (ordinal uint32, err error) {
	above := func(rec *Record) bool { return rec.Revision.Main > rev }
	first, err := l.search(l.total(), func(i int) uint32 { return uint32(i) }, above)
	return uint32(first), err
}

// search returns the first number below n for which behind returns true. at returns the ordinal of
// the record with a number.
func (l *log) search(n int, at func(i int) uint32, behind func(*Record) bool) (first int, err error) {
	failed := l.read(func() error {
		var rec Record
		first = sort.Search(n, func(i int) bool {
			if err == nil {
				err = l.at(at(i), &rec)
			}
			return behind(&rec)
		})
		return err
	})
	return first, failed
}

// inLeaf adds the position in the file to the error of a record.
func (l *log) inLeaf(leaf int, err error) error {
	if err == nil {
		return nil
	}
	if l.keys.Root == 0 {
		return fmt.Errorf("bucket %q: %w", l.keys.Name, err)
	}
	return fmt.Errorf("bucket %q: page %d: %w", l.keys.Name, l.keys.Leaves[leaf], err)
}

// table maps a hash of each key to the ordinal of a record of the key: the first free number from
// the hash on. Keys with equal hashes are distinguished by the stored keys.
type table struct {
	*log
	seed     maphash.Seed // random for each process: no file can contain keys chosen to collide
	ordinals map[uint32]uint32
}

func newTable(l *log) table {
	return table{log: l, seed: maphash.MakeSeed(), ordinals: map[uint32]uint32{}}
}

// find returns the ordinal of the record of key, and sets rec to that record.
func (t *table) find(key []byte, rec *Record) (ordinal uint32, found bool, err error) {
	err = t.read(func() error {
		_, ordinal, found, err = t.place(key, rec)
		return err
	})
	return ordinal, found, err
}

// replace makes the record with the given ordinal the record of key. replace returns the ordinal of
// the previous record, and sets before to that record.
func (t *table) replace(key []byte, ordinal uint32, before *Record) (old uint32, found bool, err error) {
	hash, old, found, err := t.place(key, before)
	if err == nil {
		t.ordinals[hash] = ordinal
	}
	return old, found, err
}

// place returns the hash of key in the table, or a free hash, and sets rec to the record found.
func (t *table) place(key []byte, rec *Record) (hash, ordinal uint32, found bool, err error) {
	for hash = uint32(maphash.Bytes(t.seed, key)); ; hash++ {
		if ordinal, found = t.ordinals[hash]; !found {
			return hash, 0, false, nil
		}
		if err := t.at(ordinal, rec); err != nil || bytes.Equal(rec.Key, key) {
			return hash, ordinal, true, err
		}
	}
}

// bits is a set of ordinals.
type bits []uint64

func (b bits) has(ordinal uint32) bool { return b[ordinal/64]&(1<<(ordinal%64)) != 0 }
func (b bits) set(ordinal uint32)      { b[ordinal/64] |= 1 << (ordinal % 64) }
func (b bits) clear(ordinal uint32)    { b[ordinal/64] &^= 1 << (ordinal % 64) }

// grown returns b with space for total ordinals.
func (b bits) grown(total uint64) bits { return append(b, make(bits, (total+63)/64-uint64(len(b)))...) }

// folders groups keys by their beginning up to the third slash, in two bytes for each record, so
// that a scan of a prefix skips other keys. Keys without a folder, or beyond the maximum number of
// folders, are always scanned.
type folders struct {
	ids   map[string]uint16
	names []string // by id; id 0 is for keys without a folder
	of    []uint16 // by ordinal
}

// maxFolderSize is the maximum length of a folder name in bytes.
const maxFolderSize = 256

func newFolders() folders { return folders{ids: map[string]uint16{}, names: []string{""}} }

// folderName returns the beginning of key through the third slash, or nil without three slashes
// within maxFolderSize.
func folderName(key []byte) []byte {
	at := 0
	for range 3 {
		i := bytes.IndexByte(key[at:min(len(key), maxFolderSize)], '/')
		if i < 0 {
			return nil
		}
		at += i + 1
	}
	return key[:at]
}

// put stores the folder of the record with the given ordinal.
func (f *folders) put(ordinal uint32, key []byte) {
	name := folderName(key)
	id, known := f.ids[string(name)]
	if !known && name != nil && len(f.names) < math.MaxUint16 {
		id = uint16(len(f.names))
		f.ids[string(name)] = id
		f.names = append(f.names, string(name))
	}
	f.of[ordinal] = id
}

// under returns a function that reports whether the key of an ordinal may begin with prefix.
func (f *folders) under(prefix []byte) func(ordinal uint32) bool {
	p := string(prefix)
	may := make([]bool, len(f.names))
	for id, name := range f.names {
		may[id] = id == 0 || strings.HasPrefix(name, p) || strings.HasPrefix(p, name)
	}
	return func(ordinal uint32) bool { return may[f.of[ordinal]] }
}

// Mark selects the records of Marked by their keys. fn is called with each key while the index is
// built, by the first method that needs the index; a later Mark has no effect.
func (s *records) Mark(fn func(key []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = fn
}

// index builds the index at the first call; other calls return the index, or its error.
func (s *records) index(ctx context.Context) (*index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idx != nil || s.bad != nil {
		return s.idx, s.bad
	}
	x := newIndex(s)
	x.seen = func(before, rec *Record) {
		if x.unsound == nil {
			x.unsound = mvcc.CheckRecord(before, rec)
		}
		x.odd = x.odd || x.gone(before, rec) != nil
	}
	if err := s.read(func() error { return x.fill(ctx) }); err != nil {
		if ctx.Err() == nil { // an ended ctx is not an error of the file
			s.bad = err
		}
		return nil, err
	}
	if x.unsound == nil {
		x.unsound = x.checkRevisionsLeft()
	}
	s.idx = x
	return x, nil
}
