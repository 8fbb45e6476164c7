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
	at     location
	refs   []reference
}

// reference is one owner; apiVersion and kind are indexes of names.
type reference struct {
	id               uid
	apiVersion, kind uint32
}

// ownerState is an owner as the garbage collector sees it (k8s.io/kubernetes
// pkg/controller/garbagecollector): it resolves apiVersion and kind, reads the owner in the
// namespace of the object, and compares UIDs.
type ownerState int

const (
	ownerThere ownerState = iota
	ownerGone
	ownerUnresolvable // apiVersion and kind are not served: it keeps the object
	ownerNamespaced   // in a namespace, of a cluster-scoped object: it keeps the object
	ownerUnseen       // served by an aggregated API server, of a kind not known here, or kept elsewhere
)

// concludeOwners reports owner references that the garbage collector will act on or cannot resolve.
func (d *doctor) concludeOwners(ctx context.Context) error {
	served := d.servedVersions()
	var unseen tally[string]
	orphans := d.orphans()
	for _, o := range d.owned {
		if orphans[d.names[o.at.resource]] {
			continue // the garbage collector does not see it either
		}
		counts, firsts := map[ownerState]int{}, map[ownerState]reference{}
		for _, ref := range o.refs {
			is := d.ownerState(served, o, ref)
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
			d.raise(o.key, codeOwnerNamespaced.Because(
				"it is cluster-scoped, and its owner is a %s, which is namespaced", d.names[firsts[ownerNamespaced].kind]))
		}
		if counts[ownerUnseen] > 0 {
			ref := firsts[ownerUnseen]
			unseen.add(d.names[ref.kind]+" of "+d.names[ref.apiVersion], o.key)
		}
	}
	unseen.each(func(what string, n int, first []byte) {
		d.raise(first, codeOwnerUnchecked.Because(
			"%s with an owner of kind %s, of which the file does not show whether it is there", things(n, "object"), what).About(n))
	})
	return nil
}

func (d *doctor) ownerState(served *versions, o owned, ref reference) ownerState {
	gv, err := gvr.ParseGroupVersion(d.names[ref.apiVersion])
	if err != nil {
		return ownerUnresolvable
	}
	at, there := d.located[ref.id]
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

// wholeCluster reports whether the storage holds more than the types of an
// --etcd-servers-overrides.
func (d *doctor) wholeCluster(prefix string) bool {
	for at := range d.namespaces {
		if at.prefix == prefix {
			return true
		}
	}
	return false
}

// reportGone reports the names of the owners, read again.
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
		if at, there := d.located[toUID(ref.UID)]; there {
			part += " is in namespace " + d.names[at.namespace]
		}
		parts = append(parts, part)
	}
	d.raise(o.key, codeOwnerGone.Because("none of its owners is there: %s", strings.Join(parts, ", ")))
	return nil
}

// versions are the versions that the servers of the cluster serve.
type versions struct {
	local      map[gvr.GroupVersion]bool // by kube-apiserver: built in, or of CustomResourceDefinitions
	aggregated map[gvr.GroupVersion]bool
}

// unknown reports that no server has the version; without APIServices no version is unknown.
func (v *versions) unknown(gv gvr.GroupVersion) bool {
	return len(v.local) > 0 && !v.local[gv] && !v.aggregated[gv]
}

// servedVersions reads the APIServices: a server keeps one for each version of each group.
func (d *doctor) servedVersions() *versions {
	v := &versions{map[gvr.GroupVersion]bool{}, map[gvr.GroupVersion]bool{}}
	for _, s := range d.kept["apiservices.apiregistration.k8s.io"] {
		spec, err := readAPIService(s.entry)
		if err != nil {
			continue // reported by concludeAPIServices
		}
		gv := gvr.GroupVersion{Group: spec.Spec.Group, Version: spec.Spec.Version}
		if spec.Spec.Service != nil {
			v.aggregated[gv] = true
		} else {
			v.local[gv] = true
		}
	}
	if len(v.local) == 0 {
		return v
	}
	for _, def := range d.definitions { // an APIService of one may be missing for a moment
		for _, version := range def.served {
			v.local[gvr.GroupVersion{Group: def.kind.Group, Version: version}] = true
		}
	}
	return v
}
