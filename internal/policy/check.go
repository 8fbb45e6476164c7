package policy

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Answered is an object with the answer of the policies.
type Answered struct {
	*inspect.Object
	Answer
}

// begin returns the item of an entry for [answer].
func (e *Engine) begin(entry *inspect.Entry) Answered {
	return Answered{&inspect.Object{Entry: entry}, e.Begin()}
}

// answer returns the function for evaluating an object of a type.
func answer(
	ctx context.Context, t *inspect.Type, evaluate func(context.Context, *inspect.Object) Answer,
) func(*Answered) {
	return func(a *Answered) {
		a.Object = inspect.NewObject(t, a.Entry)
		a.Answer = evaluate(bounded.WithMeter(ctx, a.Meter), a.Object)
	}
}

// answers yields the answers for all objects of a type in a snapshot, in order.
func (e *Engine) answers(
	ctx context.Context, r *inspect.Reader, t *inspect.Type, work func(*Answered),
) iter.Seq2[*Answered, error] {
	item := func(entry *inspect.Entry) (Answered, int) { return e.begin(entry), len(entry.Value) }
	return stream.Ahead(r.Snapshot().Guard, r.Entries(ctx, t, inspect.Selection{}), item, work)
}

// Check evaluates the ValidatingAdmissionPolicies on all objects of a snapshot. It returns the
// number of objects that the policies name.
func Check(ctx context.Context, e *Engine, r *inspect.Reader, found *finding.Report) (objects int, err error) {
	for _, t := range e.Types(Validating) {
		for a, err := range e.answers(ctx, r, t, answer(ctx, t, e.Validate)) {
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
