package salvage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/carve"
	"github.com/etcdshift/etcdshift/snapshot/internal/member"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// UnusedLog is a log with entries that neither the files nor the used log may have.
type UnusedLog struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// addLog adds the log of one of some folders: the one with the most committed entries among those
// that begin with an empty store, or else among the others.
func (r *Remains) addLog(ctx context.Context, cfg snapshot.Config, folders []string) (err error) {
	type candidate struct {
		folder string
		log    *wal.Log
		known  uint64
	}
	var all []candidate
	skip := func(folder string, log *wal.Log, why error) {
		r.warnings = append(r.warnings, fmt.Sprintf("the log in %s is not used: %v", folder, why))
		if log == nil || log.Damage != nil || !hasAll(r.files, log) {
			r.UnusedLogs = append(r.UnusedLogs, UnusedLog{folder, why.Error()})
		}
	}
	for _, folder := range folders {
		log, bad := wal.ScanSound(ctx, folder, 0)
		known := uint64(0)
		if bad == nil {
			known, bad = lastKnown(ctx, r.files, log)
		}
		if bad != nil {
			err = cmp.Or(err, wal.Unusable(bad))
			skip(folder, nil, bad)
			continue
		}
		all = append(all, candidate{folder, log, known})
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if isWhole(a.log) != isWhole(b.log) {
			return map[bool]int{true: -1, false: 1}[isWhole(a.log)]
		}
		return cmp.Or(cmp.Compare(b.known, a.known), cmp.Compare(b.log.Last, a.log.Last))
	})
	for i, c := range all {
		l := &logged{Log: Log{Path: c.folder, First: max(c.log.First, 1), Last: c.known,
			Inferred: !isWhole(c.log)}}
		bad := (&logReader{Remains: r, l: l, log: c.log}).use(ctx, cfg)
		if bad == nil {
			for _, other := range all[i+1:] {
				if n := other.log.Last; n > l.Last && !hasAll(r.files, other.log) {
					skip(other.folder, other.log, fmt.Errorf("the log in %s has more committed entries, but not "+
						"the last %d entries", c.folder, n-l.Last))
				}
			}
		}
		if bad == nil || errors.Is(bad, context.Canceled) || errors.Is(bad, errOtherLog) {
			return bad
		}
		err = cmp.Or(err, bad)
		skip(c.folder, c.log, bad)
	}
	if cfg.LogDir != "" {
		return err
	}
	return nil
}

// isWhole reports whether a log begins with an empty store.
func isWhole(log *wal.Log) bool { return log.First <= 1 && log.Restored == 0 }

// lastKnown returns the last entry of a log that is known to be committed: the log knows it, or it
// is the last entry of a file. A lone voter commits all entries.
//
// Logs with an entry of the same index and term are equal up to this entry (the Raft paper, 5.3).
// If the term is unknown, the file is taken for one of this log; but not if the log is damaged: its
// entries may be replaced ones, and the later ones are lost.
func lastKnown(ctx context.Context, files []*ruin, log *wal.Log) (uint64, error) {
	from, terms := log.Last, map[uint64]uint64{} // of the last entries of the files
	for _, f := range files {
		if n, known := f.index(); known && n <= log.Last && n+1 >= log.First {
			from, terms[n] = min(from, n), 0
		}
	}
	members := uint64(0) // the last entry that changes members
	err := log.Each(ctx, from, log.Last, func(e wal.Entry) error {
		if _, is := terms[e.Index]; is {
			terms[e.Index] = e.Term
		}
		if e.Conf {
			members = e.Index
		}
		return nil
	})
	last := log.Commit
	for _, f := range files {
		n, known := f.index()
		if _, is := terms[n]; !known || !is {
			continue
		}
		term, _ := mvcc.ParseNumber(f.meta["term"])
		if term != 0 && terms[n] != 0 && term != terms[n] || log.Damage != nil && (term == 0 || terms[n] == 0) {
			continue
		}
		last = max(last, n)
		ids := member.Voters(f.meta["confState"])
		if len(ids) == 1 && ids[0] == log.Node && members <= n && log.Damage == nil {
			last = log.Last
		}
	}
	return last, err
}

// index returns the last entry of the log that a file has.
func (f *ruin) index() (n uint64, known bool) {
	return mvcc.ParseNumber(f.meta["consistent_index"])
}

// hasAll reports whether one of some files has all entries of a log.
func hasAll(files []*ruin, log *wal.Log) bool {
	return slices.ContainsFunc(files, func(f *ruin) bool {
		n, known := f.index()
		return known && n >= log.Last
	})
}

// newest returns the highest revision in a file.
func (f *ruin) newest() int64 {
	rev := f.last
	if n := len(f.byBytes); n > 0 {
		rev = max(rev, f.byBytes[n-1].Main)
	}
	return rev
}

// errOtherLog is the error for a log with other records than the files.
var errOtherLog = finding.WithHint(errors.New("the log is of another cluster"),
	"give the log of a member of this cluster, or salvage the file without a log")

// checkCluster refuses the log of another cluster. Most records of the files, up to the last
// revision of the log, are in a log of their cluster. Without such records, the member of the log
// is one of the members in each file.
func (r *logReader) checkCluster() error {
	l := r.l
	for _, f := range r.files {
		if l.Inferred {
			break // compared with the sure writes
		}
		n, known := f.index()
		for i, list := range [][]carve.Found{f.byTree, f.byBytes} {
			for _, one := range list {
				if one.Main > l.last {
					if i == 0 && known && n <= l.Last {
						r.differ++
					}
					continue
				}
				at, is := slices.BinarySearchFunc(l.byTree, one, func(a, b carve.Found) int {
					return cmp.Or(cmp.Compare(a.Main, b.Main), bytes.Compare(l.ID(a), f.ID(b)))
				})
				if is && bytes.Equal(l.BytesOf(l.byTree[at]), f.BytesOf(one)) {
					r.same++
				} else {
					r.differ++
				}
			}
		}
	}
	if r.differ > r.same {
		return fmt.Errorf("%w: %s lacks %d records of the files, and has %d", errOtherLog, l.Path, r.differ, r.same)
	}
	if r.same > 0 {
		return nil
	}
	for _, f := range r.files {
		list := f.other["members"]
		if len(list) > 0 && !slices.ContainsFunc(list, func(el bolt.Element) bool {
			return string(el.Key) == strconv.FormatUint(r.log.Node, 16)
		}) {
			return fmt.Errorf("%w: %s is the log of member %x, which is no member in %s", errOtherLog, l.Path,
				r.log.Node, f.path)
		}
	}
	l.warnings = append(l.warnings, fmt.Sprintf("no record of the files is old enough to be in the log in %s: "+
		"make sure that it is a log of this cluster", l.Path))
	return nil
}
