package compare

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// What is the kind of a step.
type What string

// The kinds of steps.
const (
	Created      What = "created"
	Updated      What = "updated"
	Deleted      What = "deleted"
	CreatedAgain What = "recreated" // created after a deletion
	Oldest       What = "oldest"    // the oldest stored record, if it is no creation: older records were compacted
	Gone         What = "gone"      // deleted at a revision that no snapshot keeps
)

// Step is the change of the key at one revision.
type Step struct {
	What           What     `json:"what"`
	Revision       int64    `json:"revision,omitempty"` // absent if no snapshot keeps it
	Sub            int64    `json:"sub,omitempty"`
	CreateRevision int64    `json:"createRevision,omitempty"`
	Version        int64    `json:"version,omitempty"`
	Lease          string   `json:"lease,omitempty"` // in hexadecimal
	Bytes          int      `json:"bytes,omitempty"` // as stored
	APIVersion     string   `json:"apiVersion,omitempty"`
	Kind           string   `json:"kind,omitempty"`
	UID            string   `json:"uid,omitempty"`
	Snapshots      []string `json:"snapshots,omitempty"` // with the record
	Sources        []int    `json:"-"`                   // indices of Snapshots
	Time           *Bracket `json:"time,omitempty"`      // approximate time; absent if unknown
	Writers        []Writer `json:"writers,omitempty"`
	Changes        []Change `json:"changes,omitempty"` // since the previous step
	Folded         int      `json:"folded,omitempty"`  // number of noise changes
	Missing        *Missing `json:"missing,omitempty"` // gap between the previous step and this one
	// Conflict is set if another snapshot has a different record here: their clusters diverged.
	Conflict bool   `json:"conflict,omitempty"`
	FreePage bool   `json:"freePage,omitempty"` // only free pages have the record: a compaction removed it
	Note     string `json:"note,omitempty"`     // why the value is compared by its bytes, or is undecodable
}

// Missing is the gap before a step.
type Missing struct {
	From    int64 `json:"from"` // revisions before and after the gap
	To      int64 `json:"to"`
	Updates int64 `json:"updates,omitempty"` // minimum, by the version numbers
	Deleted bool  `json:"deleted,omitempty"` // deleted in the gap
	Created int64 `json:"created,omitempty"` // revision of a creation in the gap; 0 for none
	// nothing is known: the key may have been deleted and created any number of times
	Perhaps bool `json:"perhaps,omitempty"`
}

// History yields the steps of a key, oldest first. sides are snapshots of one cluster, see Sort.
func History(ctx context.Context, sides []*inspect.Reader, key []byte, o Options) iter.Seq2[*Step, error] {
	return stream.Of(func(yield func(*Step) error) error {
		t := historyReader{sides: sides, options: o, hide: o.hiding(ctx, sides...)}
		for _, s := range sides {
			oldest, newest, err := s.Snapshot().Kept(ctx)
			if err != nil {
				return err
			}
			t.kept = append(t.kept, [2]int64{oldest, newest})
		}
		records := make([]iter.Seq2[*snapshot.Record, error], 0, len(sides))
		for _, s := range sides {
			records = append(records, s.Snapshot().History(ctx, key))
		}
		err := stream.Each(merged(records), func(rec sourced) error {
			step, err := t.step(ctx, rec)
			if err != nil {
				return err
			}
			return yield(step)
		})
		if err != nil {
			return err
		}
		step, err := t.missingStep(ctx, key)
		if step == nil {
			return err
		}
		return yield(step)
	})
}

// historyReader remembers the previous step.
type historyReader struct {
	sides   []*inspect.Reader
	options Options
	hide    func() (*redact.Shared, error)
	kept    [][2]int64 // complete revision range of each of sides
	before  *Step
	last    value // before a deletion
}

// covers reports whether the snapshots have all records of the key between the last step and a
// revision. A snapshot with that step has all later records, up to its own last revision, unless
// the step is from a free page.
func (t *historyReader) covers(to int64) bool {
	at := t.seen()
	for moved := true; moved && at < to-1; {
		moved = false
		for _, k := range t.kept {
			if k[0] <= at && k[1] > at {
				at, moved = k[1], true
			}
		}
	}
	return at >= to-1
}

// seen returns the last revision of a snapshot with the previous step.
func (t *historyReader) seen() int64 {
	at := t.before.Revision
	for _, source := range t.before.Sources {
		if t.before.FreePage {
			break
		}
		at = max(at, t.kept[source][1])
	}
	return at
}

func (t *historyReader) step(ctx context.Context, rec sourced) (*Step, error) {
	s := &Step{
		What: Deleted, Revision: rec.Revision.Main, Sub: rec.Revision.Sub, CreateRevision: rec.CreateRevision,
		Version: rec.Version,
		Lease:   leaseID(rec.Lease), Bytes: len(rec.Value), Sources: rec.sources, Conflict: rec.conflict,
		FreePage: rec.FreePage,
	}
	for _, source := range rec.sources {
		s.Snapshots = append(s.Snapshots, t.sides[source].Snapshot().Path())
	}
	if t.options.Clock != nil {
		s.Time = t.options.Clock.At(s.Revision)
	}
	if !rec.Tombstone {
		s.What = t.put(rec.Record)
	}
	s.Missing = t.missing(s)
	if s.What != Deleted {
		if err := t.value(ctx, s, rec); err != nil {
			return nil, err
		}
	}
	t.before = s
	return s, nil
}

