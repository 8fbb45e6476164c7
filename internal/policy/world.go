package policy

import (
	"context"
	"errors"
	"iter"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
)

// Source provides the objects of a snapshot. An inspect.Reader is one.
type Source interface {
	Types(ctx context.Context) (*inspect.Types, error)
	Secrets(ctx context.Context) (*redact.Shared, error)
	Entries(ctx context.Context, t *inspect.Type, in inspect.Selection) iter.Seq2[*inspect.Entry, error]
}

// namespaces holds the Namespaces of a snapshot. It is the lister, and the client for Namespaces
// missing in the lister.
type namespaces struct {
	kubernetes.Interface
	typedcorev1.CoreV1Interface
	typedcorev1.NamespaceInterface
	byName map[string]*corev1.Namespace
}

// readNamespaces reads all Namespaces.
func readNamespaces(ctx context.Context, from Source, t *inspect.Type) (*namespaces, error) {
	all := &namespaces{byName: map[string]*corev1.Namespace{}}
	for e, err := range from.Entries(ctx, t, inspect.Selection{}) {
		if err != nil {
			return nil, err
		}
		o := inspect.NewObject(t, e)
		obj, err := toObject(o.Content) // objects in an unreadable Namespace have a finding
		if ns, is := obj.(*corev1.Namespace); err == nil && is {
			all.byName[ns.Name] = ns
		}
	}
	return all, nil
}

// lister returns the lister of the Namespaces.
func (n *namespaces) lister() listers.NamespaceLister {
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, ns := range n.byName {
		_ = all.Add(ns) // each has a name
	}
	return listers.NewNamespaceLister(all)
}

// CoreV1 returns the client of Namespaces.
func (n *namespaces) CoreV1() typedcorev1.CoreV1Interface { return n }

// Namespaces returns the client of Namespaces.
func (n *namespaces) Namespaces() typedcorev1.NamespaceInterface { return n }

// Get returns a Namespace by name.
func (n *namespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	if ns := n.byName[name]; ns != nil {
		return ns, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}

// converters implements patch.TypeConverterManager: the schemas for merging an ApplyConfiguration.
// Each is built when first requested.
type converters struct {
	native func() managedfields.TypeConverter
	types  *inspect.Types
	custom sync.Map // by GroupVersionKind
}

func newConverters(types *inspect.Types) *converters {
	return &converters{types: types, native: sync.OnceValue(
		func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })}
}

// Run does nothing: schemas do not change.
func (c *converters) Run(context.Context) {}

// GetTypeConverter returns the schema of a kind; nil for none.
func (c *converters) GetTypeConverter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	made, _ := c.custom.LoadOrStore(gvk, sync.OnceValue(func() managedfields.TypeConverter { return c.make(gvk) }))
	return made.(func() managedfields.TypeConverter)()
}

func (c *converters) make(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	t := typeOf(c.types, gvk.GroupKind())
	switch {
	case t == nil:
		return nil
	case t.CRD == nil && !scheme.Scheme.Recognizes(gvk):
		return noSchema{}
	case t.CRD == nil:
		return c.native()
	}
	document, err := builder.BuildOpenAPIV3(t.CRD.Object(), gvk.Version, builder.Options{})
	if err != nil {
		return nil
	}
	converter, err := managedfields.NewTypeConverter(document.Components.Schemas, false)
	if err != nil {
		return nil
	}
	return converter
}

// noSchema is the converter of a kind without a schema in this build, such as APIService.
type noSchema struct{}

var errNoSchema = errors.New("an ApplyConfiguration is merged by a schema, and this build has none of the kind")

// ObjectToTyped fails.
func (noSchema) ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return nil, errNoSchema
}

// TypedToObject fails.
func (noSchema) TypedToObject(*typed.TypedValue) (runtime.Object, error) { return nil, errNoSchema }
