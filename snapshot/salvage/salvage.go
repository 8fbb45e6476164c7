// Package salvage finds the records that damaged files of a cluster still hold, with the log of a
// member, and writes them as a sound snapshot. It relieves package snapshot, which refuses damage.
//
// Invariants, each with a test:
//
//   - Damaged: a sure record of the output is a record of the cluster, and the report has every
//     known loss.
//   - WithLog: with a log that begins with an empty store, the output is the whole store.
//   - The files and the log are only read.
package salvage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/carve"
	"github.com/etcdshift/etcdshift/snapshot/internal/member"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Remains are the records that damaged files still hold: one file, or files of several members of
// one cluster.
//
// A record is sure if it is the state of the cluster: the tree of a file leads to the record, or
// its revision is above the compact revision, because every record above it counts. A record up to
// the compact revision that is found only by its bytes is unsure if the tree is unreadable where
// the record would be: the tree may have held the record, or a compaction had removed it. If the
// tree is readable there, a compaction has removed the record.
type Remains struct {
	Report

	files    []*ruin
	log      *logged // nil for none; one of files, unless it has no record
	base     *ruin   // with the highest compact revision
	pieces   []piece // sure and unsure ones, in revision order, one for each revision
	chosen   []bool  // the newest records of Unsure
	lowest   int64   // the compact revision of the output
	warnings []string
}

// Report describes Remains.
type Report struct {
	Files []File `json:"files"`
	// CompactRevision is the compact revision of the cluster, 0 for none; absent if no file tells.
	CompactRevision *int64  `json:"compactRevision,omitempty"`
	LastRevision    int64   `json:"lastRevision"`  // highest revision of a sure record
	Sure            int     `json:"sure"`          // sure records
	LostRevisions   int64   `json:"lostRevisions"` // number of revisions above the compact revision without a record
	Lost            []Range `json:"lost"`          // lost revisions
	// Gaps are the revisions with records in unreadable places of the tree. Up to the compact
	// revision a compaction had removed most of them; above it a transaction may have had more
	// records than were found.
	Gaps    []Range         `json:"gaps"`
	Unsure  []UnsureKey     `json:"unsure"`  // keys without a sure record, by key
	Damaged []DamagedRecord `json:"damaged"` // records with known damage, by revision
	// Entries are the entries of other buckets that no server reads; they are left out.
	Entries    []string    `json:"unreadableEntries"`
	Log        *Log        `json:"log,omitempty"`
	UnusedLogs []UnusedLog `json:"unusedLogs"`
}

// File is a damaged file.
type File struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Metas    int    `json:"metas"` // valid metas, of two
	Tree     string `json:"tree"`  // "meta" if a meta leads to it, "search" if its pages were searched for, or "none"
	Bad      int    `json:"unreadable"`
	ByTree   int    `json:"byTree"`  // records to which the tree leads
	ByBytes  int    `json:"byBytes"` // other records, found by their bytes
	Revision int64  `json:"revision"`
}

// Range is a range of revisions, both included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// UnsureKey is a key that may have been deleted before the compact revision.
type UnsureKey struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"` // of its newest record
}

// DamagedRecord is a record with known damage. Other damage of a value is unknown: no value has a
// checksum.
type DamagedRecord struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
	Why      string `json:"why"`
}

// Errors of Salvage.
var (
	// ErrNothingLeft is returned for files without any record.
	ErrNothingLeft = errors.New("no record was found")
	// ErrTwoHistories is returned for files with different records at one revision.
	ErrTwoHistories = finding.WithHint(errors.New("the files have different records at one revision"),
		"the files are not of one cluster, or one of the two records is damaged: salvage each file alone")
)

// ruin is a damaged file.
type ruin struct {
	*snapshot.Mapped // nil for a log without records
	carve.Carver
	path        string
	tree        *bolt.Ruin
	meta        map[string][]byte
	other       map[string][]bolt.Element // entries of other buckets
	unread      []string                  // entries that no server reads
	byTree      []carve.Found
	byBytes     []carve.Found
	damaged     []DamagedRecord
	compacted   int64 // -1 if unknown
	last, empty int64 // highest revision by the tree; of the last record without a key
}

