package compare

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Stored returns the subject of a key. False means that none of the snapshots has or had the key.
func Stored(ctx context.Context, sides []*inspect.Reader, key string) (Subject, bool, error) {
	for _, s := range sides {
		sees, err := s.Sees(ctx, []byte(key))
		if err != nil {
			return Subject{}, false, err
		}
		for _, err := range s.Snapshot().History(ctx, []byte(key)) {
			if err != nil {
				return Subject{}, false, err
			}
			if sees {
				subject, err := subjectOf(ctx, sides, key)
				return subject, true, err
			}
			break
		}
	}
	return Subject{}, false, nil
}

// subjectOf is the object that a key names in any of the snapshots, or the key alone.
func subjectOf(ctx context.Context, sides []*inspect.Reader, key string) (Subject, error) {
	for _, s := range sides {
		layouts, err := s.Layouts(ctx)
		if err != nil {
			return Subject{}, err
		}
		if place, _, err := layouts.Parse([]byte(key)); err == nil {
			return NewSubject([]byte(key), place), nil
		}
	}
	return Subject{Key: key}, nil
}

// Named returns the chosen objects of some types, live and deleted ones, by key.
func Named(
	ctx context.Context, sides []*inspect.Reader, types []*inspect.Type, in inspect.Selection,
) (map[string]Subject, error) {
	found := map[string]Subject{}
	live := func(d *inspect.DeletedObject) *inspect.Object { return d.Object }
	for _, kind := range types {
		for _, s := range sides {
			deleted := stream.Map(s.DeletedObjects(ctx, kind, in), live)
			for _, objects := range []iter.Seq2[*inspect.Object, error]{s.Objects(ctx, kind, in), deleted} {
				for o, err := range objects {
					if err != nil {
						return nil, err
					}
					found[string(o.Key)] = NewSubject(o.Key, o.Parsed)
				}
			}
		}
	}
	return found, nil
}
