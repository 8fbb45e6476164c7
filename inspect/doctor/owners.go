package doctor

import (
	"cmp"
	"strings"
	"unique"

	"github.com/google/uuid"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// owned is an object with owners.
type owned struct {
	key    []byte
	prefix string
	at     location
	refs   []reference
}

// reference is one owner.
type reference struct {
	id               uuid.UUID
	apiVersion, kind unique.Handle[string]
}

// ownerState is what the garbage collector finds of an owner (k8s.io/kubernetes
// pkg/controller/garbagecollector): it resolves apiVersion and kind, looks in the namespace of the
// object if the kind has namespaces, and compares UIDs.
type ownerState int

const (
	ownerThere ownerState = iota
	ownerGone
	ownerUnresolvable // no server serves apiVersion and kind: it keeps the object
	ownerNamespaced   // in a namespace, of a cluster-scoped object, which it keeps too
	ownerUnseen       // of an aggregated API server, of an unknown kind, or kept elsewhere
	ownerStates
)

// checkOwners reports what the garbage collector will make of owner references.
func (d *doctor) checkOwners() {
	for _, def := range d.definitions.all() { // an APIService may be missing for a moment
		for _, version := range def.Served {
			if len(d.local) > 0 {
				d.local[gvr.GroupVersion{Group: def.kind.Group, Version: version}] = true
			}
		}
	}
	for _, o := range d.owned {
		if d.orphans[o.at.resource.Value()] {
			continue // the garbage collector does not see it either
		}
		var firsts [ownerStates]*reference
		gone := 0
		for i, ref := range o.refs {
			is := d.ownerState(o, ref)
			firsts[is] = cmp.Or(firsts[is], &o.refs[i])
			if is == ownerGone {
				gone++
			}
		}
		if gone == len(o.refs) {
			d.reportGone(o)
		}
		if ref := firsts[ownerUnresolvable]; ref != nil {
			d.raise(o.key, codeOwnerUnresolvable, "its owner is a %s of %s, which is not served", ref.kind.Value(), ref.apiVersion.Value())
		}
		if ref := firsts[ownerNamespaced]; ref != nil {
			d.raise(o.key, codeOwnerNamespaced, "it is cluster-scoped, and its owner is a %s, which is namespaced", ref.kind.Value())
		}
		if ref := firsts[ownerUnseen]; ref != nil {
			d.groups.add(group{codeOwnerUnchecked, ref.kind.Value() + " of " + ref.apiVersion.Value()}, o.key)
		}
	}
}

func (d *doctor) ownerState(o owned, ref reference) ownerState {
	gv, err := gvr.ParseGroupVersion(ref.apiVersion.Value())
	if err != nil {
		return ownerUnresolvable
	}
	at, there := d.locations[ref.id]
	near := there && (at.namespace.Value() == "" || at.namespace == o.at.namespace)
	k := d.kinds[gvr.GroupKind{Group: gv.Group, Kind: ref.kind.Value()}]
	switch {
	case d.aggregated[gv] && near:
		return ownerThere
	case d.aggregated[gv]:
		return ownerUnseen
	case len(d.local) > 0 && !d.local[gv]: // without APIServices it is unknown
		return ownerUnresolvable
	case o.at.namespace.Value() == "" && (k != nil && k.Namespaced || there && at.namespace.Value() != ""):
		return ownerNamespaced
	case near:
		return ownerThere
	case k == nil || d.unread[k.Resource] || !d.whole[o.prefix]:
		return ownerUnseen
	}
	return ownerGone
}

// reportGone names the owners of an object.
func (d *doctor) reportGone(o owned) {
	e, err := d.reader.Get(d.ctx, o.key)
	if d.failed(err) || e == nil {
		return
	}
	var parts []string
	meta, _ := encoding.ReadMeta(e.Value) // did not fail before
	for _, ref := range meta.OwnerReferences {
		part := ref.Kind + " " + ref.Name + " (" + ref.UID + ")"
		if at, there := d.locations[toUID(ref.UID)]; there {
			part += " is in namespace " + at.namespace.Value()
		}
		parts = append(parts, part)
	}
	d.raise(o.key, codeOwnerGone, "none of its owners is there: %s", strings.Join(parts, ", "))
}
