package objects

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Named has the objects that an object names.
type Named struct {
	Needs  []Need
	Owners []encoding.OwnerReference
	Made   bool // an API server creates the object at its start
}

// NamedBy returns the objects that an object of a type names, its Namespace and its definition
// first. The error says why the others are unknown.
func NamedBy(e *transform.Entry, t *inspect.Type) (n Named, err error) {
	key, err := e.ParseKey()
	if err != nil {
		return n, err
	}
	if key.Namespace != "" {
		n.Needs = append(n.Needs, Need{Resource: namespaceType(), Name: key.Namespace})
	}
	if !t.Builtin {
		n.Needs = append(n.Needs, Need{Resource: keys.DefinitionType(), Name: t.Name()})
	}
	meta, err := e.Meta()
	if err = cmp.Or(e.Undecryptable, err); err != nil {
		return n, err
	}
	n.Owners = meta.OwnerReferences
	if !t.Builtin {
		return n, nil
	}
	o := inspect.NewObject(t, e)
	switch {
	case o.Err != nil:
		return n, o.Err
	case o.Partial:
		return n, native.ErrUnknownKind
	}
	n.Needs = append(n.Needs, Needs(o.Content)...)
	n.Made = Bootstrapped(o.Content)
	return n, nil
}

// Finder finds objects of a view by the names in other objects.
type Finder struct {
	view     *transform.View
	kinds    map[schema.GroupKind]*inspect.Type
	storages []keys.Storage
}

// NewFinder returns a Finder of objects in storages.
func NewFinder(v *transform.View, types *inspect.Types, storages []keys.Storage) *Finder {
	f := &Finder{view: v, kinds: map[schema.GroupKind]*inspect.Type{}, storages: storages}
	for _, t := range types.All() {
		f.kinds[schema.GroupKind{Group: t.Resource.Group, Kind: t.Kind}] = t
	}
	return f
}

// Get returns the key of an object below a storage prefix, and its entry; nil for none. Below the
// prefix of an API server of OpenShift, the other objects are below other prefixes.
func (f *Finder) Get(
	ctx context.Context, prefix string, t *inspect.Type, namespace, name string,
) (key string, e *transform.Entry, err error) {
	parsed := keys.Key{Resource: t.Resource, Name: name}
	if t.Namespaced {
		parsed.Namespace = namespace
	}
	openShift := slices.ContainsFunc(f.storages,
		func(s keys.Storage) bool { return s.Flavour == keys.FlavourOpenShift })
	for _, s := range f.storages {
		if s.Flavour.KCP() || s.Prefix != prefix && !openShift {
			continue
		}
		at := s.Layout.Format(parsed)
		if s.Prefix == prefix || key == "" {
			key = string(at)
		}
		if e, err = f.view.Get(ctx, at); e != nil || err != nil {
			return string(at), e, err
		}
	}
	return key, nil, nil
}

// Owner returns the key of an owner of an object, and the owner, nil for none, as the garbage
// collector finds it: by kind and name in the namespace of the object, and by UID. The key is ""
// for an owner of an unknown kind: the garbage collector keeps the object.
func (f *Finder) Owner(
	ctx context.Context, of keys.Key, ref encoding.OwnerReference,
) (key string, e *transform.Entry, err error) {
	t := f.kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()]
	if t == nil || t.Namespaced && of.Namespace == "" {
		return "", nil, nil
	}
	key, e, err = f.Get(ctx, of.Prefix, t, of.Namespace, ref.Name)
	if e != nil && e.Undecryptable == nil {
		if meta, err := e.Meta(); err == nil && meta.UID != ref.UID {
			e = nil
		}
	}
	return key, e, err
}
