package doctor

import (
	"encoding/hex"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// index is what one pass over the records keeps.
type index struct {
	foreign, stray, unjudged, leaseless, closed tally[string]
	unknown                                     tally[gvr.GroupVersionKind]
	encryption                                  tallies[folder]
	unread                                      map[gvr.GroupResource]bool // resources with objects whose metadata is not known

	versions    tallies[folder] // custom resources, by apiVersion and kind
	managed     tallies[folder] // and by the apiVersions in their managedFields
	definitions map[folder]*definition
	namespaces  map[space]*namespace
	contents    tally[content] // objects in namespaces
	held        tally[hold]    // those of them, and custom resources, that are being deleted and have finalizers

	places map[uid]place
	texts  map[string]uint32 // folders and namespaces of places, numbered
	names  []string
	owned  []owned

	webhooks, services []stored // webhook configurations, APIServices
	masters, nodes     []stored
	heartbeats         []stored // Leases of nodes
	tokens             []stored
}

type (
	folder struct {
		prefix   string
		resource gvr.GroupResource
	}
	space   struct{ prefix, name string }
	content struct {
		space
		resource gvr.GroupResource
	}
	hold struct {
		content
		finalizer string
	}
	// stored is a value to be read again; its bytes are those of the entry.
	stored struct {
		key   keys.Key
		entry inspect.Entry
	}
	namespace struct {
		entry inspect.Entry
		meta  encoding.Meta
	}
)

func newIndex() index {
	return index{
		unread: map[gvr.GroupResource]bool{}, definitions: map[folder]*definition{}, namespaces: map[space]*namespace{},
		places: map[uid]place{}, texts: map[string]uint32{},
	}
}

// uid is a UID in 16 bytes, or for one of another form a text that is hashed by the map.
type uid struct {
	bits [16]byte
	text string
}

// toUID reads the form in which Kubernetes writes UIDs; others are kept as they are.
func toUID(s string) uid {
	var u uid
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return uid{text: strings.Clone(s)}
	}
	digits := make([]byte, 0, 32)
	for _, part := range []string{s[:8], s[9:13], s[14:18], s[19:23], s[24:]} {
		digits = append(digits, part...)
	}
	for _, c := range digits {
		if c >= 'A' && c <= 'F' { // another text, thus another UID
			return uid{text: strings.Clone(s)}
		}
	}
	if _, err := hex.Decode(u.bits[:], digits); err != nil {
		return uid{text: strings.Clone(s)}
	}
	return u
}

// place is where an object lies: its resource and namespace, numbered.
type place struct{ resource, namespace uint32 }

func (x *index) number(s string) uint32 {
	n, known := x.texts[s]
	if !known {
		n = uint32(len(x.names))
		x.texts[s] = n
		x.names = append(x.names, s)
	}
	return n
}

// see counts an object by version and namespace.
func (d *doctor) see(key keys.Key, e *inspect.Entry, meta encoding.Meta) {
	if keys.IsCustom(key.Resource) {
		apiVersion := meta.APIVersion
		if apiVersion != "" {
			apiVersion += " " + meta.Kind
		}
		at := folder{key.Prefix, key.Resource}
		d.versions.of(at).add(apiVersion, e.Key)
		for _, version := range managedVersions(e.Value) {
			d.managed.of(at).add(version, e.Key)
		}
	}
	if key.Namespace != "" {
		d.contents.add(content{space{key.Prefix, key.Namespace}, key.Resource}, e.Key)
	}
}

// managedVersions lists the apiVersions that the entries of a custom resource's managedFields name, each once. Of entries that are
// not as they should be an API server makes none.
func managedVersions(value []byte) (versions []string) {
	var content struct {
		Metadata struct {
			ManagedFields []struct {
				APIVersion string `json:"apiVersion"`
			} `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := encoding.DecodeFields(value, &content); err != nil {
		return nil
	}
	for _, entry := range content.Metadata.ManagedFields {
		versions = append(versions, entry.APIVersion)
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// keep holds on to what conclusions need of an object.
func (d *doctor) keep(key keys.Key, e *inspect.Entry, meta encoding.Meta) error {
	d.locate(key, e, meta)
	if !meta.DeletionTimestamp.IsZero() {
		for _, finalizer := range meta.Finalizers {
			d.held.add(hold{content{space{key.Prefix, key.Namespace}, key.Resource}, finalizer}, e.Key)
		}
	}
	again := stored{key, *e}
	switch plain(key.Resource) {
	case "namespaces":
		d.namespaces[space{key.Prefix, key.Name}] = &namespace{*e, meta}
	case "customresourcedefinitions.apiextensions.k8s.io":
		d.define(key, e)
	case "validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io":
		d.webhooks = append(d.webhooks, again)
	case "apiservices.apiregistration.k8s.io":
		d.services = append(d.services, again)
	case "masterleases":
		d.masters = append(d.masters, again)
	case "nodes":
		d.nodes = append(d.nodes, again)
	case "leases.coordination.k8s.io":
		if key.Namespace == "kube-node-lease" {
			d.heartbeats = append(d.heartbeats, again)
		}
	case "secrets":
		if meta.Annotations["kubernetes.io/service-account.name"] != "" {
			d.tokens = append(d.tokens, again)
		}
	}
	return nil
}

// locate notes where the object with a UID lies, and who owns it. Objects of the same UID are told.
func (d *doctor) locate(key keys.Key, e *inspect.Entry, meta encoding.Meta) {
	at := place{d.number(plain(key.Resource)), d.number(key.Namespace)}
	id := toUID(meta.UID)
	if other, twice := d.places[id]; meta.UID == "" || isRecord(key.Resource) {
		// API servers' own records have none
	} else if twice {
		where := ""
		if ns := d.names[other.namespace]; ns != "" {
			where = " in namespace " + ns
		}
		d.raise(e.Key, codeDuplicateUID.Because("its UID %s is also that of an object of %s%s", meta.UID, d.names[other.resource], where))
	} else {
		d.places[id] = at
	}
	if len(meta.OwnerReferences) == 0 || meta.DeletionTimestamp.Unix() > 0 || key.Resource.Resource == "events" {
		return
	}
	o := owned{key: e.Key, prefix: d.number(key.Prefix), at: at}
	for _, ref := range meta.OwnerReferences {
		o.refs = append(o.refs, reference{toUID(ref.UID), d.number(ref.APIVersion), d.number(ref.Kind)})
	}
	d.owned = append(d.owned, o)
}

// tallies are counts of several things each.
type tallies[K comparable] struct {
	order []K
	by    map[K]*tally[string]
}

func (t *tallies[K]) of(k K) *tally[string] {
	if t.by == nil {
		t.by = map[K]*tally[string]{}
	}
	if t.by[k] == nil {
		t.by[k] = &tally[string]{}
		t.order = append(t.order, k)
	}
	return t.by[k]
}

func (t *tally[K]) first() (k K, key []byte) {
	k = t.order[0]
	return k, t.by[k].first
}