func (t *historyReader) value(ctx context.Context, s *Step, rec sourced) error {
	hide, err := t.hide()
	if err != nil {
		return err
	}
	v, err := read(ctx, t.sides[rec.sources[0]], &rec.Record, hide)
	if err != nil {
		return err
	}
	object := v.object()
	s.APIVersion, s.Kind, s.UID, s.Note = object.GetAPIVersion(), object.GetKind(), string(object.GetUID()), v.note
	if t.before != nil && (t.before.What != Deleted || t.last.content != nil) {
		s.Changes, s.Folded = t.last.diff(v, t.options.All, false)
	}
	s.Writers = writers(t.last, v, s.What)
	t.last = v
	return nil
}

func (t *historyReader) put(rec snapshot.Record) What {
	b := t.before
	switch {
	case b == nil && rec.Version == 1:
		return Created
	case b == nil:
		return Oldest
	case b.What == Deleted, b.CreateRevision != rec.CreateRevision:
		return CreatedAgain
	}
	return Updated
}

func (t *historyReader) missing(s *Step) *Missing {
	b := t.before
	m := &Missing{To: s.Revision}
	if b != nil {
		m.From = b.Revision
	}
	m.Perhaps = b != nil && !t.covers(m.To)
	switch {
	case b == nil && s.What != Oldest:
		return nil
	case b == nil:
		m.Created, m.Updates = s.CreateRevision, s.Version-2
	case s.What == Updated: // version numbers count without gaps
		m.Updates, m.Perhaps = s.Version-b.Version-1, false
	case s.What == CreatedAgain:
		m.Deleted = b.What != Deleted
		if s.Version > 1 {
			m.Created, m.Updates = s.CreateRevision, s.Version-2
		}
	}
	if m.Updates = max(m.Updates, 0); m.Updates == 0 && !m.Deleted && m.Created == 0 && !m.Perhaps {
		return nil
	}
	return m
}

// missingStep returns the step of a key that the last snapshot lacks without a record of its
// deletion.
func (t *historyReader) missingStep(ctx context.Context, key []byte) (*Step, error) {
	if t.before == nil || t.before.What == Deleted {
		return nil, nil
	}
	last := len(t.sides) - 1
	rec, err := t.sides[last].Snapshot().Get(ctx, key)
	if rec != nil || err != nil {
		return nil, err
	}
	return &Step{What: Gone, Missing: &Missing{From: t.seen(), To: t.kept[last][0] + 1, Deleted: true, Perhaps: true}},
		nil
}

// sourced is a record with the indices of its snapshots.
type sourced struct {
	snapshot.Record
	sources  []int
	conflict bool
}

// merged yields the records of several snapshots in revision order, without duplicates.
func merged(records []iter.Seq2[*snapshot.Record, error]) iter.Seq2[sourced, error] {
	return stream.Of(func(yield func(sourced) error) error {
		queues := make([]queue, len(records))
		for i, of := range records {
			next, stop := iter.Pull2(faulting(of))
			defer stop()
			queues[i].next = next
			if err := queues[i].advance(); err != nil {
				return err
			}
		}
		for {
			var first *snapshot.Record
			for _, q := range queues {
				if q.head != nil && (first == nil || q.head.Revision.Compare(first.Revision) < 0) {
					first = q.head
				}
			}
			if first == nil {
				return nil
			}
			records, err := takeRevision(queues, first.Revision)
			for _, rec := range records {
				if stopped := yield(rec); stopped != nil {
					return stopped
				}
			}
			if err != nil {
				return err
			}
		}
	})
}

// faulting turns faults of the mapped file into panics, which iter.Pull2 passes from its own
// goroutine to the caller.
func faulting[T any](records iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		records(yield)
	}
}

// takeRevision takes the records of a revision: several if the snapshots disagree. The sources of a
// kept record are the snapshots that keep it.
func takeRevision(queues []queue, at snapshot.Revision) (out []sourced, err error) {
	for i := range queues {
		head := queues[i].head
		if head == nil || head.Revision != at {
			continue
		}
		same := slices.IndexFunc(out, func(s sourced) bool {
			return s.Tombstone == head.Tombstone && s.Version == head.Version && bytes.Equal(s.Value, head.Value)
		})
		switch {
		case same < 0:
			out = append(out, sourced{Record: *head, sources: []int{i}})
		case out[same].FreePage && !head.FreePage:
			out[same].sources, out[same].FreePage = []int{i}, false
		case out[same].FreePage == head.FreePage:
			out[same].sources = append(out[same].sources, i)
		}
		err = cmp.Or(err, queues[i].advance())
	}
	for i := range out {
		out[i].conflict = len(out) > 1
	}
	return out, err
}

// queue holds the remaining records of a snapshot.
type queue struct {
	next func() (*snapshot.Record, error, bool)
	head *snapshot.Record // until advance; nil at the end
}

func (q *queue) advance() (err error) {
	q.head, err, _ = q.next()
	return err
}
