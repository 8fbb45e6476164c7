package transform

import (
	"cmp"
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
)

// Store is a View below one storage prefix. It keeps the first error, after which it reads, stages
// and reports nothing: a migration looks at Err between its steps.
type Store struct {
	Ctx  context.Context // of the run
	View *View
	Keys keys.Kubernetes
	Err  error
}

// Failed keeps the first error, and tells whether there is one.
func (s *Store) Failed(err error) bool {
	s.Err = cmp.Or(s.Err, err)
	return s.Err != nil
}

// Live yields the entries of a folder.
func (s *Store) Live(dir []byte) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for entry, err := range s.View.Live(s.Ctx, dir) {
			if s.Failed(err) || !yield(entry) {
				return
			}
		}
	}
}

// Objects yields the objects of a resource whose keys an API server makes. Other keys in its folder
// are not among them: the caller reports those that matter to it.
func (s *Store) Objects(gr schema.GroupResource) iter.Seq2[keys.Key, *Entry] {
	return func(yield func(keys.Key, *Entry) bool) {
		for entry := range s.Live(s.Keys.Dir(gr)) {
			if key, err := s.Keys.Parse(entry.Key); err == nil && !yield(key, entry) {
				return
			}
		}
	}
}

// Get returns the entry of a key, nil for none.
func (s *Store) Get(key []byte) *Entry {
	if s.Err != nil {
		return nil
	}
	entry, err := s.View.Get(s.Ctx, key)
	if s.Failed(err) {
		return nil
	}
	return entry
}

// Read decodes the object at key; nil for none, and for one that cannot be decoded, which is
// reported elsewhere.
func (s *Store) Read(key []byte) (map[string]any, encoding.Format) {
	if entry := s.Get(key); entry != nil {
		if obj, format, err := encoding.DecodeObject(entry.Value); err == nil {
			return obj, format
		}
	}
	return nil, encoding.FormatUnknown
}

// Raise reports a finding, and tells whether to go on.
func (s *Store) Raise(key string, f *finding.Finding) (goOn bool) {
	return s.Err == nil && s.View.Raise(key, f)
}

// Step adds a step by hand.
func (s *Store) Step(format string, args ...any) {
	if s.Err == nil {
		s.View.Report().AddStep(format, args...)
	}
}

// Put is [View.Put].
func (s *Store) Put(key, value []byte) {
	if s.Err == nil {
		s.Failed(s.View.Put(s.Ctx, key, value))
	}
}

// Delete is [View.Delete].
func (s *Store) Delete(key []byte) {
	if s.Err == nil {
		s.Failed(s.View.Delete(s.Ctx, key))
	}
}
