package salvage

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/carve"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// unite joins the records of all files, and finds out which are sure and which revisions are lost.
func (r *Remains) unite(ctx context.Context) error {
	*r = Remains{Report: Report{UnusedLogs: r.UnusedLogs}, files: r.files, log: r.log,
		warnings: r.warnings}
	for _, f := range r.files {
		if r.log != nil && f == r.log.ruin {
			continue
		}
		if r.base == nil || f.compacted > r.base.compacted || f.compacted == r.base.compacted &&
			(len(f.gaps()) < len(r.base.gaps()) || len(f.gaps()) == len(r.base.gaps()) && f.last > r.base.last) {
			r.base = f
		}
	}
	if compacted := r.base.compacted; compacted >= 0 || r.log != nil && r.log.covers {
		if r.log != nil {
			compacted = max(compacted, r.log.compacted)
		}
		r.CompactRevision = &compacted
	}
	r.Lost, r.Gaps, r.Unsure, r.Damaged = []Range{}, []Range{}, []UnsureKey{}, []DamagedRecord{}
	r.Entries = append([]string{}, r.base.unread...)
	for i, f := range r.files {
		if r.log == nil || f != r.log.ruin {
			r.Files, r.Damaged = append(r.Files, f.describe()), append(r.Damaged, f.damaged...)
		}
		for _, one := range f.byTree {
			r.pieces = append(r.pieces, piece{Found: one, file: uint16(i), tree: true})
		}
		for _, one := range f.byBytes {
			r.pieces = append(r.pieces, piece{Found: one, file: uint16(i)})
		}
	}
	slices.SortFunc(r.pieces, func(a, b piece) int {
		tree := 0
		if a.tree != b.tree {
			if tree = 1; a.tree {
				tree = -1
			}
		}
		return cmp.Or(cmp.Compare(a.Main, b.Main), bytes.Compare(r.id(a), r.id(b)), tree, cmp.Compare(a.file, b.file),
			cmp.Compare(a.At, b.At))
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.log != nil {
		r.log.Added, r.Log = []LoggedRecord{}, &r.log.Log
	}
	if err := r.sift(); err != nil {
		return err
	}
	if err := r.isEmpty(); err != nil {
		return err
	}
	r.findLost()
	return r.findUnsure()
}

// isEmpty returns an error if there is no record.
func (r *Remains) isEmpty() error {
	if len(r.pieces) > 0 {
		return nil
	}
	var all []string
	for _, f := range r.files {
		all = append(all, f.path)
	}
	return fmt.Errorf("%w in %s", ErrNothingLeft, strings.Join(all, ", "))
}

func (r *Remains) id(p piece) []byte      { return r.files[p.file].ID(p.Found) }
func (r *Remains) bytesOf(p piece) []byte { return r.files[p.file].BytesOf(p.Found) }

func (r *Remains) parse(p piece, rec *snapshot.Record) error {
	return r.files[p.file].Carver.Parse(p.Found, rec)
}

// sift keeps one piece for each record, without those that a compaction removed.
func (r *Remains) sift() error {
	kept := r.pieces[:0]
	for all := r.pieces; len(all) > 0; {
		n := 1
		for n < len(all) && all[n].Main == all[0].Main && bytes.Equal(r.id(all[n]), r.id(all[0])) {
			n++
		}
		one, is, err := r.choose(all[:n])
		if err != nil {
			return err
		}
		if is {
			kept = append(kept, one)
		}
		all = all[n:]
	}
	r.pieces = kept
	return nil
}

// choose chooses among the copies of one record; those of a tree come first.
func (r *Remains) choose(copies []piece) (one piece, is bool, err error) {
	if r.log.decides(copies[0].Main) {
		one, is = r.byLog(copies)
		return one, is, nil
	}
	if n := slices.IndexFunc(copies, r.isLogged); n >= 0 {
		if one, is = r.byInference(copies, n); is || len(copies) == 1 {
			return one, is, nil
		}
		copies = slices.Delete(copies, n, n+1)
	}
	one = copies[0]
	for _, other := range copies[1:] {
		if other.tree && one.tree && !bytes.Equal(r.bytesOf(other), r.bytesOf(one)) {
			var rec snapshot.Record
			_ = r.parse(one, &rec)
			return one, false, fmt.Errorf("%w: revision %s, key %q, in %s and %s", ErrTwoHistories, rec.Revision,
				mvcc.Clip(rec.Key), r.files[one.file].path, r.files[other.file].path)
		}
	}
	if one, err = r.settle(copies); err != nil || !slices.ContainsFunc(copies, r.counts) {
		return one, false, err
	}
	if r.CompactRevision == nil {
		one.unsure = !one.tree
		return one, true, nil
	}
	compacted, id := *r.CompactRevision, r.id(one)[:mvcc.RevisionKeySize]
	if one.Main > compacted ||
		slices.ContainsFunc(copies, func(c piece) bool { return c.tree && r.files[c.file].compacted == compacted }) {
		return one, true, nil
	}
	if !r.base.misses(id) {
		return one, false, nil // removed by a compaction
	}
	one.unsure = !slices.ContainsFunc(copies, func(c piece) bool {
		return c.tree && r.knows(r.files[c.file], compacted)
	})
	return one, true, nil
}

// counts reports whether a copy may be in the tree of its file: the tree leads to it, is unreadable
// there, or may have ended before it, because a meta page is not valid. Other copies were removed
// by a compaction, or were never committed, or are bytes of a value that look like a record.
func (r *Remains) counts(c piece) bool {
	f := r.files[c.file]
	return c.tree || f.misses(r.id(c)[:mvcc.RevisionKeySize]) || f.tree.Metas < 2 && c.Main > f.last
}

// settle returns one of several copies: the one of a tree, or else the most frequent one, the first
// of several.
func (r *Remains) settle(copies []piece) (best piece, err error) {
	best = copies[0]
	if len(copies) == 1 {
		return best, nil
	}
	order := make([]int, len(copies)) // of copies, by their bytes: equal ones are neighbors
	for i := range order {
		order[i] = i
	}
	form := func(i int) []byte { return r.bytesOf(copies[i]) }
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(form(a), form(b)) })
	most, first, forms := uint32(0), 0, 0
	for ; len(order) > 0; forms++ {
		equal, n := uint32(0), 0
		for n < len(order) && bytes.Equal(form(order[n]), form(order[0])) {
			equal, n = equal+copies[order[n]].Copies, n+1
		}
		if equal > most || equal == most && order[0] < first {
			most, first = equal, order[0]
		}
		order = order[n:]
	}
	if !best.tree {
		best = copies[first]
	}
	if forms > 1 {
		var rec snapshot.Record
		if err := r.parse(best, &rec); err != nil {
			return best, err
		}
		r.Damaged = append(r.Damaged, DamagedRecord{string(rec.Key), rec.Revision.Main,
			fmt.Sprintf("found in %d forms; the form in the tree, or else the most frequent one, is taken", forms)})
	}
	return best, nil
}

