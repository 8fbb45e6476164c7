package transform

import (
	"cmp"
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
)

// Step plans t as one of several steps: it sees what earlier steps staged as if it were stored, and
// goes on after problems with the codes allow besides those that the run allows. Its own report has
// its changes and sections; all else is added to the report of the run. Checks of the output by
// several steps all run, and a key that any of them scrubs is scrubbed.
func (v *View) Step(ctx context.Context, command string, allow []string, t Transform) (*Report, error) {
	all, problems, check, scrub := v.report, v.problems, v.CheckOutput(nil), v.scrub
	own := NewReport(command, slices.Concat(all.allow, allow)...)
	own.CountUIDs = all.CountUIDs
	v.report, v.problems, v.scrub = own, map[problemID]int{}, nil
	v.plan.step++
	err := t.Plan(ctx, v)
	own.Changes = v.plan.changed()
	v.report, v.problems = all, problems
	v.check, v.scrub = bothChecks(check, v.check), eitherKey(scrub, v.scrub)
	for _, p := range own.Problems {
		v.list(p)
	}
	all.take(own)
	return own, err
}

// take adds to the report of a run what a step reports, but for its problems, changes and sections.
func (r *Report) take(own *Report) {
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
		if _, saved := r.Saved[key]; !saved { // else an earlier step saved the object as it was stored
			r.Saved[key] = object
		}
	}
}

// bothChecks runs two checks of an output; nil is none.
func bothChecks(a, b OutputCheck) OutputCheck {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, out *inspect.Reader) error {
		if err := a(ctx, out); err != nil {
			return err
		}
		return b(ctx, out)
	}
}

// eitherKey scrubs the keys that one of two scrubs; nil is none.
func eitherKey(a, b func(key []byte) bool) func(key []byte) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(key []byte) bool { return a(key) || b(key) }
}