// piece is a record of Remains.
type piece struct {
	carve.Found
	file   uint16
	tree   bool // the tree leads to the record
	unsure bool
}

// maxRuins is the maximum number of files of one cluster.
const maxRuins = 64

// Open reads damaged files, compressed or not, or data directories: their databases and one
// of their logs. cfg.LogDir is the log, or the data directory with the log, of other files. Neither
// digest nor size need be right. The files are only read.
//
// The log decides: a record that only the log has is added, and a key that the log deletes is gone.
func Open(ctx context.Context, paths []string, cfg snapshot.Config) (_ *Remains, err error) {
	if len(paths) > maxRuins {
		return nil, fmt.Errorf("%d files: more than a cluster has members", len(paths))
	}
	r := &Remains{Report: Report{UnusedLogs: []UnusedLog{}}}
	var logs []string
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	for _, path := range paths {
		name := path
		if d, is := member.Find(path); is {
			name = d.Database
			logs = append(logs, d.Log)
		}
		one, err := openRuin(ctx, path, name, cfg)
		if err != nil {
			return nil, err
		}
		r.files = append(r.files, one)
		if err := one.Read(func() error { return one.survey(ctx) }); err != nil {
			return nil, err
		}
	}
	if cfg.LogDir != "" {
		d, is := member.Find(cfg.LogDir)
		if !is {
			d.Log = cfg.LogDir
		}
		logs = []string{d.Log}
	}
	return r, r.Guard(func() error {
		err := r.unite(ctx)
		if err != nil && !(errors.Is(err, ErrNothingLeft) && len(logs) > 0) {
			return err
		}
		return cmp.Or(r.addLog(ctx, cfg, logs), r.isEmpty())
	})
}

// openRuin maps the file at path, or the database of the data directory at path.
func openRuin(ctx context.Context, path, database string, cfg snapshot.Config) (*ruin, error) {
	if database != path {
		f, err := member.OpenDatabase(database)
		if err != nil {
			return nil, &snapshot.FileError{Path: path, Err: err}
		}
		cfg.File, cfg.KeepFile = f, false
	}
	m, err := snapshot.Map(ctx, path, cfg)
	if err != nil {
		return nil, err
	}
	return &ruin{Mapped: m, path: path, compacted: -1}, nil
}

// Guard runs fn within the Guard of all files.
func (r *Remains) Guard(fn func() error) error {
	for _, f := range r.files {
		inner := fn
		fn = func() error { return f.Guard(inner) }
	}
	return fn()
}

// Warnings returns the warnings about all files.
func (r *Remains) Warnings() (all []string) {
	all = slices.Clone(r.warnings)
	for _, f := range r.files {
		all = append(all, f.Warnings()...)
	}
	if r.log != nil {
		all = append(all, r.log.warnings...)
	}
	return all
}

