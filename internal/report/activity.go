package report

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Activity lists times of creations, changes and deletions of objects, as far as known from the
// file.
type Activity struct {
	Width   int64  `json:"width"`   // length of a period, in seconds
	Periods []Span `json:"periods"` // without gaps, up to the newest time except for outliers
	Earlier Events `json:"earlier"` // before the periods
	Later   Events `json:"later"`   // after the periods: from wrong clocks
	Undated Events `json:"undated"` // without a known time
	// Sources counts created, changed and deleted objects by the source of their time.
	Sources []Source `json:"sources"`
	// Deletions are the latest deletions, newest first.
	Deletions []Deletion `json:"deletions"`
	Deleted   int        `json:"deleted"` // all tombstones in the file, including those not in Deletions
	// Written are the live objects with the most writes, then by key.
	Written []Written `json:"written"`
}

// Events counts changes of objects.
type Events struct {
	Created int `json:"created"` // live objects
	Changed int `json:"changed"` // live objects, at their last change
	Deleted int `json:"deleted"` // tombstones
}

func (e Events) total() int { return e.Created + e.Changed + e.Deleted }

func (e *Events) plus(other Events) {
	e.Created, e.Changed, e.Deleted = e.Created+other.Created, e.Changed+other.Changed, e.Deleted+other.Deleted
}

// Span is a period.
type Span struct {
	From time.Time `json:"from"`
	Events
}

// How is the source of an event's time.
type How string

// Sources of times.
const (
	ByCreation How = "creationTimestamp"
	ByManaged  How = "managedFields"
	ByRenewal  How = "renewTime or event time" // of Leases and Events
	ByRevision How = "revision"                // approximate: from objects written nearby
	ByNothing  How = "unknown"
)

// Source counts events by one source of their time.
type Source struct {
	How How `json:"how"`
	Events
}

// Deletion is a tombstone.
type Deletion struct {
	Key      string    `json:"key"`
	Revision int64     `json:"revision"`
	About    time.Time `json:"about,omitzero"` // from objects written nearby
}

// Written is a live object with its number of writes.
type Written struct {
	Key     string    `json:"key"`
	Writes  int64     `json:"writes"` // since its creation, as recorded in the file
	Kept    int       `json:"kept"`   // of these writes, in the file
	Created time.Time `json:"created,omitzero"`
}

// history collects Activity in one pass.
type history struct {
	Activity
	clock   compare.Clock
	events  histogram
	sources map[How]*Events
	// Revisions of changes and deletions without a time: 8 bytes each.
	changed, deleted []int64
}

func readActivity(ctx context.Context, r *inspect.Reader) (*Activity, error) {
	h := &history{sources: map[How]*Events{}, events: newHistogram()}
	h.Deletions, h.Written = []Deletion{}, []Written{}
	err := stream.Each(compare.Records(ctx, r), func(d *compare.Dated) error {
		h.clock.Add(d)
		sees, err := r.Sees(ctx, d.Key)
		if err == nil && sees && len(d.Key) > 0 {
			h.add(d)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	h.finish()
	return &h.Activity, h.countKept(ctx, r)
}

func (h *history) add(d *compare.Dated) {
	switch {
	case d.Tombstone:
		h.Deleted++
		h.deleted = append(h.deleted, d.Revision.Main)
		h.Deletions = append(h.Deletions, Deletion{Key: string(d.Key), Revision: d.Revision.Main})
		if len(h.Deletions) > 2*Most { // they arrive in order
			h.Deletions = append(h.Deletions[:0], h.Deletions[len(h.Deletions)-Most:]...)
		}
	case d.Live:
		h.addLive(d)
	}
}

func (h *history) addLive(d *compare.Dated) {
	h.rank(d)
	how := ByCreation
	if !plausible(d.Created) {
		how = ByNothing
	}
	h.count(how, d.Created, Events{Created: 1})
	switch {
	case d.Version == 1: // never changed
	case plausible(d.Written):
		h.count(ByRenewal, d.Written, Events{Changed: 1})
	case plausible(d.Managed) && d.Managed >= d.Created:
		h.count(ByManaged, d.Managed, Events{Changed: 1})
	default:
		h.changed = append(h.changed, d.ModRevision)
	}
}

// plausible reports whether a cluster can have a time, in Unix seconds.
func plausible(at int64) bool { return at > 0 && at < 1<<33 }

// count adds an event with the source of its time.
func (h *history) count(how How, at int64, e Events) {
	if h.sources[how] == nil {
		h.sources[how] = &Events{}
	}
	h.sources[how].plus(e)
	if how == ByNothing {
		h.Undated.plus(e)
	} else {
		h.events.add(at, e)
	}
}

// rank keeps the objects with the most writes; for equal numbers the first by key.
func (h *history) rank(d *compare.Dated) {
	if len(h.Written) == Most && d.Version < h.Written[Most-1].Writes || d.Version < 2 {
		return
	}
	w := Written{Key: string(d.Key), Writes: d.Version}
	if plausible(d.Created) {
		w.Created = time.Unix(d.Created, 0).UTC()
	}
	i, _ := slices.BinarySearchFunc(h.Written, w, func(a, b Written) int {
		return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.Key, b.Key))
	})
	h.Written = slices.Insert(h.Written, i, w)
	h.Written = h.Written[:min(len(h.Written), Most)]
}

// finish assigns times to revisions, and computes the periods.
func (h *history) finish() {
	for _, revision := range h.changed {
		h.countRevision(revision, Events{Changed: 1})
	}
	for _, revision := range h.deleted {
		h.countRevision(revision, Events{Deleted: 1})
	}
	h.Deletions = h.Deletions[max(0, len(h.Deletions)-Most):]
	slices.Reverse(h.Deletions)
	for i := range h.Deletions {
		if at := h.clock.At(h.Deletions[i].Revision); at != nil {
			h.Deletions[i].About = at.About
		}
	}
	h.Width, h.Periods, h.Earlier, h.Later = h.events.periods()
	h.Sources = []Source{}
	for _, how := range []How{ByCreation, ByManaged, ByRenewal, ByRevision, ByNothing} {
		if h.sources[how] != nil {
			h.Sources = append(h.Sources, Source{how, *h.sources[how]})
		}
	}
}

func (h *history) countRevision(revision int64, e Events) {
	if at := h.clock.At(revision); at != nil {
		h.count(ByRevision, at.About.Unix(), e)
	} else {
		h.count(ByNothing, 0, e)
	}
}

// countKept counts the writes of the ranked objects that the file keeps.
func (h *history) countKept(ctx context.Context, r *inspect.Reader) error {
	for i := range h.Written {
		w := &h.Written[i]
		for rec, err := range r.Snapshot().History(ctx, []byte(w.Key)) {
			switch {
			case err != nil:
				return err
			case rec.Tombstone: // later records belong to a new object with the same key
				w.Kept = 0
			case bytes.Equal(rec.Key, []byte(w.Key)):
				w.Kept++
			}
		}
	}
	return nil
}
