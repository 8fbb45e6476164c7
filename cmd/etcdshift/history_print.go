package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/differ"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/timeline"
)

// historyDocument is what history -o json prints before its list; input is the snapshot of the lowest revision.
type historyDocument struct {
	documentHead
	Snapshots []keptInput `json:"snapshots"` // by revision
	// SameCluster is "no" where two of the snapshots are of different clusters, "unknown" where that is not sure of two; absent of one.
	SameCluster compare.Same `json:"sameCluster,omitempty"`
	Key         string       `json:"key"`
	Resource    string       `json:"resource,omitempty"`
	Cluster     string       `json:"cluster,omitempty"`
	Namespace   string       `json:"namespace,omitempty"`
	Name        string       `json:"name,omitempty"`
}

// keptInput is a snapshot and the revisions that it keeps whole.
type keptInput struct {
	inputInfo
	Oldest int64 `json:"oldest"`
}

// historyTail is what it prints after the list.
type historyTail struct {
	Count int `json:"count"`
}

// historyRecord is one revision, as JSON.
type historyRecord struct {
	What           timeline.What     `json:"what"`
	Revision       int64             `json:"revision,omitempty"` // 0 for what no snapshot keeps the revision of
	Sub            int64             `json:"sub,omitempty"`
	CreateRevision int64             `json:"createRevision,omitempty"`
	Version        int64             `json:"version,omitempty"`
	Lease          string            `json:"lease,omitempty"` // in hexadecimal
	Bytes          int               `json:"bytes,omitempty"`
	APIVersion     string            `json:"apiVersion,omitempty"`
	Kind           string            `json:"kind,omitempty"`
	UID            string            `json:"uid,omitempty"`
	Snapshots      []string          `json:"snapshots,omitempty"` // that hold the record
	Time           *approximateTime  `json:"time,omitempty"`
	Writers        []timeline.Writer `json:"writers,omitempty"`
	Changes        []differ.Change   `json:"changes,omitempty"`
	Folded         int               `json:"folded,omitempty"` // changes that are noise
	Missing        *missingRecords   `json:"missing,omitempty"`
	Conflict       bool              `json:"conflict,omitempty"`
	Note           string            `json:"note,omitempty"`
}

// approximateTime is what is known of the time of a revision, in RFC 3339.
type approximateTime struct {
	About     string `json:"about"`
	NotBefore string `json:"notBefore,omitempty"`
	NotAfter  string `json:"notAfter,omitempty"`
}

// missingRecords is what no snapshot keeps, of the revisions after From and before To.
type missingRecords struct {
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Updates int64 `json:"updates,omitempty"`
	Deleted bool  `json:"deleted,omitempty"`
	Created int64 `json:"created,omitempty"` // the revision
	Perhaps bool  `json:"perhaps,omitempty"` // nothing is known of them
}

func (h *historian) printList(format string) (begin func() error, show func(*timeline.Step) error, end func() error) {
	list := render.NewList(h.c.App.Writer, format)
	count := 0
	begin = func() error {
		if format == "jsonl" {
			return nil
		}
		doc := historyDocument{SameCluster: h.same, Key: string(h.key), Cluster: h.place.Cluster, Namespace: h.place.Namespace, Name: h.place.Name}
		if h.place.Resource.Resource != "" {
			doc.Resource = h.place.Resource.String()
		}
		for _, f := range h.files {
			in, err := f.input(h.c.Context)
			if err != nil {
				return err
			}
			oldest, _, err := f.snapshot.Kept(h.c.Context)
			if err != nil {
				return err
			}
			doc.Snapshots = append(doc.Snapshots, keptInput{in, oldest})
		}
		doc.documentHead = document("History", doc.Snapshots[0].inputInfo)
		return list.Begin(doc, "revisions")
	}
	show = func(s *timeline.Step) error {
		count++
		return list.Add(h.record(s))
	}
	return begin, show, func() error { return list.End(historyTail{count}) }
}

func (h *historian) record(s *timeline.Step) historyRecord {
	object := s.Value.Object()
	r := historyRecord{
		What: s.What, Revision: s.Revision.Main, Sub: s.Revision.Sub, CreateRevision: s.CreateRevision, Version: s.Version, Bytes: s.Bytes,
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), UID: string(object.GetUID()),
		Writers: s.Writers, Changes: s.Changes, Folded: s.Folded, Conflict: s.Conflict, Note: s.Value.Note,
	}
	if s.Lease != 0 {
		r.Lease = fmt.Sprintf("%x", uint64(s.Lease))
	}
	for _, source := range s.Sources {
		r.Snapshots = append(r.Snapshots, h.files[source].snapshot.Path())
	}
	if b := h.clock.At(s.Revision.Main); s.Revision.Main > 0 && b.Known() {
		r.Time = &approximateTime{About: b.About.Format(time.RFC3339)}
		if !b.NotBefore.IsZero() {
			r.Time.NotBefore = b.NotBefore.Format(time.RFC3339)
		}
		if !b.NotAfter.IsZero() {
			r.Time.NotAfter = b.NotAfter.Format(time.RFC3339)
		}
	}
	if m := s.Missing; m != nil {
		r.Missing = &missingRecords{m.From, m.To, m.Updates, m.Deleted, m.Created, m.Perhaps}
	}
	return r
}

