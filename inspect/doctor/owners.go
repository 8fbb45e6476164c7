package doctor

import (
	"context"
	"fmt"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// owned is an object with owners.
type owned struct {
	key    []byte
	prefix uint32
	at     place
	refs   []reference
}

// reference is one owner: its UID, and its apiVersion and kind, numbered.
type reference struct {
	id               uid
	apiVersion, kind uint32
}

// standing is what the garbage collector would make of an owner (k8s.io/kubernetes pkg/controller/garbagecollector): it resolves
// apiVersion and kind, looks in the namespace of the object where the kind has one, and compares UIDs.
type standing int

const (
	ownerThere standing = iota
	ownerGone
	ownerUnresolvable // apiVersion and kind are served by nobody: it cannot tell, and leaves the object
	ownerNamespaced   // in a namespace, of an object in none, which it leaves too
	ownerUnseen       // served by an aggregated API server, of a kind not known here, or kept elsewhere
)

// concludeOwners reports what the garbage collector will make of owner references.
func (d *doctor) concludeOwners(ctx context.Context) error {
	served, err := d.servedVersions()
	if err != nil {
		return err
	}
	var unseen tally[string]
	orphans := d.orphans()
	for _, o := range d.owned {
		if orphans[d.names[o.at.resource]] {
			continue // the garbage collector does not see it either
		}
		counts, firsts := map[standing]int{}, map[standing]reference{}
		for _, ref := range o.refs {
			is := d.judgeOwner(served, o, ref)
			if counts[is]++; counts[is] == 1 {
				firsts[is] = ref
			}
		}
		if n := counts[ownerGone]; n == len(o.refs) {
			if err := d.reportGone(ctx, o); err != nil {
				return err
			}
		}
		if counts[ownerUnresolvable] > 0 {
			ref := firsts[ownerUnresolvable]
			d.raise(o.key, codeOwnerUnresolvable.Because("its owner is a %s of %s, which is not served", d.names[ref.kind], d.names[ref.apiVersion]))
		}
		if counts[ownerNamespaced] > 0 {
			d.raise(o.key, codeOwnerNamespaced.Because("it is cluster-scoped, and its owner is a %s, which is namespaced", d.names[firsts[ownerNamespaced].kind]))
		}
		if counts[ownerUnseen] > 0 {
			ref := firsts[ownerUnseen]
			unseen.add(d.names[ref.kind]+" of "+d.names[ref.apiVersion], o.key)
		}
	}
	unseen.each(func(what string, n int, first []byte) {
		d.raise(first, codeOwnerUnchecked.Because("%s with an owner of kind %s, of which the file does not show whether it is there", things(n, "object"), what).About(n))
	})
	return nil
}

func (d *doctor) judgeOwner(served *versions, o owned, ref reference) standing {
	gv, err := gvr.ParseGroupVersion(d.names[ref.apiVersion])
	if err != nil {
		return ownerUnresolvable
	}
	at, there := d.places[ref.id]
	near := there && (d.names[at.namespace] == "" || at.namespace == o.at.namespace)
	k, known := d.kinds[gvr.GroupKind{Group: gv.Group, Kind: d.names[ref.kind]}]
	switch {
	case served.aggregated[gv]:
		if near {
			return ownerThere
		}
		return ownerUnseen
	case served.unknown(gv):
		return ownerUnresolvable
	case d.names[o.at.namespace] == "" && (known && k.namespaced || there && d.names[at.namespace] != ""):
		return ownerNamespaced
	case near:
		return ownerThere
	case !known || d.unread[k.resource] || !d.wholeCluster(d.names[o.prefix]):
		return ownerUnseen
	}
	return ownerGone
}

// wholeCluster says whether the file holds more than what --etcd-servers-overrides puts into an etcd of its own.
func (d *doctor) wholeCluster(prefix string) bool {
	for at := range d.namespaces {
		if at.prefix == prefix {
			return true
		}
	}
	return false
}

// reportGone names the owners, which are read again.
func (d *doctor) reportGone(ctx context.Context, o owned) error {
	e, err := d.reader.Get(ctx, o.key)
	if e == nil || err != nil {
		return err
	}
	meta, err := encoding.ReadMeta(e.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", o.key, err)
	}
	var parts []string
	for _, ref := range meta.OwnerReferences[:min(len(meta.OwnerReferences), len(o.refs))] {
		part := ref.Kind + " " + ref.Name + " (" + ref.UID + ")"
		if at, there := d.places[toUID(ref.UID)]; there {
			part += " is in namespace " + d.names[at.namespace]
		}
		parts = append(parts, part)
	}
	d.raise(o.key, codeOwnerGone.Because("none of its owners is there: %s", strings.Join(parts, ", ")))
	return nil
}

// versions are those that the servers of the cluster serve.
type versions struct {
	local      map[gvr.GroupVersion]bool // by kube-apiserver: built in, or of CustomResourceDefinitions
	aggregated map[gvr.GroupVersion]bool
}

// unknown says that nobody serves the version. Where the file has no APIServices nobody can tell.
func (v *versions) unknown(gv gvr.GroupVersion) bool {
	return len(v.local) > 0 && !v.local[gv] && !v.aggregated[gv]
}

// servedVersions reads them off the APIServices: a server keeps one for each version of a group it serves, its own too.
func (d *doctor) servedVersions() (*versions, error) {
	v := &versions{map[gvr.GroupVersion]bool{}, map[gvr.GroupVersion]bool{}}
	for _, s := range d.services {
		spec, err := readAPIService(s.entry.Value)
		if err != nil {
			continue // told by concludeAPIServices
		}
		gv := gvr.GroupVersion{Group: spec.Spec.Group, Version: spec.Spec.Version}
		if spec.Spec.Service != nil {
			v.aggregated[gv] = true
		} else {
			v.local[gv] = true
		}
	}
	if len(v.local) == 0 {
		return v, nil
	}
	for _, def := range d.definitions { // an APIService of one may be missing for a moment
		for _, version := range def.served {
			v.local[gvr.GroupVersion{Group: def.kind.Group, Version: version}] = true
		}
	}
	return v, nil
}
