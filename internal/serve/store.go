package serve

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// store is the storage of a resource at one version for k8s.io/apiserver. It has no method that
// writes.
type store struct {
	*resource
	version string
	create  func(schema.GroupVersionKind) (runtime.Object, error) // creates an object of the scheme
}

// New returns an empty object of the kind.
func (s *store) New() runtime.Object { return s.empty(s.Kind) }

// NewList returns an empty list of the kind.
func (s *store) NewList() runtime.Object { return s.empty(listKind(s.Kind)) }

// empty returns an object of a registered kind.
func (s *store) empty(kind string) runtime.Object {
	obj, _ := s.create(schema.GroupVersionKind{Group: s.Resource.Group, Version: s.version, Kind: kind})
	return obj
}

// Destroy does nothing: the snapshot belongs to the caller.
func (s *store) Destroy() {}

// NamespaceScoped reports whether objects have namespaces.
func (s *store) NamespaceScoped() bool { return s.Namespaced }

// GetSingularName returns the name that kubectl accepts for one object.
func (s *store) GetSingularName() string { return s.Singular }

// ShortNames returns the short names that kubectl accepts.
func (s *store) ShortNames() []string { return s.Type.ShortNames }

// Categories returns the categories that kubectl accepts, such as all.
func (s *store) Categories() []string { return s.Type.Categories }

// GroupVersionKind returns the kind of the objects.
func (s *store) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return s.gvk(s.version)
}

// Get returns an object by name.
func (s *store) Get(ctx context.Context, name string, opts *metav1.GetOptions) (obj runtime.Object, err error) {
	if err := s.checkRevision(&metainternalversion.ListOptions{ResourceVersion: opts.ResourceVersion}); err != nil {
		return nil, err
	}
	err = s.source.reader.Snapshot().Guard(func() error {
		f, err := s.folder()
		if err != nil {
			return err
		}
		rec, err := f.find(s.key(f, request.NamespaceValue(ctx), name))
		if err != nil {
			return err
		}
		if rec == nil {
			return apierrors.NewNotFound(s.Resource, name)
		}
		e, err := s.source.reader.Entry(ctx, rec)
		if err != nil {
			return err
		}
		obj, err = s.read(e, s.version)
		return err
	})
	return obj, s.status(err)
}

// status converts an error for clients.
func (s *store) status(err error) error {
	if u, is := err.(*unreadable); is {
		s.source.report(u)
		return apierrors.NewInternalError(u)
	}
	return err
}

// List returns the selected objects. They are read during encoding.
func (s *store) List(ctx context.Context, opts *metainternalversion.ListOptions) (out runtime.Object, err error) {
	err = s.source.reader.Snapshot().Guard(func() error {
		q, err := s.newQuery(ctx, opts)
		if err != nil {
			return err
		}
		p, err := q.page(ctx)
		if err != nil {
			return err
		}
		out = s.newList(ctx, p)
		return nil
	})
	return out, s.status(err)
}

// Watch yields the selected objects, and then nothing.
func (s *store) Watch(ctx context.Context, opts *metainternalversion.ListOptions) (w watch.Interface, err error) {
	err = s.source.reader.Snapshot().Guard(func() error {
		w, err = s.newWatch(ctx, opts)
		return err
	})
	return w, s.status(err)
}

// resourceVersion returns the resource version of every list.
func (s *store) resourceVersion() string { return strconv.FormatInt(s.source.revision, 10) }
