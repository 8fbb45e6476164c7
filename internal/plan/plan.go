package plan

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/transform"
)

// plan is the transform of the command.
type plan struct{ steps []*step }

// Plan stages the steps in order and stops at the first refusal.
func (p *plan) Plan(ctx context.Context, v *transform.View) error {
	section := &Steps{}
	for _, s := range p.steps {
		section.Plan = append(section.Plan, Step{
			Command: s.spec.Command(), Args: append([]string{}, s.args...),
			Kinds: []transform.KindCount{}, Problems: map[string]int{}, Sections: []transform.Section{},
		})
	}
	v.Report().Sections = append(v.Report().Sections, section)
	for i, s := range p.steps {
		done := &section.Plan[i]
		r, err := v.Step(ctx, done.Command, s.allow, s.transform)
		done.take(r)
		if err != nil {
			done.Outcome = transform.Failed
			return fmt.Errorf("step %d, %s: %w", i+1, done.Command, err)
		}
		if done.Outcome == transform.Refused {
			break
		}
	}
	return nil
}

// Steps is the section of the report of a plan.
type Steps struct {
	Plan []Step `json:"plan,omitempty"` // the steps of the plan of "run", in order
}

// Step describes the result of one step of a plan.
type Step struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	// Outcome is planned, refused or failed; absent if an earlier step ended the run.
	Outcome  transform.Outcome     `json:"outcome,omitempty"`
	Kinds    []transform.KindCount `json:"kinds"`
	Changes  transform.Changes     `json:"changes"`  // records changed by the step, compared with the step before
	Problems map[string]int        `json:"problems"` // number of problems by code; the report lists them
	// Sections are objects with the fields found only in the command's own report.
	Sections []transform.Section `json:"sections"`
}

func (s *Step) take(r *transform.Report) {
	s.Outcome, s.Changes = transform.Planned, r.Changes
	if _, refusing := r.Errors(); refusing > 0 {
		s.Outcome = transform.Refused
	}
	s.Kinds = append(s.Kinds, r.Kinds...)
	s.Sections = append(s.Sections, r.Sections...)
	for _, p := range r.Problems {
		s.Problems[p.Code.Name]++
	}
}

// Tables has a row for each step, followed by the tables of each step.
func (s *Steps) Tables(outcome transform.Outcome) []transform.Table {
	all := transform.Table{Header: []any{"STEP", "COMMAND", "CREATED", "UPDATED", "DELETED", "PROBLEMS"}}
	tables := []transform.Table{{}}
	for i, step := range s.Plan {
		if step.Outcome == "" {
			all.Notes = append(all.Notes, fmt.Sprintf("step %d refuses the run; no later step was tried", i))
			break
		}
		problems, c := 0, step.Changes
		for _, n := range step.Problems {
			problems += n
		}
		all.Rows = append(all.Rows, []any{i + 1, step.Command, c.Created, c.Updated, c.Deleted, problems})
		tables = append(tables, step.tables(i+1, outcome)...)
	}
	tables[0] = all
	return tables
}

// tables returns the tables of the nth step's own report, titled with the number.
func (s *Step) tables(n int, outcome transform.Outcome) (tables []transform.Table) {
	if len(s.Sections)+len(s.Kinds) > 0 {
		r := transform.Report{Head: transform.Head{Outcome: outcome, Kinds: s.Kinds}, Sections: s.Sections}
		tables = r.Tables()
	}
	for i := range tables {
		title := fmt.Sprintf("step %d, %s:", n, s.Command)
		if tables[i].Title != "" {
			title += " " + tables[i].Title
		}
		tables[i].Title = title
	}
	return tables
}
