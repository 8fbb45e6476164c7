package policy

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Answered is an entry and the answer of policies.
type Answered struct {
	*inspect.Entry
	Answer
}

// Answers yields the answers about all objects that a type has in from, in their order. guard is
// that of stream.Ahead.
func (e *Engine) Answers(ctx context.Context, from Source, t *inspect.Type, guard func(func() error) error,
	evaluate func(context.Context, *inspect.Object) Answer,
) iter.Seq2[*Answered, error] {
	item := func(entry *inspect.Entry) (Answered, int) {
		return Answered{Entry: entry, Answer: e.Begin()}, len(entry.Value)
	}
	return stream.Ahead(guard, from.Entries(ctx, t, inspect.Selection{}), item, func(a *Answered) {
		a.Answer = evaluate(bounded.WithMeter(ctx, a.Meter), inspect.NewObject(t, a.Entry))
	})
}

// Check evaluates the ValidatingAdmissionPolicies on all objects of a snapshot. It returns how many
// objects the policies name.
func Check(ctx context.Context, e *Engine, r *inspect.Reader, found *finding.Report) (objects int, err error) {
	for _, t := range e.Types(Validating) {
		for a, err := range e.Answers(ctx, r, t, r.Snapshot().Guard, e.Validate) {
			if err != nil {
				return objects, err
			}
			if !e.Take(t, &a.Answer) {
				continue
			}
			objects++
			for _, f := range a.Findings {
				found.Add(f.At(string(a.Key)))
			}
		}
	}
	for _, f := range append(e.Unused(Validating), e.Unchecked()) {
		if f != nil {
			found.Add(f)
		}
	}
	found.Sort()
	return objects, nil
}
