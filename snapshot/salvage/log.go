package salvage

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/carve"
	"github.com/etcdshift/etcdshift/snapshot/internal/infer"
	"github.com/etcdshift/etcdshift/snapshot/internal/member"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/replay"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Log describes the log that decides about the records of damaged files.
type Log struct {
	Path     string         `json:"path"`
	First    uint64         `json:"first"`            // first entry
	Last     uint64         `json:"last"`             // last entry in the output
	LeftOut  uint64         `json:"leftOut"`          // number of later entries, which are not in the output
	Inferred bool           `json:"inferred"`         // the first entries of the cluster are gone: only sure writes count
	Damage   string         `json:"damage,omitempty"` // the damage at which the log ends
	Added    []LoggedRecord `json:"added"`            // records that only the log has, by revision
}

// LoggedRecord is a record that only the log has.
type LoggedRecord struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
	Deleted  bool   `json:"deleted"`
	// Renumbered reports that create revision and version were unknown: the record has those of a
	// created key.
	Renumbered bool `json:"renumbered"`
}

// logged is a log as a further file of Remains. If it begins with an empty store, its records are
// all that there were up to its last revision, as a compaction leaves them; else they are the sure
// ones.
type logged struct {
	*ruin
	Log
	flagged    int            // writes without a sure revision
	renumbered map[int64]bool // by offset
	covers     bool           // the log reaches as far as the files
	leases     []bolt.Element // the lease bucket
	warnings   []string
	log        *wal.Log
	term       uint64 // of the last entry
}

// logReader writes the records of a log to a scratch file.
type logReader struct {
	*Remains
	l    *logged
	log  *wal.Log
	enc  mvcc.Encoder
	w    *bufio.Writer
	size int64

	same, differ int // records of the files, compared with the log
}

// use adds the records of a log, and unites all files anew.
func (r *logReader) use(ctx context.Context, cfg snapshot.Config) (err error) {
	l, log := r.l, r.log
	out, err := publish.Scratch(cmp.Or(cfg.ScratchDir, os.TempDir()))
	if err != nil {
		return err
	}
	l.log = log
	l.ruin = &ruin{path: l.Path, compacted: -1,
		tree: &bolt.Ruin{Metas: 2, Buckets: []bolt.RuinBucket{{Name: "key"}}}}
	files, closeLog := r.files, out.Close
	defer func() {
		if err != nil {
			r.files, r.Remains.log = files, nil
		}
		if err != nil || r.size == 0 {
			err = errors.Join(err, closeLog())
		}
	}()
	r.w = bufio.NewWriterSize(out, 1<<20)
	if l.Inferred {
		err = r.infer(ctx)
	} else {
		err = r.replay(ctx, cfg)
	}
	if err = cmp.Or(wal.UnusableIfDamaged(err), r.w.Flush()); err != nil {
		return err
	}
	if r.size > 0 {
		cfg.File, cfg.KeepFile = out, false
		closeLog = func() error { return nil } // Map closes the file
		if l.Mapped, err = snapshot.Map(ctx, l.Path, cfg); err != nil {
			return err
		}
		closeLog = l.Close
		l.Carver = carve.Carver{Data: l.Bytes(), PageSize: 1, Last: mvcc.MaxRevision}
		l.byTree = l.Sorted(l.byTree)
	}
	if err := r.checkCluster(); err != nil {
		return err
	}
	if err := l.prune(r.CompactRevision); err != nil {
		return err
	}
	if err := r.say(ctx); err != nil {
		return err
	}
	if r.Remains.log = l; r.size > 0 {
		r.files = append(slices.Clone(files), l.ruin)
	} else {
		r.warnings, l.warnings = append(r.warnings, l.warnings...), nil
	}
	return r.unite(ctx)
}

