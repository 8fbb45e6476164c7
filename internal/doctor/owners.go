package doctor

import (
	"cmp"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
)

// family is a chunk of the objects with owners. Chunks are never copied; a single slice would be
// copied as it grows.
type family struct {
	owned []owned
	refs  []reference // of all owned, in sequence
}

const familySize = 4096

// owned is an object with owners; owners is the number of its entries in refs.
type owned struct {
	key        []byte
	at, owners uint32 // at is an index in places
}

// reference is one owner; kind is its number in kindOf.
type reference struct {
	uid  objects.UID
	kind uint32
}

type ownerKind struct{ apiVersion, kind string }

// Codes about owners.
var (
	codeOwnerGone         = finding.Lookup("owner-gone")
	codeOwnerUnresolvable = finding.Lookup("owner-unresolvable")
	codeOwnerNamespaced   = finding.Lookup("owner-namespaced")
	codeOwnerUnchecked    = finding.Lookup("owner-unchecked")
)

// ownerState is the garbage collector's result for an owner (k8s.io/kubernetes
// pkg/controller/garbagecollector): the collector resolves apiVersion and kind, looks in the
// namespace of the object for a namespaced kind, and compares UIDs.
type ownerState int

const (
	ownerThere ownerState = iota
	ownerGone
	ownerUnresolvable // no server serves apiVersion and kind: the object is kept
	ownerNamespaced   // namespaced owner of a cluster-scoped object, which is kept too
	ownerUnseen       // of an aggregated API server, of an unknown kind, or stored elsewhere
	ownerStates
)

// checkOwners reports the garbage collector's results for owner references.
func checkOwners(d *doctor) error {
	for _, def := range d.definitions.all() { // an APIService may be missing for a moment
		for _, version := range def.Served {
			if len(d.local) > 0 {
				d.local[gvr.GroupVersion{Group: def.kind.Group, Version: version}] = true
			}
		}
	}
	for _, f := range d.owned {
		rest := f.refs
		for _, o := range f.owned {
			var refs []reference
			refs, rest = rest[:o.owners], rest[o.owners:]
			if err := checkOwned(d, o, refs); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOwned reports the garbage collector's results for the owner references of an object.
func checkOwned(d *doctor, o owned, refs []reference) error {
	from := &d.places.all[o.at].location
	if d.orphans()[from.resource] {
		return nil // invisible to the garbage collector too
	}
	var firsts [ownerStates]*ownerKind
	gone := 0
	for _, ref := range refs {
		kind := &d.kindOf.all[ref.kind]
		is := d.ownerState(from, ref.uid, kind)
		firsts[is] = cmp.Or(firsts[is], kind)
		if is == ownerGone {
			gone++
		}
	}
	if gone == len(refs) {
		if err := reportGone(d, o); err != nil {
			return err
		}
	}
	if ref := firsts[ownerUnresolvable]; ref != nil {
		d.raise(o.key, codeOwnerUnresolvable, "its owner is a %s of %s, which is not served", ref.kind, ref.apiVersion)
	}
	if ref := firsts[ownerNamespaced]; ref != nil {
		d.raise(o.key, codeOwnerNamespaced, "it is cluster-scoped, and its owner is a %s, which is namespaced",
			ref.kind)
	}
	if ref := firsts[ownerUnseen]; ref != nil {
		d.groups.add(group{codeOwnerUnchecked, ref.kind + " of " + ref.apiVersion}, o.key)
	}
	return nil
}

// ownerState finds the owner of an object located at from.
func (d *doctor) ownerState(from *location, id objects.UID, kind *ownerKind) ownerState {
	gv, err := gvr.ParseGroupVersion(kind.apiVersion)
	if err != nil {
		return ownerUnresolvable
	}
	at, there := d.find(id)
	near := there && (at.namespace == "" || at.namespace == from.namespace)
	k := d.kinds[gvr.GroupKind{Group: gv.Group, Kind: kind.kind}]
	switch {
	case d.aggregated[gv] && near:
		return ownerThere
	case d.aggregated[gv]:
		return ownerUnseen
	case d.unserved(gv.WithKind(kind.kind)) && (d.options.Kubernetes > 0 || !d.local[gv]):
		return ownerUnresolvable
	case len(d.local) > 0 && !d.local[gv]: // unknown without APIServices
		if d.unread["apiservices.apiregistration.k8s.io"] || d.unread[plain(keys.DefinitionType())] {
			return ownerUnseen
		}
		return ownerUnresolvable
	case from.namespace == "" && (k != nil && k.Namespaced || there && at.namespace != ""):
		return ownerNamespaced
	case near:
		return ownerThere
	case k == nil || d.unread[plain(k.Resource)] || !d.whole[from.prefix]:
		return ownerUnseen
	}
	return ownerGone
}

// find returns the location of the object with a UID.
func (d *index) find(id objects.UID) (at location, there bool) {
	n, there := d.uids[id]
	if there {
		at = d.places.all[n].location
	}
	return at, there
}

// reportGone reports the missing owners of an object.
func reportGone(d *doctor, o owned) error {
	e, err := d.reader.Get(d.ctx, o.key)
	if err != nil || e == nil {
		return err
	}
	var parts []string
	meta, _ := encoding.ReadMeta(e.Value) // did not fail before
	for _, ref := range meta.OwnerReferences {
		part := ref.Kind + " " + ref.Name + " (" + ref.UID + ")"
		if at, there := d.find(objects.ToUID(ref.UID)); there {
			part += " is in namespace " + at.namespace
		}
		parts = append(parts, part)
	}
	d.raise(o.key, codeOwnerGone, "none of its owners is there: %s", strings.Join(parts, ", "))
	return nil
}

// interned assigns a number to each value, because many objects share few values.
type interned[T comparable] struct {
	numbers map[T]uint32
	all     []T
}

func (in *interned[T]) id(v T) uint32 {
	n, known := in.numbers[v]
	if !known {
		if in.numbers == nil {
			in.numbers = map[T]uint32{}
		}
		n = uint32(len(in.all))
		in.numbers[v], in.all = n, append(in.all, v)
	}
	return n
}
