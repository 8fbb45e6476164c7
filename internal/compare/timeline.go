package compare

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Happening is the kind of an event.
type Happening string

// The kinds of events.
const (
	Began  Happening = "created"
	Wrote  Happening = "updated"
	Ended  Happening = "deleted"
	Lost   Happening = "gone" // deleted in a gap
	Unkept Happening = "gap"  // revisions that no snapshot keeps complete
)

// Event is a write of a key, or a gap.
type Event struct {
	What           Happening `json:"what"`
	Revision       int64     `json:"revision,omitempty"` // absent for gone and gap
	Sub            int64     `json:"sub,omitempty"`      // position among several writes of one transaction
	From           int64     `json:"from,omitempty"`     // first revision of the gap, for gone and gap; To is the last
	To             int64     `json:"to,omitempty"`
	*Subject                 // absent for a gap
	Version        int64     `json:"version,omitempty"` // number of writes since createRevision
	CreateRevision int64     `json:"createRevision,omitempty"`
	Bytes          int       `json:"bytes,omitempty"` // as stored
	Time           *Bracket  `json:"time,omitempty"`  // approximate time; absent if unknown
	// the newest entries of managedFields: not always of this write
	Managers []Writer `json:"managers,omitempty"`
	// Conflict is set if another snapshot has a different record here: their clusters diverged.
	Conflict bool   `json:"conflict,omitempty"`
	FreePage bool   `json:"freePage,omitempty"` // only free pages have the record: a compaction removed it
	Note     string `json:"note,omitempty"`     // why labels and managers are unknown

	unread bool
}

// Timeline yields the writes of all keys over snapshots of one cluster, in order.
type Timeline struct {
	Sides       []*inspect.Reader   // see Sort
	Want        func(keys.Key) bool // chooses objects; nil for all keys, also outside objects
	Labels      labels.Selector     // objects with these labels at their last write; nil for all
	Manager     string              // writes with this manager among the newest, without deletions; "" for all
	First, Last int64               // revisions
	All         bool                // nothing is noise
	Clock       *Clock              // a clock with the times of the snapshots

	Folded int // number of noise writes
	Unread int // yielded writes of undecodable or encrypted objects

	kept   [][2]int64      // see History
	gaps   [][2]int64      // by revision
	chosen map[string]bool // keys with the labels
	heads  native.Heads
}

// Events yields the events, by revision. Memory holds the keys chosen by Labels.
func (t *Timeline) Events(ctx context.Context) iter.Seq2[*Event, error] {
	return stream.Of(func(yield func(*Event) error) error {
		records := make([]iter.Seq2[*snapshot.Record, error], 0, len(t.Sides))
		for _, s := range t.Sides {
			oldest, newest, err := s.Snapshot().Kept(ctx)
			if err != nil {
				return err
			}
			t.kept, records = append(t.kept, [2]int64{oldest, newest}), append(records, s.Snapshot().Records(ctx))
		}
		t.gaps, t.chosen, t.heads = gaps(t.kept), map[string]bool{}, native.Heads{}
		begun := 0 // number of yielded gaps
		pass := func(revision int64) error {
			for ; begun < len(t.gaps) && t.gaps[begun][0] <= revision; begun++ {
				if err := t.gap(ctx, t.gaps[begun], yield); err != nil {
					return err
				}
			}
			return nil
		}
		err := stream.Each(merged(records), func(rec sourced) error {
			if len(rec.Key) == 0 {
				return nil
			}
			if err := pass(rec.Revision.Main); err != nil {
				return err
			}
			e, err := t.event(ctx, rec)
			if e == nil || err != nil {
				return err
			}
			return yield(e)
		})
		return cmp.Or(err, pass(math.MaxInt64))
	})
}

