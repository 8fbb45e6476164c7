package bolt

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
)

// Ruin is a damaged database. Its tree is read as far as it goes: an unreadable page, or an
// unreadable element of a leaf, is a gap, and the rest is read.
type Ruin struct {
	Data     []byte
	PageSize int
	Metas    int    // number of valid metas
	Root     uint64 // page of the root bucket; 0 for none
	Searched bool   // no valid meta leads to Root: its page was found among all pages
	Buckets  []RuinBucket
	Bad      int // number of gaps in all buckets

	// entry is called with each readable entry and the offset of its key, which the value follows.
	// If entry returns false, the entry is unreadable.
	entry func(bucket string, at int64, key, value []byte) bool

	headlessBytes uint64 // of all leaves made by headless
}

// RuinBucket is a bucket of a Ruin.
type RuinBucket struct {
	Name string
	Gaps []Gap // in the order of keys
}

// Gap is a range of keys that the tree should have, but no readable page: From is the lowest
// possible key, To is above the highest; nil is unlimited.
type Gap struct{ From, To []byte }

// Contains reports whether a key lies in the gap.
func (g Gap) Contains(key []byte) bool {
	return bytes.Compare(g.From, key) <= 0 && (g.To == nil || bytes.Compare(key, g.To) < 0)
}

