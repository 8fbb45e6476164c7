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

// natives finds owners that are not Calico objects. In an annotation a reference did no harm; as a
// real one, it costs the object its life where the owner does not exist.
type natives struct {
	view    *transform.View
	keys    keys.Kubernetes
	customs map[gvr.GroupKind]folder // kinds of the snapshot's CRDs; nil until they are asked for
}

// folder is where the objects of a kind lie.
type folder struct {
	resource   gvr.GroupResource
	namespaced bool
}

// missing says why the owner of an object in namespace will not be found; empty where it will be,
// and where its kind is unknown: a garbage collector then keeps the object. unread says that the
// owner cannot be read, neither here nor by a garbage collector.
func (n *natives) missing(ctx context.Context, namespace string, ref encoding.OwnerReference) (reason string, unread bool, err error) {
	gv, err := gvr.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", false, nil
	}
	at, known, err := n.folder(ctx, gv.WithKind(ref.Kind).GroupKind())
	if err != nil || !known {
		return "", false, err
	}
	key := keys.Key{Resource: at.resource, Name: ref.Name}
	if at.namespaced {
		key.Namespace = namespace
	}
	switch {
	case at.namespaced && namespace == "":
		return "it is namespaced, but what it owns is cluster-scoped", false, nil
	case ref.Name == "" || strings.Contains(ref.Name, "/"):
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

// folder finds a kind's objects, by the layout's table of built-ins or by the CRDs of the snapshot.
func (n *natives) folder(ctx context.Context, gk gvr.GroupKind) (at folder, known bool, err error) {
	guess, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	gr := guess.GroupResource()
	_, asCluster := n.keys.Parse(n.keys.Format(keys.Key{Resource: gr, Name: "x"}))
	_, asNamespaced := n.keys.Parse(n.keys.Format(keys.Key{Resource: gr, Namespace: "x", Name: "x"}))
	if (asCluster == nil) != (asNamespaced == nil) { // the table knows its scope, so it knows the resource
		return folder{gr, asNamespaced == nil}, true, nil
	}
	if n.customs == nil {
		err = n.loadCustoms(ctx)
	}
	at, known = n.customs[gk]
	return at, known, err
}

// loadCustoms reads the kinds of the snapshot's CRDs. A CRD that cannot be read defines none here.
func (n *natives) loadCustoms(ctx context.Context) error {
	n.customs = map[gvr.GroupKind]folder{}
	for entry, err := range n.view.Live(ctx, n.keys.Dir(keys.DefinitionType())) {
		if err != nil {
			return err
		}
		obj, _, err := encoding.DecodeObject(entry.Value)
		if err != nil {
			continue
		}
		spec := objectAt(obj, "spec")
		names, group := objectAt(spec, "names"), text(spec, "group")
		n.customs[gvr.GroupKind{Group: group, Kind: text(names, "kind")}] = folder{
			gvr.GroupResource{Group: group, Resource: text(names, "plural")}, text(spec, "scope") == "Namespaced",
		}
	}
	return nil
}
