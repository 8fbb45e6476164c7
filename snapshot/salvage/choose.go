package salvage

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// decides reports whether the log has all records with a revision, as far as they count.
func (l *logged) decides(main int64) bool { return l != nil && !l.Inferred && main <= l.last }

// byLog chooses the copy of the log. Other records are false, or a compaction removed them.
func (r *Remains) byLog(copies []piece) (one piece, is bool) {
	n := slices.IndexFunc(copies, r.isLogged)
	for _, c := range copies {
		if !c.tree || r.isLogged(c) {
			continue
		}
		switch {
		case n >= 0 && bytes.Equal(r.bytesOf(c), r.bytesOf(copies[n])):
		case n >= 0:
			r.damage(c, "it differs from the log; the form in the log is taken")
		case c.Main > r.log.compacted:
			r.damage(c, "it is not in the log; left out")
		}
	}
	if n < 0 {
		return one, false
	}
	r.name(copies, n)
	return copies[n], true
}

// byInference chooses among copies of a record; copy n is of a log without its first entries.
// Without a choice, the other copies decide.
func (r *Remains) byInference(copies []piece, n int) (one piece, is bool) {
	one = copies[n]
	inTree, differs := false, false
	for _, c := range copies {
		if !c.tree || r.isLogged(c) {
			continue
		}
		if inTree = true; !bytes.Equal(r.bytesOf(c), r.bytesOf(one)) {
			differs = true
			r.damage(c, "it differs from the log; the form in the log is taken")
		}
	}
	switch id := r.id(one); {
	case differs || one.Main > *r.CompactRevision:
	case id[len(id)-1] == mvcc.TombstoneMark: // an earlier record of the key does not count
		return one, true
	case inTree || !r.base.misses(id[:mvcc.RevisionKeySize]):
		return one, false
	default: // a write without a sure revision may be the last one
		one.unsure = r.log.flagged > 0
	}
	if !one.unsure {
		r.name(copies, n)
	}
	return one, true
}

// damage notes the damage of a record.
func (r *Remains) damage(c piece, why string) {
	var rec snapshot.Record
	_ = r.parse(c, &rec) // was parsed before
	r.Damaged = append(r.Damaged, DamagedRecord{string(rec.Key), rec.Revision.Main, why})
}

func (r *Remains) isLogged(c piece) bool { return r.log != nil && r.files[c.file] == r.log.ruin }

// name notes a record that only the log has.
func (r *Remains) name(copies []piece, n int) {
	if slices.ContainsFunc(copies, func(c piece) bool { return !r.isLogged(c) && r.counts(c) }) {
		return
	}
	var rec snapshot.Record
	_ = r.parse(copies[n], &rec) // was parsed before
	r.log.Added = append(r.log.Added, LoggedRecord{string(rec.Key), rec.Revision.Main, rec.Tombstone,
		r.log.renumbered[copies[n].At]})
}

// contents returns the other buckets of the output; other are those of the base.
func (l *logged) contents(other map[string][]bolt.Element) map[string][]bolt.Element {
	if l == nil || l.Inferred || !l.covers {
		return other
	}
	all := maps.Clone(other)
	if all == nil {
		all = map[string][]bolt.Element{}
	}
	all[mvcc.LeaseBucket] = l.leases
	meta := map[string][]byte{}
	for _, el := range all[mvcc.MetaBucket] {
		meta[string(el.Key)] = el.Value
	}
	meta["consistent_index"] = binary.BigEndian.AppendUint64(nil, l.Log.Last)
	meta["term"] = binary.BigEndian.AppendUint64(nil, l.term)
	all[mvcc.MetaBucket] = nil
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		all[mvcc.MetaBucket] = append(all[mvcc.MetaBucket], bolt.Element{Key: []byte(name), Value: meta[name]})
	}
	return all
}