func (h *historian) printText() (begin func() error, show func(*timeline.Step) error, end func() error) {
	p := historyPage{render.NewPage(h.c.App.Writer), h}
	begin = func() error {
		if h.place.Resource.Resource != "" {
			p.Line(render.Bold, placeName(h.place))
		}
		p.Line(render.Plain, "key "+string(h.key))
		for _, f := range h.files {
			oldest, newest, err := f.snapshot.Kept(h.c.Context)
			if err != nil {
				return err
			}
			p.Line(render.Plain, fmt.Sprintf("%s keeps revisions %d to %d%s", f.snapshot.Path(), oldest, newest, during(h.clock.At(oldest), h.clock.At(newest))))
		}
		return nil
	}
	show = func(s *timeline.Step) error {
		p.Line(render.Plain, "")
		p.step(s)
		return nil
	}
	return begin, show, p.Flush
}

// during says which span of time two revisions enclose.
func during(oldest, newest timeline.Bracket) string {
	if !oldest.Known() || !newest.Known() {
		return ""
	}
	return fmt.Sprintf(", about %s to %s", oldest.About.Format(time.RFC3339), newest.About.Format(time.RFC3339))
}

// historyPage prints a history for people.
type historyPage struct {
	*render.Page
	h *historian
}

// step prints one step of a history.
func (p historyPage) step(s *timeline.Step) {
	if s.Missing != nil {
		p.Line(render.Cyan, "("+missingText(s)+")")
	}
	if s.What == timeline.Gone {
		p.Line(render.Red, "gone")
		return
	}
	colour, what := render.Bold, string(s.What)
	switch s.What {
	case timeline.Created, timeline.Recreated:
		colour = render.Green
	case timeline.Deleted:
		colour = render.Red
	case timeline.Oldest:
		what = "the oldest record kept"
	}
	head := fmt.Sprintf("revision %d: %s", s.Revision.Main, what)
	if s.What != timeline.Deleted {
		head += fmt.Sprintf(", version %d, %d bytes", s.Version, s.Bytes)
	}
	p.Line(colour, head)
	if t := timeText(p.h.clock.At(s.Revision.Main)); t != "" {
		p.Line(render.Plain, "  "+t)
	}
	if len(p.h.files) > 1 {
		var paths []string
		for _, source := range s.Sources {
			paths = append(paths, p.h.files[source].snapshot.Path())
		}
		p.Line(render.Plain, "  in "+strings.Join(paths, ", "))
	}
	for _, w := range s.Writers {
		p.Line(render.Plain, "  by "+writerText(w))
	}
	if s.Conflict {
		p.Line(render.Red, "  (snapshots disagree about this revision: they are of clusters that went different ways)")
	}
	if note, _, _ := strings.Cut(s.Value.Note, ";"); note != "" {
		p.Line(render.Cyan, "  ("+note+")")
	}
	p.Changes("  ", s.Changes)
	switch {
	case s.Folded > 0:
		p.Line(render.Cyan, fmt.Sprintf("  (%s folded away; --all shows)", render.Plural(s.Folded, "change")))
	case s.What == timeline.Updated && len(s.Changes) == 0:
		p.Line(render.Cyan, "  (written again without a change)")
	}
}

// timeText is a bracket in words; each of its ends is approximate too, as clocks are.
func timeText(b timeline.Bracket) string {
	from, to := b.NotBefore.Format(time.RFC3339), b.NotAfter.Format(time.RFC3339)
	switch {
	case !b.Known():
		return ""
	case b.NotAfter.IsZero():
		return "about " + from + " or later"
	case b.NotBefore.IsZero():
		return "about " + to + " or earlier"
	}
	return fmt.Sprintf("about %s (between %s and %s)", b.About.Format(time.RFC3339), from, to)
}

func writerText(w timeline.Writer) string {
	text := w.Manager + " (" + w.Operation
	if w.Subresource != "" {
		text += " of " + w.Subresource
	}
	text += ")"
	if w.Time != "" {
		text += " at " + w.Time
	}
	return text
}

// missingText says what no snapshot keeps between a step and the one before.
func missingText(s *timeline.Step) string {
	m := s.Missing
	var parts []string
	if m.Deleted {
		parts = append(parts, "a deletion")
	}
	if m.Created > 0 {
		parts = append(parts, fmt.Sprintf("the creation at revision %d", m.Created))
	}
	if m.Updates > 0 {
		parts = append(parts, render.Plural(int(m.Updates), "update"))
	}
	where := fmt.Sprintf("before revision %d", m.To)
	if m.From > 0 {
		where = fmt.Sprintf("between revisions %d and %d", m.From, m.To)
	}
	switch {
	case len(parts) == 0:
		return "not kept: whatever became of it " + where
	case m.Perhaps:
		return "not kept: " + strings.Join(parts, ", ") + ", and perhaps more, " + where
	}
	return "not kept: " + strings.Join(parts, ", ") + ", " + where
}