// gaps returns the revisions, from 2, at which no snapshot keeps all records: each snapshot has all
// records after its first revision.
func gaps(kept [][2]int64) (out [][2]int64) {
	kept = slices.Clone(kept)
	slices.SortFunc(kept, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	reach := int64(1)
	for _, k := range kept {
		if k[0] > reach {
			out = append(out, [2]int64{reach + 1, k[0]})
		}
		reach = max(reach, k[1])
	}
	return out
}

// gap yields a gap, and the objects deleted in the gap.
func (t *Timeline) gap(ctx context.Context, gap [2]int64, yield func(*Event) error) error {
	if gap[1] < t.First || gap[0] > t.Last {
		return nil
	}
	if err := yield(&Event{What: Unkept, From: gap[0], To: gap[1]}); err != nil || t.Manager != "" {
		return err
	}
	before := slices.IndexFunc(t.kept, func(k [2]int64) bool { return k[1] == gap[0]-1 })
	after := slices.IndexFunc(t.kept, func(k [2]int64) bool { return k[0] == gap[1] })
	if before < 0 {
		return nil
	}
	same, err := sameLives(ctx, t.Sides[after].Snapshot(), gap)
	if err != nil {
		return err
	}
	return stream.Each(t.Sides[before].Snapshot().Live(ctx, nil), func(rec *snapshot.Record) error {
		if same[string(rec.Key)] {
			return nil
		}
		subject, _, err := t.subject(ctx, rec.Key, before)
		if subject == nil || err != nil || t.Labels != nil && !t.chosen[string(rec.Key)] {
			return err
		}
		return yield(&Event{What: Lost, From: gap[0], To: gap[1], Subject: subject})
	})
}

// sameLives returns the keys that were created before a gap and not deleted in it, by the snapshot
// after the gap. A deletion at the end of the gap is a record. One pass covers all keys.
func sameLives(ctx context.Context, later *snapshot.Snapshot, gap [2]int64) (map[string]bool, error) {
	keys := map[string]bool{}
	return keys, stream.Each(later.Records(ctx), func(rec *snapshot.Record) error {
		if rec.Tombstone && rec.Revision.Main >= gap[0] && rec.Revision.Main <= gap[1] ||
			!rec.Tombstone && !rec.FreePage && rec.CreateRevision < gap[0] {
			keys[string(rec.Key)] = true
		}
		return nil
	})
}

// event returns the event of a record; nil if it is not chosen.
func (t *Timeline) event(ctx context.Context, rec sourced) (*Event, error) {
	source, inside := rec.sources[0], rec.Revision.Main >= t.First && rec.Revision.Main <= t.Last
	if !inside && (t.Labels == nil || rec.Revision.Main > t.Last) {
		return nil, nil
	}
	subject, key, err := t.subject(ctx, rec.Key, source)
	if subject == nil || err != nil {
		return nil, err
	}
	e := &Event{
		What: Ended, Revision: rec.Revision.Main, Sub: rec.Revision.Sub, Subject: subject, Version: rec.Version,
		CreateRevision: rec.CreateRevision, Bytes: len(rec.Value), Conflict: rec.conflict,
		FreePage: rec.FreePage,
	}
	switch {
	case rec.Tombstone:
	case rec.Version == 1:
		e.What = Began
	default:
		e.What = Wrote
	}
	renewal := e.Resource == "leases.coordination.k8s.io" && e.What == Wrote
	noise, all := inside && !t.All && (renewal || isNoise(rec.Key, key)), t.Labels == nil && t.Manager == ""
	if !noise || !all { // otherwise the value is not needed
		if chosen, err := t.chooses(ctx, e, rec); !chosen || !inside || err != nil {
			return nil, err
		}
	}
	if noise {
		t.Folded++
		return nil, nil
	}
	if e.unread {
		t.Unread++
	}
	if t.Clock != nil {
		e.Time = t.Clock.At(e.Revision)
	}
	return e, nil
}

// subject returns the object of a key, nil if it is not chosen, and the parts of the key.
func (t *Timeline) subject(ctx context.Context, key []byte, source int) (*Subject, keys.Key, error) {
	side := t.Sides[source]
	if sees, err := side.Sees(ctx, key); !sees {
		return nil, keys.Key{}, err
	}
	layouts, err := side.Layouts(ctx)
	if err != nil {
		return nil, keys.Key{}, err
	}
	k, _, err := layouts.Parse(key)
	if err != nil {
		k = keys.Key{}
	}
	if t.Want != nil && (err != nil || !t.Want(k)) {
		return nil, k, nil
	}
	s := NewSubject(key, k)
	return &s, k, nil
}

// chooses reports whether labels and managers choose an event, and sets its Managers. Unreadable
// values are always chosen.
func (t *Timeline) chooses(ctx context.Context, e *Event, rec sourced) (bool, error) {
	if rec.Tombstone {
		chosen := t.Labels == nil || t.chosen[string(rec.Key)]
		delete(t.chosen, string(rec.Key))
		return chosen && t.Manager == "", nil
	}
	entry, err := t.Sides[rec.sources[0]].Entry(ctx, &rec.Record)
	if err != nil {
		return false, err
	}
	object, note := t.head(entry)
	if e.Resource != "" {
		e.Note, _, _ = strings.Cut(note, ";")
	}
	if object == nil {
		e.unread = e.Resource != ""
		if t.Labels != nil && e.Resource != "" {
			t.chosen[string(rec.Key)] = true
		}
		return e.Resource != "" || t.Labels == nil && t.Manager == "", nil
	}
	if t.Labels != nil {
		if !t.Labels.Matches(labels.Set(object.GetLabels())) {
			delete(t.chosen, string(rec.Key))
			return false, nil
		}
		t.chosen[string(rec.Key)] = true
	}
	e.Managers = newest(managers(object))
	return t.Manager == "" || slices.ContainsFunc(e.Managers, func(w Writer) bool { return w.Manager == t.Manager }),
		nil
}

// head returns the object in an entry, with at least its labels and managers; nil and the reason if
// the object is unreadable. The whole object is decoded only if the protobuf heads do not suffice.
func (t *Timeline) head(e *inspect.Entry) (object metav1.Object, note string) {
	if e.Undecryptable == nil {
		if v, err := e.ParseValue(); err == nil {
			if head := t.heads.Decode(v); head != nil {
				return head, ""
			}
		}
	}
	v := readEntry(e, nil) // no value is shown
	if v.content == nil {
		return nil, v.note
	}
	return v.object(), v.note
}
