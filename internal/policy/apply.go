package policy

import (
	"context"
	"errors"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// apply is the transform.
type apply struct {
	Choice
	*Set
	Options
	strict bool
}

// Plan stages each object as changed by the policies. Namespaces and params come first: policies
// see their staged versions.
func (a *apply) Plan(ctx context.Context, v *transform.View) error {
	from, err := storageOf(ctx, v)
	if from == nil || err != nil {
		return err
	}
	set := *a.Set
	if err := a.Complete(ctx, &set, from); err != nil {
		return err
	}
	e, err := New(ctx, &set, from, a.Options)
	if err != nil {
		return err
	}
	run := &run{ctx: ctx, View: v, Engine: e, from: from, section: &Policies{Policies: e.Of(Mutating)}}
	var first, then []*inspect.Type
	for _, t := range e.Types(Mutating) {
		if t.Resource == (schema.GroupResource{Resource: "namespaces"}) || e.isParam(t) {
			first = append(first, t)
		} else {
			then = append(then, t)
		}
	}
	if err := run.apply(first); err != nil {
		return err
	}
	if len(first) > 0 {
		if err := e.Refresh(ctx, from); err != nil {
			return err
		}
	}
	if err := run.apply(then); err != nil {
		return err
	}
	if err := transform.CheckAddresses(ctx, v); err != nil {
		return err
	}
	for _, f := range e.Unused(Mutating) {
		a.unused(v, f)
	}
	if f := e.Unchecked(); f != nil {
		v.Raise("", f)
	}
	v.Report().Sections = append(v.Report().Sections, run.section)
	return nil
}

// unused reports a policy without any evaluation.
func (a *apply) unused(v *transform.View, f *finding.Finding) {
	if f.Code == CodeUnmatched {
		if f = codeUnmatched.Because("%s", f.Reason); !a.strict {
			f.Decided(finding.Noted)
		}
	}
	v.Raise("", f)
}

// storage is the storage of one API server in a view.
type storage struct {
	*transform.View
	prefix string
}

// storageOf returns the only storage of a view, nil if there is none.
func storageOf(ctx context.Context, v *transform.View) (*storage, error) {
	prefixes, err := v.KubernetesPrefixes(ctx)
	switch {
	case err != nil || len(prefixes) == 0:
		return nil, err
	case len(prefixes) > 1:
		return nil, errors.New("policies are those of one cluster: name its storage with --prefix, one of " +
			strings.Join(prefixes, ", "))
	}
	return &storage{v, prefixes[0]}, nil
}

// Entries yields the entries of a type.
func (s *storage) Entries(ctx context.Context, t *inspect.Type, in inspect.Selection) iter.Seq2[*inspect.Entry, error] {
	return stream.Of(func(yield func(*inspect.Entry) error) error {
		return stream.Each(s.View.Entries(ctx, t, in), func(e *inspect.Entry) error {
			if key, err := e.ParseKey(); err != nil || key.Prefix != s.prefix {
				return nil
			}
			return yield(e)
		})
	})
}

// run is a run of the transform.
type run struct {
	ctx context.Context
	*transform.View
	*Engine
	from    *storage
	section *Policies
}

// apply evaluates all objects of types in parallel, and stages the results in order.
func (r *run) apply(types []*inspect.Type) error {
	for _, t := range types {
		count := Objects{Resource: t.Name()}
		entries := r.from.Entries(r.ctx, t, inspect.Selection{})
		answers := transform.Ahead(r.View, entries, r.begin, answer(r.ctx, t, r.Mutate))
		err := stream.Each(answers, func(a *Answered) error { return r.stage(a, &count) })
		if err != nil {
			return err
		}
		if count.Met+count.Failed > 0 {
			r.section.Objects = append(r.section.Objects, count)
		}
	}
	return nil
}

// stage stages a changed object, and reports failed policies.
func (r *run) stage(a *Answered, count *Objects) error {
	if !r.Take(a.Type, &a.Answer) {
		return nil
	}
	for _, f := range a.Findings {
		r.Raise(string(a.Key), f)
	}
	if len(a.Met) > 0 {
		count.Met++
	}
	if refused(a.Findings) {
		count.Failed++
	}
	if a.Answer.Content == nil {
		return nil
	}
	staged, err := r.PutObject(r.ctx, a.Object, a.Answer.Content)
	if staged {
		count.Changed++
	}
	return err
}

// Policies is the section of the report about policies.
type Policies struct {
	Policies []*Policy `json:"policies,omitempty"`  // by name
	Objects  []Objects `json:"evaluated,omitempty"` // by resource
}

// Objects counts the objects of a resource.
type Objects struct {
	Resource string `json:"resource"`
	Met      int    `json:"met"`     // matched by a policy
	Changed  int    `json:"changed"` // matched and changed
	Failed   int    `json:"failed"`  // unchanged because of a problem
}

// Tables returns the section as tables.
func (p *Policies) Tables(transform.Outcome) []transform.Table {
	policies := transform.Table{Header: []any{"POLICY", "BINDINGS", "OBJECTS", "FAILED"}}
	for _, one := range p.Policies {
		policies.Rows = append(policies.Rows, []any{one.Name, len(one.Bindings), one.Matched, one.Failed})
	}
	objects := transform.Table{Header: []any{"RESOURCE", "OBJECTS", "CHANGED", "FAILED"}}
	for _, o := range p.Objects {
		objects.Rows = append(objects.Rows, []any{o.Resource, o.Met, o.Changed, o.Failed})
	}
	return []transform.Table{policies, objects}
}