// Close closes the files.
func (r *Remains) Close() (err error) {
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// survey reads the tree of a file, and searches all its bytes for records.
func (f *ruin) survey(ctx context.Context) (err error) {
	f.meta, f.other = map[string][]byte{}, map[string][]bolt.Element{}
	f.Carver = carve.Carver{Data: f.Bytes(), PageSize: 1, Last: mvcc.MaxRevision}
	index := func(k, v []byte) uint64 {
		if string(k) != "consistent_index" {
			return 0
		}
		n, _ := mvcc.ParseNumber(v)
		return n
	}
	if f.tree, err = bolt.ReadRuin(ctx, f.Bytes(), index, f.entry); err != nil {
		return err
	}
	f.PageSize = int64(f.tree.PageSize)
	if b := f.tree.Bucket(mvcc.MetaBucket); b != nil && len(b.Gaps) == 0 && len(f.meta) > 0 {
		f.compacted = 0
		for _, name := range []string{mvcc.FinishedCompact, mvcc.ScheduledCompact} {
			if rev, _, err := mvcc.ParseRevisionKey(f.meta[name]); err == nil {
				f.compacted = max(f.compacted, rev.Main)
			}
		}
	}
	f.byTree = f.Sorted(f.byTree)
	all, err := f.FindAll(ctx, f.Parallel, []bolt.Span{{To: int64(len(f.Bytes()))}})
	if err != nil {
		return err
	}
	f.byBytes = slices.DeleteFunc(all, func(one carve.Found) bool {
		n, has := slices.BinarySearchFunc(f.byTree, one, func(a, b carve.Found) int {
			return cmp.Or(cmp.Compare(a.Main, b.Main), bytes.Compare(f.ID(a), f.ID(b)))
		})
		same := has && bytes.Equal(f.BytesOf(f.byTree[n]), f.BytesOf(one))
		if same {
			f.byTree[n].Copies = one.Copies
		}
		return same
	})
	return nil
}

// describe returns the facts of a file.
func (f *ruin) describe() File {
	d := File{Path: f.path, Bytes: f.Size(), Metas: f.tree.Metas, Tree: "meta", Bad: f.tree.Bad,
		ByTree: len(f.byTree), ByBytes: len(f.byBytes), Revision: f.last}
	switch {
	case f.tree.Root == 0:
		d.Tree = "none"
	case f.tree.Searched:
		d.Tree = "search"
	}
	return d
}

// entry takes an entry of the tree.
func (f *ruin) entry(bucket string, at int64, k, v []byte) bool {
	if bucket != "key" {
		if err := mvcc.CheckEntry(bucket, k, v); err != nil && !errors.Is(err, mvcc.ErrOdd) {
			f.unread = append(f.unread, err.Error())
			return bucket != mvcc.MetaBucket
		}
		if bucket == mvcc.MetaBucket {
			f.meta[string(k)] = v
		}
		f.other[bucket] = append(f.other[bucket], bolt.Element{Key: k, Value: v})
		return true
	}
	var rec snapshot.Record
	if mvcc.ParseRecord(k, v, &rec) != nil || rec.Revision.Main < 1 || rec.Revision.Main > mvcc.MaxRevision {
		return false
	}
	if len(v) == 0 && !rec.Tombstone { // of --bump-revision
		f.last, f.empty = max(f.last, rec.Revision.Main), rec.Revision.Main
		return true
	}
	if mvcc.Follows(nil, &rec) != nil || len(k)+len(v) > carve.MaxSize {
		return false
	}
	if f.last = max(f.last, rec.Revision.Main); f.IsZeroed(at, at+int64(len(k)+len(v))) {
		f.damaged = append(f.damaged, DamagedRecord{string(rec.Key), rec.Revision.Main,
			"a part of it is zeroed; left out"})
		return false
	}
	f.byTree = append(f.byTree, carve.Found{Main: rec.Revision.Main, At: at, Size: uint32(len(k) + len(v)), Copies: 1})
	return true
}

// gaps returns the gaps in the records of the tree; without a tree everything is a gap.
func (f *ruin) gaps() []bolt.Gap {
	if b := f.tree.Bucket("key"); b != nil {
		return b.Gaps
	}
	return []bolt.Gap{{}}
}

// misses reports whether the tree is unreadable where a record would be.
func (f *ruin) misses(key []byte) bool {
	gaps := f.gaps()
	i, _ := slices.BinarySearchFunc(gaps, key, func(g bolt.Gap, key []byte) int {
		switch {
		case g.To != nil && bytes.Compare(g.To, key) <= 0:
			return -1
		case bytes.Compare(g.From, key) > 0:
			return 1
		}
		return 0
	})
	return i < len(gaps) && gaps[i].Contains(key)
}

// revisionsOf returns the revisions of a gap from 1 on.
func revisionsOf(g bolt.Gap) Range {
	r := Range{1, math.MaxInt64}
	if len(g.From) >= 8 {
		r.From = max(1, int64(binary.BigEndian.Uint64(g.From)&math.MaxInt64))
	}
	if len(g.To) >= 8 {
		r.To = int64(binary.BigEndian.Uint64(g.To) & math.MaxInt64)
		if len(g.To) < mvcc.RevisionKeySize || binary.BigEndian.Uint64(g.To[9:]) == 0 {
			r.To--
		}
	}
	return r
}