// say warns about the damage of the log, and about entries that are left out.
func (r *logReader) say(ctx context.Context) error {
	l, log := r.l, r.log
	if !hasAll(r.files, log) {
		l.LeftOut = log.Last - l.Last
	}
	t := member.Tail{Log: log, Begin: l.Last, End: l.Last}
	if l.Inferred {
		t.Why = fmt.Sprintf("the first entries of the log are gone, so it counts only up to the last entry of %s",
			r.base.path)
	}
	if log.Damage != nil {
		l.Damage = log.Damage.Error()
		l.warnings = append(l.warnings,
			fmt.Sprintf("the log in %s counts only up to its damage: %v", l.Path, log.Damage))
	}
	more, err := t.Warnings(ctx)
	l.warnings = append(l.warnings, more...)
	return err
}

// add writes a record.
func (r *logReader) add(rec *snapshot.Record) error {
	el := r.enc.Element(rec)
	n := len(el.Key) + len(el.Value)
	r.l.byTree = append(r.l.byTree, carve.Found{Main: rec.Revision.Main, At: r.size, Size: uint32(n), Copies: 1})
	r.l.last = max(r.l.last, rec.Revision.Main)
	r.size += int64(n)
	_, err := r.w.Write(el.Key)
	_, bad := r.w.Write(el.Value)
	return cmp.Or(err, bad)
}

// replay writes the records of a log that begins with an empty store.
func (r *logReader) replay(ctx context.Context, cfg snapshot.Config) error {
	l, log := r.l, r.log
	limit := cmp.Or(max(0, cfg.MaxExpand), snapshot.DefaultMaxExpand)
	p, err := replay.New(log, &replay.Store{Revision: 1}, limit, r.add)
	if err != nil {
		return err
	}
	p.RecordsOnly = true
	err = log.Each(ctx, 1, l.Last, func(e wal.Entry) error {
		l.term = e.Term
		return p.Apply(ctx, e)
	})
	if err != nil {
		return err
	}
	l.last, l.compacted, l.covers = p.Revision, p.Compacted, true
	for _, f := range r.files {
		if f.compacted > l.last {
			err := fmt.Errorf("it ends with revision %d, and %s is compacted at %d", l.last, f.path, f.compacted)
			if log.Damage != nil {
				err = fmt.Errorf("%w; %v", err, log.Damage)
			}
			return err
		}
		l.compacted = max(l.compacted, f.compacted)
		n, known := f.index()
		if known {
			l.covers = l.covers && n <= l.Last && f.last <= l.last
		} else {
			l.covers = l.covers && log.Damage == nil && f.newest() <= l.last
		}
	}
	l.leases = p.LeaseEntries()
	return nil
}

// prune removes what a compaction leaves out: superseded records. Of a log without its first
// entries, deletions stay: they decide about records of the files.
func (l *logged) prune(files *int64) error {
	mark := l.compacted
	if l.Inferred {
		mark = *files
	}
	var rec snapshot.Record
	latest := carve.NewTable(func(n int32) []byte {
		_ = l.Parse(l.byTree[n], &rec)
		return bytes.Clone(rec.Key)
	})
	drop := make([]bool, len(l.byTree))
	for n, one := range l.byTree {
		var rec snapshot.Record
		if err := l.Parse(one, &rec); err != nil {
			return err
		}
		if one.Main > mark {
			break
		}
		if before := latest.Replace(rec.Key, int32(n)); before >= 0 {
			drop[before] = true
		}
		if rec.Tombstone && !l.Inferred {
			drop[n] = true
		}
	}
	kept := l.byTree[:0]
	for n, one := range l.byTree {
		if !drop[n] {
			kept = append(kept, one)
		}
	}
	l.byTree = kept
	return nil
}

// errNotInferred is the error for files that do not tell enough about the end of the log.
var errNotInferred = errors.New("the first entries of the log are gone, and the files do not tell")

