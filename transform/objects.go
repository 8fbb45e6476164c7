package transform

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// Types returns the types of the snapshot, with the CustomResourceDefinitions as staged.
func (v *overlay) Types(ctx context.Context) (*inspect.Types, error) {
	types, err := v.reader.Types(ctx)
	if err != nil {
		return nil, err
	}
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	for st := range v.plan.all() {
		key, err := v.plan.key(st)
		if err != nil {
			return nil, err
		}
		parsed, _, err := layouts.Parse(key)
		if err != nil || st.delete {
			continue // of no resource, or a type that stays, such as the type of an empty folder
		}
		defines := parsed.Resource == keys.DefinitionType()
		if !defines && !st.creates() {
			continue
		}
		e, err := v.staged(ctx, st)
		switch {
		case err != nil:
			return nil, err
		case defines:
			types.Define(e)
		}
		if st.creates() {
			types.Count(e)
		}
	}
	return types, nil
}

// Objects yields the objects of a type, as stored or staged, in the order of [View.Live]. An
// unreadable object is yielded with its Err.
func (v *overlay) Objects(
	ctx context.Context, t *inspect.Type, in inspect.Selection,
) iter.Seq2[*inspect.Object, error] {
	return stream.Of(func(yield func(*inspect.Object) error) error {
		return stream.Each(v.Entries(ctx, t, in), func(e *Entry) error { return yield(inspect.NewObject(t, e)) })
	})
}

// Entries yields the entries of Objects without decoding.
func (v *overlay) Entries(ctx context.Context, t *inspect.Type, in inspect.Selection) iter.Seq2[*Entry, error] {
	return stream.Of(func(yield func(*Entry) error) error {
		layouts, err := v.Layouts(ctx)
		if err != nil {
			return err
		}
		for _, dir := range layouts.Dirs(t.Resource) {
			err := stream.Each(v.Live(ctx, dir), func(e *Entry) error {
				if key, err := e.ParseKey(); err != nil || key.Resource != t.Resource || !in.Holds(key) {
					return nil
				}
				return yield(e)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
