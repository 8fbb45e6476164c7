// Package plan runs several transforms as one run: the steps of a plan, a YAML file.
//
// Invariants:
//
//   - A wrong plan is refused before the input is opened, with all mistakes and their lines.
//   - A step sees the objects staged by earlier steps as if stored: the result equals running the
//     steps as separate commands.
//   - After a refusing step no other step runs.
package plan

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/etcdshift/etcdshift/transform"
)

// Spec returns the command "run", whose steps are commands from of.
func Spec(of []transform.Spec) transform.Spec {
	of = slices.Clone(of)
	return transform.Spec{
		Name:  "run",
		Usage: "make several changes in one pass, from a plan",
		Examples: `etcdshift run --dry-run --diff plan.yaml before.db after.db
etcdshift run --report report.json plan.yaml before.db after.db`,
		Text: `Runs the commands of PLAN, a YAML file, in their order: one read, one write, one report. A later step
sees what earlier steps changed. The objects in OUT are those that the commands would write one after the other.
docs/guides/run.md has examples, docs/reference/schema/plan.json the JSON Schema of a plan.

A plan that is wrong anywhere is refused before IN is read. After a step that refuses the run no other step is tried.
File names in a plan are relative to the working directory, as on a command line.`,
		ArgsText:  "PLAN IN OUT",
		Arguments: func(*transform.Args) []string { return []string{"PLAN", "IN", "OUT"} },
		Of:        of,
		Sections:  []transform.Section{&Steps{}},
		New: func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
			if given := swapped(a); given != "" {
				return nil, transform.Usagef("%s is where a snapshot is expected: the order is PLAN IN OUT", given)
			}
			text, err := a.ReadArgument(ctx, 0, "PLAN")
			if err != nil {
				return nil, err
			}
			return begin(ctx, a, text, of)
		},
	}
}

// Unfit returns the reason why a plan cannot use a command as a step, or "".
func Unfit(s *transform.Spec) string {
	switch {
	case s.Builds:
		return "it makes a new file, and no changed copy of IN"
	case s.Alone:
		return "it checks that all other records of OUT are those of IN"
	}
	return ""
}

// swapped returns the first later argument with the extension of a plan if the first argument has
// another extension, or "".
func swapped(a *transform.Args) string {
	isPlan := func(path string) bool { return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) }
	given := []string{a.Arguments[0], a.In, a.Out}
	if at := slices.IndexFunc(given, isPlan); at > 0 {
		return given[at]
	}
	return ""
}

// begin parses a plan and creates the transforms of its steps. The error has all mistakes,
// including those found by the commands in their arguments and files.
func begin(ctx context.Context, a *transform.Args, text []byte, specs []transform.Spec) (*plan, error) {
	steps, p := parse(a.Arguments[0], text, specs)
	for _, s := range steps {
		of := *a
		of.Values, of.Arguments, of.Rest = s.values(a.Values), nil, s.args
		var err error
		s.transform, err = s.spec.New(ctx, &of)
		switch usage := (*transform.UsageError)(nil); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &usage):
			p.add(s.at, false, err.Error())
		case err != nil:
			p.add(s.at, true, s.spec.Command()+": "+err.Error())
		}
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return &plan{steps}, nil
}