// ReadRuin reads the tree of a damaged file, below the root of the newest valid meta, or of the
// other one. Without such a root ReadRuin takes, of all pages that look like a root of etcd, the
// one with the highest rank, by the entries of its meta bucket. entry is called with each readable
// entry, and with the offset of its key, which the value follows; an entry for which entry returns
// false is unreadable.
func ReadRuin(
	ctx context.Context, data []byte, rank func(key, value []byte) uint64,
	entry func(bucket string, at int64, key, value []byte) bool,
) (*Ruin, error) {
	metas, errs := Metas(data)
	r := &Ruin{Data: data, entry: entry}
	var valid []Meta
	for i, m := range metas {
		if errs[i] == nil {
			valid = append(valid, m)
		}
	}
	slices.SortFunc(valid, func(a, b Meta) int { return cmp.Compare(b.TxID, a.TxID) })
	r.Metas, r.PageSize = len(valid), guessPageSize(data)
	for _, m := range valid {
		r.PageSize = m.PageSize
		if r.hasKeys(ctx, m.Root) {
			return r, r.read(ctx, m.Root)
		}
	}
	most := uint64(0)
	for id := uint64(2); id < r.pages(); id++ {
		if at, is := r.rootRank(id, rank); is && (r.Root == 0 || at > most) {
			r.Root, r.Searched, most = id, true, at
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if r.Root == 0 {
		return r, nil
	}
	return r, r.read(ctx, r.Root)
}

// guessPageSize returns the page size by which most pages have their own number.
func guessPageSize(data []byte) int {
	size, most := 4<<10, 0
	for ps := MinPageSize; ps <= MaxPageSize; ps <<= 1 {
		n := 0
		for at := 0; at+HeaderSize <= len(data); at += ps {
			if p := Page(data[at:]); p.ID() == uint64(at/ps) && p.HasKind() {
				n++
			}
		}
		if n > most {
			size, most = ps, n
		}
	}
	return size
}

func (r *Ruin) pages() uint64 { return uint64(len(r.Data) / r.PageSize) }

// page returns a page with its overflow pages, as far as the file has them.
func (r *Ruin) page(id uint64) (p Page, at int64) {
	if id < 2 || id >= r.pages() {
		return nil, 0
	}
	at = int64(id) * int64(r.PageSize)
	p = Page(r.Data[at:])
	if p.ID() != id || !p.IsLeaf() && !p.IsBranch() {
		return nil, 0
	}
	return p[:min(int64(len(p)), (int64(p.Overflow())+1)*int64(r.PageSize))], at
}

// headless returns a leaf whose header is damaged, with a header made from its elements: the first
// element tells their number, and no bytes lie between them. Leaves do not overlap: more bytes than
// the file has are not those of leaves.
func (r *Ruin) headless(id uint64) (Page, int64) {
	if id < 2 || id >= r.pages() {
		return nil, 0
	}
	at := int64(id) * int64(r.PageSize)
	p := Page(r.Data[at:])
	table := HeaderSize + int(le.Uint32(p[HeaderSize+4:]))
	n := (table - HeaderSize) / ElementSize
	if n == 0 || n > math.MaxUint16 || table > len(p) || table != HeaderSize+n*ElementSize {
		return nil, 0
	}
	end := uint64(table)
	head := make(Page, HeaderSize)
	le.PutUint64(head, id)
	le.PutUint16(head[8:], FlagLeaf)
	le.PutUint16(head[10:], uint16(n))
	leaf := append(head, p[HeaderSize:table]...)
	for i := range n {
		start, size := leaf.Extent(i)
		if start != end || size == 0 || end+size > uint64(len(p)) {
			return nil, 0
		}
		end += size
	}
	if r.headlessBytes += end; r.headlessBytes > uint64(len(r.Data)) {
		return nil, 0
	}
	return append(leaf, p[table:end]...), at
}

// rootRank returns the highest rank in the meta bucket of a page, and whether the page is a sound
// leaf with the buckets of etcd.
func (r *Ruin) rootRank(id uint64, rank func(key, value []byte) uint64) (most uint64, is bool) {
	p, _ := r.page(id)
	if p == nil || !p.IsLeaf() || p.Check() != nil {
		return 0, false
	}
	keys, meta := false, Page(nil)
	for _, el := range p.Elements() {
		b, err := parseBucket(el)
		if err != nil {
			return 0, false
		}
		keys = keys || b.Name == "key"
		if b.Name == "meta" {
			if meta = b.Inline; b.Root != 0 { // too large to be inline
				meta, _ = r.page(b.Root)
			}
		}
	}
	if !keys || meta == nil || !meta.IsLeaf() || meta.Check() != nil {
		return 0, false
	}
	for _, el := range meta.Elements() {
		most = max(most, rank(el.Key, el.Value))
	}
	return most, true
}

// hasKeys reports whether the tree of a root has the bucket of records.
func (r *Ruin) hasKeys(ctx context.Context, root uint64) bool {
	found := false
	r.walk(func(_ int64, el Element) bool {
		found = found || string(el.Key) == "key" && el.Flags&FlagBucket != 0
		return true
	}).tree(ctx, root, Gap{}, 0)
	return found
}

// read reads all buckets below a root.
func (r *Ruin) read(ctx context.Context, root uint64) error {
	r.Root = root
	all := r.walk(func(at int64, el Element) bool {
		b, err := parseBucket(el)
		if err != nil || len(r.Buckets) == maxBuckets {
			return false
		}
		w := r.walk(func(at int64, el Element) bool {
			return el.Flags&FlagBucket == 0 && r.entry(b.Name, at, el.Key, el.Value)
		})
		if b.Root == 0 {
			w.leaf(b.Inline, at+int64(len(el.Key))+BucketHeaderSize, Gap{})
		} else {
			w.tree(ctx, b.Root, Gap{}, 0)
		}
		r.Buckets = append(r.Buckets, RuinBucket{b.Name, w.gaps})
		r.Bad += len(w.gaps)
		return true
	})
	all.tree(ctx, root, Gap{}, 0)
	r.Bad += len(all.gaps)
	return ctx.Err()
}

// Bucket returns the bucket named name, or nil.
func (r *Ruin) Bucket(name string) *RuinBucket {
	i := slices.IndexFunc(r.Buckets, func(b RuinBucket) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Buckets[i]
}

// ruinWalk reads a tree in the order of keys.
type ruinWalk struct {
	*Ruin
	used  map[uint64]bool
	entry func(at int64, el Element) bool // false makes a gap
	gaps  []Gap
}

func (r *Ruin) walk(entry func(at int64, el Element) bool) *ruinWalk {
	return &ruinWalk{Ruin: r, used: map[uint64]bool{}, entry: entry}
}

// gap adds a gap, joined with the one before it.
func (w *ruinWalk) gap(g Gap) {
	if n := len(w.gaps); n > 0 && (w.gaps[n-1].To == nil || bytes.Compare(w.gaps[n-1].To, g.From) >= 0) {
		w.gaps[n-1].To = g.To
		return
	}
	w.gaps = append(w.gaps, g)
}

// tree reads the page id, whose keys lie within a range.
func (w *ruinWalk) tree(ctx context.Context, id uint64, in Gap, depth int) {
	p, at := w.page(id)
	if p == nil && depth > 0 { // the parent names the page, and the range of its keys
		p, at = w.headless(id)
	}
	if p == nil || w.used[id] || depth > maxDepth || ctx.Err() != nil {
		w.gap(in)
		return
	}
	w.used[id] = true
	if p.IsLeaf() {
		w.leaf(p, at, in)
		return
	}
	if p.Check() != nil {
		w.gap(in)
		return
	}
	for i := range p.Count() {
		key, child := p.Branch(i)
		below := Gap{From: key, To: in.To}
		if i == 0 {
			below.From = in.From
		}
		if i+1 < p.Count() {
			below.To, _ = p.Branch(i + 1)
		}
		if i > 0 && !in.Contains(key) {
			w.gap(Gap{From: below.From, To: in.To})
			return
		}
		w.tree(ctx, child, below, depth+1)
	}
}

// leaf reads the elements of a leaf at an offset.
func (w *ruinWalk) leaf(p Page, at int64, in Gap) {
	table := HeaderSize + p.Count()*ElementSize
	if table > len(p) {
		w.gap(in)
		return
	}
	from, broken := in.From, p.Count() == 0 && (in.From != nil || in.To != nil)
	for i := range p.Count() {
		start, size := p.Extent(i)
		sound := start >= uint64(table) && start+size <= uint64(len(p))
		var el Element
		if sound {
			el.Flags, el.Key, el.Value = p.Leaf(i)
			sound = in.Contains(el.Key) && len(el.Key) > 0 && bytes.Compare(from, el.Key) <= 0 &&
				w.entry(at+int64(start), el)
		}
		if !sound {
			broken = true
			continue
		}
		if broken {
			w.gap(Gap{from, el.Key})
		}
		from, broken = append(bytes.Clone(el.Key), 0), false
	}
	if broken {
		w.gap(Gap{from, in.To})
	}
}
