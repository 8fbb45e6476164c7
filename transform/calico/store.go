package calico

import (
	"cmp"
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// store is a view below one storage prefix. It keeps the first error, after which it reads, stages
// and reports nothing.
type store struct {
	ctx  context.Context
	view *transform.View
	keys keys.Kubernetes
	err  error
}

// failed keeps the first error, and tells whether there is one.
func (s *store) failed(err error) bool {
	s.err = cmp.Or(s.err, err)
	return s.err != nil
}

// live yields the entries of a folder.
func (s *store) live(dir []byte) iter.Seq[*transform.Entry] {
	return func(yield func(*transform.Entry) bool) {
		for entry, err := range s.view.Live(s.ctx, dir) {
			if s.failed(err) || !yield(entry) {
				return
			}
		}
	}
}

// objects yields the objects of a resource whose keys an API server makes.
func (s *store) objects(gr schema.GroupResource) iter.Seq2[keys.Key, *transform.Entry] {
	return func(yield func(keys.Key, *transform.Entry) bool) {
		for entry := range s.live(s.keys.Dir(gr)) {
			if key, err := s.keys.Parse(entry.Key); err == nil && !yield(key, entry) {
				return
			}
		}
	}
}

// get returns the entry of a key, nil for none.
func (s *store) get(key []byte) *transform.Entry {
	if s.err != nil {
		return nil
	}
	entry, err := s.view.Get(s.ctx, key)
	if s.failed(err) {
		return nil
	}
	return entry
}

// read decodes the object at key; nil for none, and for one that cannot be decoded, which is
// reported elsewhere.
func (s *store) read(key []byte) (map[string]any, encoding.Format) {
	if entry := s.get(key); entry != nil {
		if obj, format, err := encoding.DecodeObject(entry.Value); err == nil {
			return obj, format
		}
	}
	return nil, encoding.FormatUnknown
}

// raise reports a finding, and tells whether to go on.
func (s *store) raise(key string, f *finding.Finding) (goOn bool) {
	return s.err == nil && s.view.Raise(key, f)
}

// step adds a step by hand.
func (s *store) step(format string, args ...any) {
	if s.err == nil {
		s.view.Report().AddStep(format, args...)
	}
}

func (s *store) put(key, value []byte, why string) {
	if s.err == nil {
		s.failed(s.view.Put(s.ctx, key, value, why))
	}
}

func (s *store) delete(key []byte, why string) {
	if s.err == nil {
		s.failed(s.view.Delete(s.ctx, key, why))
	}
}
