// Package plan runs several transforms as one run: the steps of a plan, a YAML file.
//
// Invariants:
//
//   - A plan that is wrong in any place is refused before the input is opened, with all its
//     mistakes by their lines.
//   - A step sees what earlier steps staged as if it were stored: the objects are those that the
//     steps write as commands, one after the other.
//   - After a step that refuses the run no other step is tried.
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "run", whose steps are commands of the specs of.
func Spec(of []transform.Spec) transform.Spec {
	of = slices.Clone(of)
	return transform.Spec{
		Group: transform.GroupNone,
		Name:  "run",
		Usage: "several changes in one pass, as a plan lists them",
		Examples: `etcdshift run --dry-run --diff plan.yaml before.db after.db
etcdshift run --report report.json plan.yaml before.db after.db`,
		Text: `Runs the commands of PLAN, a YAML file, in their order: one read, one write, one report. A later step sees what earlier steps changed.
The objects in OUT are those that the commands would write one after the other. docs/run.md has examples, docs/schema/plan.json the JSON
Schema of a plan.

A plan that is wrong anywhere is refused before IN is read. After a step that refuses the run no other step is tried. File names in a plan
are relative to the working directory, as on a command line.`,
		ArgsText:  "PLAN IN OUT",
		Arguments: func(*transform.Args) []string { return []string{"PLAN", "IN", "OUT"} },
		Of:        of,
		Sections:  []transform.Section{&Steps{}},
		New: func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
			text, err := a.ReadArgument(ctx, 0, "PLAN")
			if err != nil {
				return nil, err
			}
			steps, err := parse(a.Arguments[0], text, of)
			if err != nil {
				return nil, err
			}
			return begin(ctx, a, steps)
		},
	}
}

// Unfit says why a plan cannot have a command as a step; "" where it can.
func Unfit(s *transform.Spec) string {
	switch {
	case s.Builds:
		return "it makes a new file, and no changed copy of IN"
	case s.Alone:
		return "it checks that all other records of OUT are those of IN"
	}
	return ""
}

// begin makes the transforms of all steps.
func begin(ctx context.Context, a *transform.Args, steps []*step) (*plan, error) {
	var wrong []error
	for i, s := range steps {
		of := *a
		of.Values, of.Arguments, of.Rest = s.values(a.Values), nil, s.args
		var err error
		s.transform, err = s.spec.New(ctx, &of)
		if usage := (*transform.UsageError)(nil); errors.As(err, &usage) {
			wrong = append(wrong, fmt.Errorf("%s: %w", s.place, err))
		} else if err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i+1, s.spec.Command(), err)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, transform.Usagef("%v", err)
	}
	return &plan{steps}, nil
}
