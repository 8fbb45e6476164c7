package bolt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// entry is an entry of a bucket.
type entry struct{ bucket, key, value string }

// FuzzPages checks images with arbitrary pages below metas with a right checksum. Every error says
// that the file is damaged, and no page is counted twice. If the image has no finding, bbolt reads
// the same entries, from the image and from a rewritten file.
func FuzzPages(f *testing.F) {
	for _, n := range []int{0, 3, 60} {
		f.Add(imageOf(f, n))
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		if len(image) > 64<<10 {
			t.Skip()
		}
		image = bytes.Clone(image)
		m, ok := newestMeta(image)
		if !ok {
			return
		}
		image = image[:m.Bytes()]
		db, err := Open(t.Context(), image, m, nil)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		require.LessOrEqual(t, db.Free, m.HighWater)
		require.LessOrEqual(t, db.Lost, db.Free)
		all, err := readBuckets(t.Context(), db)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		require.Equal(t, all, readByPeer(t, image))
		require.Equal(t, all, readByPeer(t, rewritten(t, db)))
	})
}

// newestMeta gives the metas a right checksum and returns the newer meta. ok is false if the image
// lacks pages.
func newestMeta(image []byte) (m Meta, ok bool) {
	for at := 0; at+HeaderSize+MetaSize <= len(image) && at <= MaxPageSize; at += MinPageSize {
		if b := image[at+HeaderSize:]; le.Uint32(b) == MetaMagic {
			le.PutUint64(b[56:], MetaSum(b))
		}
	}
	metas, errs := Metas(image)
	for i := range metas {
		if errs[i] == nil && (!ok || metas[i].TxID > m.TxID) {
			m, ok = metas[i], true
		}
	}
	// bbolt reads both metas of a file.
	return m, ok && errs[0] == nil && errs[1] == nil && m.HighWater <= uint64(len(image)/m.PageSize)
}

// readBuckets returns all entries and the first finding.
func readBuckets(ctx context.Context, db *DB) (all []entry, err error) {
	if db.FreelistErr != nil {
		return nil, db.FreelistErr
	}
	if err := db.CheckBranches(ctx, db.Root); err != nil {
		return nil, err
	}
	for _, b := range db.Buckets {
		all = append(all, entry{bucket: b.Name})
		if err := db.CheckBranches(ctx, b.Root); err != nil {
			return nil, err
		}
		for el, err := range db.Entries(ctx, &b) {
			if err != nil {
				return nil, err
			}
			all = append(all, entry{b.Name, string(el.Key), string(el.Value)})
		}
	}
	return all, nil
}

// readByPeer reads all entries with bbolt.
func readByPeer(t *testing.T, image []byte) (all []entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	require.NoError(t, os.WriteFile(path, image, 0o600))
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			all = append(all, entry{bucket: string(name)})
			return b.ForEach(func(key, value []byte) error {
				all = append(all, entry{string(name), string(key), string(value)})
				return nil
			})
		})
	}))
	return all
}

// rewritten returns the image of a new file with the buckets of db.
func rewritten(t *testing.T, db *DB) []byte {
	t.Helper()
	var sources []Source
	for _, b := range db.Buckets {
		sources = append(sources, Source{Name: b.Name, Sequence: b.Sequence, Entries: db.Entries(t.Context(), &b),
			Paged: true})
	}
	out := &growing{}
	_, err := Create(out, db.Meta, sources)
	require.NoError(t, err)
	return out.b
}

// imageOf returns a database of bbolt with n entries in each of three buckets.
func imageOf(f *testing.F, n int) []byte {
	f.Helper()
	path := filepath.Join(f.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: MinPageSize})
	require.NoError(f, err)
	require.NoError(f, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "lease", "meta"} {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			for i := range n {
				if err := b.Put(fmt.Appendf(nil, "%s-%04d", name, i*i), bytes.Repeat([]byte("v"), i)); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	require.NoError(f, db.Update(func(tx *bbolt.Tx) error { // frees pages
		return tx.DeleteBucket([]byte("lease"))
	}))
	require.NoError(f, db.Close())
	image, err := os.ReadFile(path)
	require.NoError(f, err)
	m, ok := newestMeta(image)
	require.True(f, ok)
	return image[:m.Bytes()]
}

// growing is a file in memory.
type growing struct{ b []byte }

func (g *growing) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(g.b) {
		g.b = append(g.b, make([]byte, need-len(g.b))...)
	}
	return copy(g.b[at:], p), nil
}

// TestBranchPages checks that a branch with a single child is the only branch, and that no branch
// exceeds a page.
func TestBranchPages(t *testing.T) {
	key := make([]byte, 17)
	for n := 1; n <= 600; n++ {
		out := &growing{}
		w := &Writer{Out: out, PageSize: 4096}
		kids := make([]Element, n)
		for i := range kids {
			kids[i] = Element{Key: key, Child: uint64(i)}
		}
		pages, err := w.branches(kids)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.Len(t, out.b, 4096*len(pages))
		next := uint64(0)
		for _, el := range pages {
			p := Page(out.b[el.Child*4096:])[:4096]
			require.True(t, n == 1 || p.Count() > 1, "%d children", n)
			for i := range p.Count() {
				_, child := p.Branch(i)
				require.Equal(t, next, child)
				next++
			}
		}
		require.Equal(t, uint64(n), next)
	}
}

// TestOldBranches checks that CheckBranches reads new branches, and only the ends below a branch of
// the old file.
func TestOldBranches(t *testing.T) {
	entry := func(i int) Element { // seven keys fill a branch, each value a leaf
		return Element{Key: fmt.Appendf(nil, "%0500d", 10*i), Value: make([]byte, leafSize)}
	}
	var entries []Element
	for i := range 20 {
		entries = append(entries, entry(i))
	}
	out := &growing{}
	m, err := Create(out, Meta{PageSize: 4096, TxID: 1}, []Source{{Name: "key", Entries: Seq(entries...)}})
	require.NoError(t, err)
	old, err := Open(t.Context(), bytes.Clone(out.b), m, nil)
	require.NoError(t, err)
	w := &Writer{Out: out, PageSize: m.PageSize, Next: m.HighWater}
	el, err := w.Append(t.Context(), old, old.Bucket("key"), Seq(entry(20)))
	require.NoError(t, err)
	m.Root, err = w.Root(old, []Element{el})
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	m.HighWater = w.Next
	db, err := Open(t.Context(), out.b, m, old)
	require.NoError(t, err)
	root := db.Bucket("key").Root
	require.NoError(t, db.CheckBranches(t.Context(), root))

	top, err := db.Page(root)
	require.NoError(t, err)
	_, child := top.Branch(1)
	branch, err := db.Page(child)
	require.NoError(t, err)
	require.True(t, branch.IsBranch() && child < old.HighWater)
	key, _ := branch.Branch(1)
	key[len(key)-1]++ // behind the first key of the leaf
	require.ErrorIs(t, old.CheckBranches(t.Context(), old.Bucket("key").Root), ErrDamaged)
	require.NoError(t, db.CheckBranches(t.Context(), root))
	key, _ = top.Branch(1)
	key[len(key)-1]++
	require.ErrorIs(t, db.CheckBranches(t.Context(), root), ErrDamaged)
}