// knows reports whether the tree of a file has all changes from its own compact revision up to rev.
func (r *Remains) knows(f *ruin, rev int64) bool {
	if f.compacted < 0 || f.last < rev {
		return false
	}
	return !slices.ContainsFunc(f.gaps(), func(g bolt.Gap) bool {
		of := revisionsOf(g)
		return of.From <= rev && of.To > f.compacted
	})
}

// findLost counts the lost revisions. The output is compacted at the last of them: earlier states
// are incomplete.
func (r *Remains) findLost() {
	compacted := int64(0)
	for _, p := range r.pieces {
		if !p.unsure {
			r.LastRevision = max(r.LastRevision, p.Main)
			r.Sure++
		}
		if r.isLogged(p) && r.log.renumbered[p.At] && r.CompactRevision != nil && p.Main > *r.CompactRevision {
			r.lowest = max(r.lowest, p.Main) // later numbers do not follow
		}
	}
	if r.CompactRevision == nil { // unknown from where on all revisions count
		r.lowest = r.LastRevision
		for _, f := range r.files {
			r.lowest = max(r.lowest, f.last)
		}
		return
	}
	compacted = *r.CompactRevision
	bumped := map[int64]bool{}
	r.lowest, r.LastRevision = max(r.lowest, compacted), max(r.LastRevision, compacted)
	for _, f := range r.files {
		if f.empty > compacted {
			bumped[f.empty] = true
			r.lowest, r.LastRevision = max(r.lowest, f.empty), max(r.LastRevision, f.empty)
		}
	}
	next := compacted + 1
	lost := func(to int64) {
		if next <= to && next > 1 { // revision 1 is that of an empty store
			r.Lost = append(r.Lost, Range{next, to})
			r.LostRevisions += to - next + 1
			r.lowest = max(r.lowest, to)
		}
		next = max(next, to+1)
	}
	if next == 1 {
		next = 2
	}
	for _, p := range r.pieces {
		if p.Main <= compacted {
			continue
		}
		if !isBumped(bumped, next, p.Main) {
			lost(p.Main - 1)
		}
		next = max(next, p.Main+1)
	}
	for _, g := range r.base.gaps() {
		of := revisionsOf(g)
		if r.log.decides(of.From) {
			of.From = r.log.last + 1
		}
		if of.From > of.To || r.log != nil && r.log.covers && of.From > r.log.last {
			continue
		}
		of.To = min(of.To, max(of.From, r.LastRevision))
		if r.Gaps = append(r.Gaps, of); of.To > compacted { // a transaction may have had more records
			r.lowest = max(r.lowest, of.To)
		}
	}
}

// isBumped reports whether a record without a key lies in a range of revisions: a restore with
// --bump-revision skipped the range.
func isBumped(bumped map[int64]bool, from, to int64) bool {
	for rev := range bumped {
		if from <= rev && rev <= to {
			return true
		}
	}
	return false
}

// findUnsure lists the keys without a sure record whose newest record is a value.
func (r *Remains) findUnsure() error {
	latest := r.newTable()
	var rec snapshot.Record
	for n, p := range r.pieces {
		if err := r.parse(p, &rec); err != nil {
			return err
		}
		if before := latest.Replace(rec.Key, int32(n)); before >= 0 && p.unsure && !r.pieces[before].unsure &&
			!(r.isLogged(r.pieces[before]) && r.log.flagged > 0) {
			latest.Replace(rec.Key, before)
		}
	}
	r.chosen = make([]bool, len(r.pieces))
	for _, n := range latest.Of {
		if !r.pieces[n].unsure {
			continue
		}
		if err := r.parse(r.pieces[n], &rec); err != nil {
			return err
		}
		if !rec.Tombstone {
			r.Unsure = append(r.Unsure, UnsureKey{string(rec.Key), rec.Revision.Main})
			r.chosen[n] = true
		}
	}
	slices.SortFunc(r.Unsure, func(a, b UnsureKey) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

// newTable returns a table of pieces by key.
func (r *Remains) newTable() carve.Table {
	var rec snapshot.Record
	return carve.NewTable(func(n int32) []byte {
		_ = r.parse(r.pieces[n], &rec) // was parsed before
		return rec.Key
	})
}
