package calico

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// natives finds owners that are no Calico objects. While a reference sat in an annotation no garbage collector saw it; as a
// real one, an owner that does not exist costs the object its life.
type natives struct {
	view    *transform.View
	keys    keys.Kubernetes
	customs map[gvr.GroupKind]place // kinds of the snapshot's CRDs; nil until they are asked for
}

// place is where the objects of a kind lie.
type place struct {
	resource   gvr.GroupResource
	namespaced bool
}

// missing says why the owner of an object in namespace will not be found; empty where it will be, and where nobody can
// tell: a garbage collector leaves objects alone whose owner's kind it does not know. unread says that the owner is there, and
// cannot be read: a garbage collector cannot read it either.
func (n *natives) missing(ctx context.Context, namespace string, ref encoding.OwnerReference) (reason string, unread bool, err error) {
	gv, err := gvr.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", false, nil
	}
	at, known, err := n.place(ctx, gv.WithKind(ref.Kind).GroupKind())
	if err != nil || !known {
		return "", false, err
	}
	key := keys.Key{Resource: at.resource, Name: ref.Name}
	if at.namespaced {
		if namespace == "" {
			return "it is namespaced, but what it owns is cluster-scoped", false, nil
		}
		key.Namespace = namespace
	}
	if ref.Name == "" || strings.Contains(ref.Name, "/") {
		return "it has no name", false, nil
	}
	entry, err := n.view.Get(ctx, n.keys.Format(key))
	if err != nil {
		return "", false, err
	}
	if entry == nil {
		return "it does not exist", false, nil
	}
	found, err := encoding.ReadMeta(entry.Value)
	switch {
	case errors.Is(err, encoding.ErrEncrypted):
		return "", false, nil // it exists; the encrypted record is reported for itself
	case err != nil:
		return "it cannot be read: " + err.Error(), true, nil
	case found.UID != ref.UID:
		return "the one that exists has another uid, " + found.UID, false, nil
	}
	return "", false, nil
}

// place finds where a kind's objects lie: by the layout's table of built-ins, or by the CRDs of the snapshot.
func (n *natives) place(ctx context.Context, gk gvr.GroupKind) (place, bool, error) {
	guess, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	gr := guess.GroupResource()
	_, asCluster := n.keys.Parse(n.keys.Format(keys.Key{Resource: gr, Name: "x"}))
	_, asNamespaced := n.keys.Parse(n.keys.Format(keys.Key{Resource: gr, Namespace: "x", Name: "x"}))
	if (asCluster == nil) != (asNamespaced == nil) { // the table knows its scope, so it knows the resource
		return place{resource: gr, namespaced: asNamespaced == nil}, true, nil
	}
	if n.customs == nil {
		if err := n.loadCustoms(ctx); err != nil {
			return place{}, false, err
		}
	}
	at, ok := n.customs[gk]
	return at, ok, nil
}

// loadCustoms reads which kinds the snapshot's CRDs define. CRDs that cannot be read define none here.
func (n *natives) loadCustoms(ctx context.Context) error {
	n.customs = map[gvr.GroupKind]place{}
	for entry, err := range n.view.Live(ctx, n.keys.Dir(keys.DefinitionType())) {
		if err != nil {
			return err
		}
		obj, _, err := encoding.DecodeObject(entry.Value)
		if err != nil {
			continue
		}
		spec := objectAt(obj, "spec")
		names := objectAt(spec, "names")
		group := text(spec, "group")
		n.customs[gvr.GroupKind{Group: group, Kind: text(names, "kind")}] = place{
			resource:   gvr.GroupResource{Group: group, Resource: text(names, "plural")},
			namespaced: text(spec, "scope") == "Namespaced",
		}
	}
	return nil
}
