package fleet

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Outcome is how a task ended: an outcome of its report, see [transform.Outcome], or one that no
// report has.
type Outcome string

const (
	Written    Outcome = "written"
	Unchanged  Outcome = "unchanged"
	Planned    Outcome = "planned"
	Refused    Outcome = "refused"
	Failed     Outcome = "failed"
	Missing    Outcome = "missing"    // there is no report
	Unreadable Outcome = "unreadable" // there is one, which cannot be read
	Other      Outcome = "other"      // there is one about another file, or a page whose snapshot was replaced
	Lost       Outcome = "lost"       // there is one, and its output is gone or has another size
)

// Row is what became of one snapshot.
type Row struct {
	Index    int                `json:"index"`
	Path     string             `json:"path"`
	Outcome  Outcome            `json:"outcome"` // how the task ended
	Changes  transform.Changes  `json:"changes"`
	Problems []Problems         `json:"problems"`         // of the report, by code
	Error    string             `json:"error,omitempty"`  // why it failed, or what is wrong with the report
	Output   *snapshot.FileInfo `json:"output,omitempty"` // as the report has it
}

// Done reports whether the task did what it was to do.
func (r *Row) Done() bool {
	return r.Outcome == Written || r.Outcome == Unchanged || r.Outcome == Planned
}

// Summary yields a row for each snapshot, in the order of the list. It reads several reports at
// once, and names what is wrong with one. suffix is what the name of a report ends with, behind
// what [Fleet.Results] tells; any but ".json" is another result, which is there or not, and is that
// of another file where the snapshot was replaced.
func (f *Fleet) Summary(ctx context.Context, suffix string) iter.Seq2[*Row, error] {
	each := func(yield func(Row, error) bool) {
		for i, s := range f.Snapshots {
			if ctx.Err() != nil {
				yield(Row{}, ctx.Err())
				return
			}
			if !yield(Row{Index: i, Path: s.Path, Problems: []Problems{}}, nil) {
				return
			}
		}
	}
	return stream.Ahead(func(do func() error) error { return do() }, each,
		func(r Row) (Row, int) { return r, 0 },
		func(r *Row) { r.read(ctx, f, suffix) })
}

// read reads the report of a row.
func (r *Row) read(ctx context.Context, f *Fleet, suffix string) {
	t := f.task(r.Index)
	path := t.results + suffix
	report, err := (*found)(nil), error(nil)
	if suffix == ".json" {
		report, err = t.readReport(ctx, path)
	} else if _, err = t.files.stat(ctx, path); err == nil {
		r.Outcome = Written
		if err := t.Check(ctx); err != nil {
			r.Outcome, r.Error = Other, err.Error()
		}
	}
	if report != nil {
		r.Outcome, r.Changes, r.Error, r.Output = Outcome(report.Outcome), report.Changes, report.Error, report.Output
		r.Problems = append(r.Problems, report.Problems...)
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.Outcome, err = Missing, t.Check(ctx)
	} else if err != nil {
		r.Outcome = Unreadable
	}
	if err == nil {
		return
	}
	switch r.Error = err.Error(); {
	case errors.Is(err, ErrOtherInput):
		r.Outcome = Other
	case errors.Is(err, ErrLost):
		r.Outcome = Lost
	}
}
