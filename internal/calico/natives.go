package calico

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// folder is where the objects of a kind lie.
type folder struct {
	resource   gvr.GroupResource
	namespaced bool
}

// missing says why the owner of an object in namespace will not be found; empty where it will be,
// and where its kind is unknown: a garbage collector then keeps the object. unread says that the
// owner cannot be read, neither here nor by a garbage collector.
func (m *run) missing(namespace string, ref encoding.OwnerReference) (reason string, unread bool) {
	gv, err := gvr.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", false
	}
	at, known := m.folder(gv.WithKind(ref.Kind).GroupKind())
	if !known {
		return "", false
	}
	key := keys.Key{Resource: at.resource, Name: ref.Name}
	if at.namespaced {
		key.Namespace = namespace
	}
	switch {
	case at.namespaced && namespace == "":
		return "it is namespaced, but what it owns is cluster-scoped", false
	case ref.Name == "" || strings.Contains(ref.Name, "/"):
		return "it has no name", false
	}
	entry := m.Get(m.Keys.Format(key))
	if entry == nil {
		return "it does not exist", false
	}
	found, err := encoding.ReadMeta(entry.Value)
	switch {
	case errors.Is(err, encoding.ErrEncrypted):
		return "", false // it exists; the encrypted record is reported for itself
	case err != nil:
		return "it cannot be read: " + err.Error(), true
	case found.UID != ref.UID:
		return "the one that exists has another uid, " + found.UID, false
	}
	return "", false
}

// folder finds a kind's objects, by the layout's table of built-ins or by the CRDs of the snapshot.
func (m *run) folder(gk gvr.GroupKind) (at folder, known bool) {
	guess, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	gr := guess.GroupResource()
	_, asCluster := m.Keys.Parse(m.Keys.Format(keys.Key{Resource: gr, Name: "x"}))
	_, asNamespaced := m.Keys.Parse(m.Keys.Format(keys.Key{Resource: gr, Namespace: "x", Name: "x"}))
	if (asCluster == nil) != (asNamespaced == nil) { // the table knows its scope, so it knows the resource
		return folder{gr, asNamespaced == nil}, true
	}
	if m.customs == nil {
		m.loadCustoms()
	}
	at, known = m.customs[gk]
	return at, known
}

// loadCustoms reads the kinds of the snapshot's CRDs. A CRD that cannot be read defines none here.
func (m *run) loadCustoms() {
	m.customs = map[gvr.GroupKind]folder{}
	for entry := range m.Live(m.Keys.Dir(keys.DefinitionType())) {
		obj, _, err := encoding.DecodeObject(entry.Value)
		if err != nil {
			continue
		}
		spec := objectAt(obj, "spec")
		names, group := objectAt(spec, "names"), text(spec, "group")
		m.customs[gvr.GroupKind{Group: group, Kind: text(names, "kind")}] = folder{
			gvr.GroupResource{Group: group, Resource: text(names, "plural")}, text(spec, "scope") == "Namespaced",
		}
	}
}
