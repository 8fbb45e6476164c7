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

// Outcome is the result of a task: the outcome of its report, see [transform.Outcome], or one of
// the outcomes below without a valid report.
type Outcome string

const (
	Written    Outcome = "written"
	Unchanged  Outcome = "unchanged"
	Planned    Outcome = "planned"
	Refused    Outcome = "refused"
	Failed     Outcome = "failed"
	Missing    Outcome = "missing"    // no report
	Unreadable Outcome = "unreadable" // an unreadable report
	Other      Outcome = "other"      // a report about another file, or a page of a replaced snapshot
	Lost       Outcome = "lost"       // a report whose output is missing or has another size
)

// Row is the result for one snapshot.
type Row struct {
	Index    int                `json:"index"`
	Path     string             `json:"path"`
	Outcome  Outcome            `json:"outcome"` // of the task
	Changes  transform.Changes  `json:"changes"`
	Problems []Problems         `json:"problems"`         // from the report, by code
	Error    string             `json:"error,omitempty"`  // why the task failed, or the error of the report
	Output   *snapshot.FileInfo `json:"output,omitempty"` // as in the report
}

// Done reports whether the task succeeded.
func (r *Row) Done() bool {
	return r.Outcome == Written || r.Outcome == Unchanged || r.Outcome == Planned
}

// Summary yields a row for each snapshot, in list order. It reads several reports concurrently, and
// records errors of a report in its row. suffix is the end of the report's name, after the prefix
// from [Fleet.Results]. A suffix other than ".json" names results of another kind: Summary checks
// only that they exist and that the snapshot was not replaced.
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