// infer writes the sure records of a log whose first entries are gone. The files are the
// database after the last entry in them; up to the last lost revision they are incomplete.
func (r *logReader) infer(ctx context.Context) error {
	l, log := r.l, r.log
	n, known := uint64(0), false
	if r.base != nil {
		n, known = r.base.index()
	}
	switch {
	case !known || r.CompactRevision == nil:
		return fmt.Errorf("%w their last entry or their compact revision", errNotInferred)
	case slices.ContainsFunc(r.base.gaps(), func(g bolt.Gap) bool { return g.To == nil }):
		return fmt.Errorf("%w their last revision", errNotInferred)
	case n < log.First || n > log.Last:
		return fmt.Errorf("%s ends with entry %d, and the log has the entries %d to %d", r.base.path, n, log.First,
			log.Last)
	case n > l.Last:
		return fmt.Errorf("%s ends with entry %d, and the log may have another entry %d", r.base.path, n, n)
	case len(r.base.other["alarm"]) > 0 || slices.ContainsFunc(r.base.other["auth"], func(el bolt.Element) bool {
		return string(el.Key) == "authEnabled" && bytes.Equal(el.Value, []byte{1})
	}):
		return errors.New("authentication is enabled, or an alarm is raised")
	}
	l.Last = n
	db := infer.Database{Revision: max(r.base.last, r.base.compacted), Compacted: r.lowest, Partial: true,
		Leases: map[int64]bool{}, Each: func(fn func(*infer.Record) error) error { return r.each(ctx, fn) }}
	for _, el := range r.base.other[mvcc.LeaseBucket] {
		if l, err := mvcc.ParseLease(el.Value); err == nil {
			db.Leases[l.ID] = true
		}
	}
	sol, err := infer.Solve(ctx, log, n, db)
	if err != nil {
		return err
	}
	l.flagged, l.renumbered = sol.Flagged, map[int64]bool{}
	return sol.Each(ctx, func(w *infer.Write) error {
		rec := snapshot.Record{Revision: snapshot.Revision{Main: w.Main, Sub: w.Sub}, Tombstone: w.Tombstone,
			Key: w.Key, Value: w.Value, Lease: w.Lease}
		if !w.Tombstone {
			rec.CreateRevision, rec.ModRevision, rec.Version = w.Create, w.Main, w.Version
		}
		have, is, err := r.at(&rec)
		switch {
		case err != nil:
			return err
		case is && !bytes.Equal(have.Key, rec.Key):
			r.differ++
		case is:
			r.same++
		}
		switch {
		case is: // the files know the numbers
			rec.CreateRevision, rec.Version = have.CreateRevision, have.Version
		case !rec.Tombstone && rec.Version == 0:
			rec.CreateRevision, rec.Version, l.renumbered[r.size] = w.Main, 1, true
		}
		return r.add(&rec)
	})
}

// each calls fn with the sure records above the compact revision, for an inference.
func (r *logReader) each(ctx context.Context, fn func(*infer.Record) error) error {
	latest := r.newTable()
	var rec snapshot.Record
	for n, p := range r.pieces {
		if err := r.parse(p, &rec); err != nil {
			return err
		}
		if p.Main > r.lowest {
			latest.Replace(rec.Key, int32(n))
		}
	}
	for n, p := range r.pieces {
		if p.unsure || p.Main <= *r.CompactRevision || p.Main > max(r.base.last, r.base.compacted) {
			continue
		}
		if err := cmp.Or(ctx.Err(), r.parse(p, &rec)); err != nil {
			return err
		}
		err := fn(&infer.Record{Main: rec.Revision.Main, Sub: rec.Revision.Sub, Key: rec.Key, Value: rec.Value,
			Tombstone: rec.Tombstone, Create: rec.CreateRevision, Version: rec.Version,
			Live: !rec.Tombstone && latest.Get(rec.Key) == int32(n)})
		if err != nil {
			return err
		}
	}
	return nil
}

// at returns the record of the files at the revision of a write.
func (r *logReader) at(w *snapshot.Record) (rec snapshot.Record, is bool, err error) {
	n, _ := slices.BinarySearchFunc(r.pieces, w.Revision.Main, func(p piece, main int64) int {
		return cmp.Compare(p.Main, main)
	})
	for ; n < len(r.pieces) && r.pieces[n].Main == w.Revision.Main; n++ {
		if err := r.parse(r.pieces[n], &rec); err != nil {
			return rec, false, err
		}
		if rec.Revision == w.Revision && rec.Tombstone == w.Tombstone {
			return rec, true, nil
		}
	}
	return rec, false, nil
}
