package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
)

func (p historyPage) head(ctx context.Context, m *merged, subject compare.Subject) error {
	if subject.Resource != "" {
		p.Line(render.Bold, subject.String())
	}
	p.Line(render.Plain, "key "+subject.Key)
	for _, f := range m.files {
		oldest, newest, err := f.Snapshot().Kept(ctx)
		if err != nil {
			return err
		}
		p.Line(render.Plain, f.Snapshot().Path()+" keeps "+keptText(&m.clock, oldest, newest))
	}
	return nil
}

// keptText describes the revisions kept by a file, and their approximate times.
func keptText(clock *compare.Clock, oldest, newest int64) string {
	text := fmt.Sprintf("revisions %d to %d", oldest, newest)
	if from, to := clock.At(oldest), clock.At(newest); from != nil && to != nil {
		text += fmt.Sprintf(", about %s to %s", from.About.Format(time.RFC3339), to.About.Format(time.RFC3339))
	}
	return text
}

type historyPage struct {
	*render.Page
	several bool // snapshots
}

func (p historyPage) step(s *compare.Step) {
	p.Line(render.Plain, "")
	if s.Missing != nil {
		p.Line(render.Cyan, "("+missingText(s)+")")
	}
	if s.What == compare.Gone {
		p.Line(render.Red, "gone")
		return
	}
	colour, what := render.Bold, string(s.What)
	switch s.What {
	case compare.Created, compare.CreatedAgain:
		colour = render.Green
	case compare.Deleted:
		colour = render.Red
	case compare.Oldest:
		what = "the oldest record kept"
	}
	head := fmt.Sprintf("revision %d: %s", s.Revision, what)
	if s.What != compare.Deleted {
		head += fmt.Sprintf(", version %d, %d bytes", s.Version, s.Bytes)
	}
	if s.FreePage {
		head += ", found in a free page"
	}
	p.Line(colour, head)
	if s.Time != nil {
		p.Line(render.Plain, "  "+timeText(*s.Time))
	}
	if p.several {
		p.Line(render.Plain, "  in "+strings.Join(s.Snapshots, ", "))
	}
	for _, w := range s.Writers {
		p.Line(render.Plain, "  by "+writerText(w))
	}
	if s.Conflict {
		p.Line(render.Red, "  (snapshots disagree about this revision: they are of clusters that went different ways)")
	}
	if note, _, _ := strings.Cut(s.Note, ";"); note != "" {
		p.Line(render.Cyan, "  ("+note+")")
	}
	p.Changes("  ", s.Changes)
	switch {
	case s.Folded > 0:
		p.Line(render.Cyan, fmt.Sprintf("  (%s folded away; --all shows)", phrase.Count(s.Folded, "change")))
	case s.What == compare.Updated && len(s.Changes) == 0:
		p.Line(render.Cyan, "  (written again without a change)")
	}
}

// timeText describes a bracket in words; both ends are approximate, like clocks.
func timeText(b compare.Bracket) string {
	from, to := b.NotBefore.Format(time.RFC3339), b.NotAfter.Format(time.RFC3339)
	switch {
	case b.NotAfter.IsZero():
		return "about " + from + " or later"
	case b.NotBefore.IsZero():
		return "about " + to + " or earlier"
	}
	return fmt.Sprintf("about %s (between %s and %s)", b.About.Format(time.RFC3339), from, to)
}

func writerText(w compare.Writer) string {
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

func missingText(s *compare.Step) string {
	m := s.Missing
	var parts []string
	if m.Deleted {
		parts = append(parts, "a deletion")
	}
	if m.Created > 0 {
		parts = append(parts, fmt.Sprintf("the creation at revision %d", m.Created))
	}
	if m.Updates > 0 {
		parts = append(parts, phrase.Count(int(m.Updates), "update"))
	}
	where := fmt.Sprintf("before revision %d", m.To)
	if m.From > 0 {
		where = fmt.Sprintf("between revisions %d and %d", m.From, m.To)
	}
	switch {
	case len(parts) == 0:
		return "not kept: all changes " + where
	case m.Perhaps:
		return "not kept: " + strings.Join(parts, ", ") + ", and perhaps more, " + where
	}
	return "not kept: " + strings.Join(parts, ", ") + ", " + where
}
