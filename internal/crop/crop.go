package crop

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Crop writes a part of a snapshot.
type Crop struct {
	part   *objects.Part
	needed bool
}

// Plan finds the part, and builds the output. A dry run finds all problems of a run.
func (c *Crop) Plan(ctx context.Context, v *transform.View) error {
	v.Make(transform.Output{Anew: true})
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	r := &run{ctx: ctx, view: v}
	if r.selected, err = c.part.Find(ctx, v, types); err != nil {
		return err
	}
	n := &needs{ctx: ctx, view: v, types: types, selected: r.selected, takes: c.needed}
	if !c.part.Whole() { // an API server needs nothing outside its storage prefix
		if err := n.find(); err != nil {
			return err
		}
	}
	v.Report().Sections = append(v.Report().Sections, n.section())
	if _, refusing := v.Report().Errors(); refusing > 0 {
		return nil
	}
	return r.build()
}

// run is one crop.
type run struct {
	ctx      context.Context
	view     *transform.View
	selected *objects.Selected
}

// build counts the records of the output and builds it.
func (r *run) build() error {
	src := r.view.Reader().Snapshot()
	if err := src.Sound(r.ctx); err != nil { // damage must not become the content of a sound file
		return err
	}
	in, err := src.Info(r.ctx)
	if err != nil {
		return err
	}
	part, content := &Part{}, &snapshot.Content{Revision: in.Revision, Hold: true, Records: r.records(src)}
	granted, err := src.Leases(r.ctx)
	if err != nil {
		return err
	}
	leases := map[int64]bool{}
	layouts, err := r.view.Layouts(r.ctx)
	if err != nil {
		return err
	}
	err = stream.Each(content.Records, func(rec *snapshot.Record) error {
		key, _, _ := layouts.Parse(rec.Key)
		part.add(key, rec)
		if _, has := granted[rec.Lease]; has {
			leases[rec.Lease] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(leases)) {
		content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: granted[id]})
	}
	if part.Part == nil { // only problems, and all of them allowed
		part.Part = &Content{Types: []TypeCount{}}
	}
	part.Part.LeftOut, part.Part.Leases = in.Keys-part.Part.Keys, len(leases)
	r.view.Report().Appendix = part
	r.view.Report().AddStep("OUT has the same Secrets as IN: replace them with \"etcdshift sanitize\" before " +
		"others get the file")
	r.view.Make(transform.Output{Build: content})
	return nil
}

// records yields the selected records in revision order.
func (r *run) records(src *snapshot.Snapshot) iter.Seq2[*snapshot.Record, error] {
	return stream.Of(func(yield func(*snapshot.Record) error) error {
		return stream.Each(src.Live(r.ctx, nil), func(rec *snapshot.Record) error {
			if !r.selected.Has(rec.Key) {
				return nil
			}
			return yield(rec)
		})
	})
}
