package transform

import (
	"cmp"
	"context"
	"slices"
)

// Step plans t as one of several steps. The step sees the changes of earlier steps as stored, and
// continues after problems with the codes allow besides the allowed codes of the run. The returned
// report has the changes and sections of the step; everything else is added to the report of the
// run.
func (v *View) Step(ctx context.Context, command string, allow []string, t Transform) (*Report, error) {
	all, problems := v.report, v.problems
	own := NewReport(command, slices.Concat(all.allow, allow)...)
	own.CountUIDs = all.CountUIDs
	v.report, v.problems = own, map[problemID]int{}
	v.plan.step++
	err := t.Plan(ctx, v)
	own.Changes = v.plan.changed()
	v.report, v.problems = all, problems
	for _, p := range own.Problems {
		v.list(p)
	}
	all.mergeStep(own)
	return own, err
}

// mergeStep adds the report of a step to the report of a run, without problems, changes and
// sections.
func (r *Report) mergeStep(own *Report) {
	r.Kinds = append(r.Kinds, own.Kinds...)
	r.Renamed = append(r.Renamed, own.Renamed...)
	r.UIDs = append(r.UIDs, own.UIDs...)
	r.SeenUIDs, r.NewUIDs = r.SeenUIDs+own.SeenUIDs, r.NewUIDs+own.NewUIDs
	r.References = append(r.References, own.References...)
	r.Archive = cmp.Or(r.Archive, own.Archive)
	for i, step := range own.Steps {
		switch {
		case i < own.BeforeRestore:
			r.AddStepBefore("%s", step)
		default:
			r.AddStep("%s", step)
		}
	}
	for key, object := range own.Saved {
		if _, saved := r.Saved[key]; !saved { // otherwise an earlier step saved the object as stored
			r.Saved[key] = object
		}
	}
}
