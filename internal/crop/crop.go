package crop

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/archive"
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
	outsider := func(key []byte, owner encoding.OwnerReference) {
		v.Raise(string(key), codeOwnerOutside.Because("its owner is not selected, and a garbage collector "+
			"deletes objects without their owners: %s %s", owner.Kind, owner.Name))
	}
	r, err := find(ctx, v, c.part, c.needed, outsider)
	if r == nil || err != nil {
		return err
	}
	content, err := r.content(nil)
	if err != nil {
		return err
	}
	v.Report().AddStep("OUT has the same Secrets as IN: replace them with \"etcdshift sanitize\" before " +
		"others get the file")
	v.Make(transform.Output{Build: content})
	return nil
}

// run writes one part.
type run struct {
	ctx      context.Context
	view     *transform.View
	src      *snapshot.Snapshot
	selected *objects.Selected
	needs    *needs
}

// find finds a part and its needs; with needed, it adds the needs to the part. The run is nil if it
// is refused.
func find(ctx context.Context, v *transform.View, part *objects.Part, needed bool,
	outsider func(key []byte, owner encoding.OwnerReference),
) (*run, error) {
	types, err := v.Types(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{ctx: ctx, view: v, src: v.Reader().Snapshot()}
	if r.selected, err = part.Find(ctx, v, types); err != nil {
		return nil, err
	}
	r.needs = &needs{ctx: ctx, view: v, types: types, selected: r.selected, takes: needed, outsider: outsider}
	if !part.Whole() { // an API server needs nothing outside its storage prefix
		if err := r.needs.find(); err != nil {
			return nil, err
		}
	}
	v.Report().Sections = append(v.Report().Sections, r.needs.section())
	if _, refusing := v.Report().Errors(); refusing > 0 {
		return nil, nil
	}
	return r, r.src.Sound(ctx) // damage must not become the content of a sound file
}

// content counts the records of the output and returns its content. m is nil except for an archive.
func (r *run) content(m *manifest) (*snapshot.Content, error) {
	in, err := r.src.Info(r.ctx)
	if err != nil {
		return nil, err
	}
	granted, err := r.src.Leases(r.ctx)
	if err != nil {
		return nil, err
	}
	layouts, err := r.view.Layouts(r.ctx)
	if err != nil {
		return nil, err
	}
	if m != nil {
		granted = archive.Leases(granted)
		m.begin(granted, layouts)
	}
	part, leases := &Part{Part: &Content{Types: []archive.TypeCount{}}}, map[int64]bool{}
	err = stream.Each(r.src.Live(r.ctx, nil), func(rec *snapshot.Record) error {
		is := r.selected.Has(rec.Key)
		if is {
			key, _, _ := layouts.Parse(rec.Key)
			part.add(key, rec)
			if _, has := granted[rec.Lease]; has {
				leases[rec.Lease] = true
			}
		}
		if m != nil {
			m.add(rec, is, is && r.needs.took(rec.Key))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	part.Part.LeftOut, part.Part.Leases = in.Keys-part.Part.Keys, len(leases)
	r.view.Report().Appendix = part
	content := &snapshot.Content{Revision: in.Revision, Hold: true, Records: r.records()}
	for _, id := range slices.Sorted(maps.Keys(leases)) {
		content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: granted[id]})
	}
	if m != nil {
		m.finish(in, part.Part.Types, r.needs.section().Needs)
		content.Notes, err = m.Notes()
	}
	return content, err
}

// records yields the selected records in revision order.
func (r *run) records() iter.Seq2[*snapshot.Record, error] {
	return stream.Of(func(yield func(*snapshot.Record) error) error {
		return stream.Each(r.src.Live(r.ctx, nil), func(rec *snapshot.Record) error {
			if !r.selected.Has(rec.Key) {
				return nil
			}
			return yield(rec)
		})
	})
}
