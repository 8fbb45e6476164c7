package doctor

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// index has the parts of the records that checks behind the pass need.
type index struct {
	foreign, stray, unchecked, leaseless, encrypted tally[string]

	unknown    tally[gvr.GroupVersionKind]
	encryption tallies[folder]
	unread     map[gvr.GroupResource]bool // resources with objects whose metadata is not known

	versions    tallies[folder] // custom resources, by apiVersion and kind
	managed     tallies[folder] // and by the apiVersions in their managedFields
	definitions map[folder]*definition
	namespaces  map[space]*namespace
	contents    tally[content] // objects in namespaces
	held        tally[hold]    // those of them, and custom resources, that are being deleted and have finalizers

	located map[uid]location
	numbers map[string]uint32 // indexes of names
	names   []string
	owned   []owned
	kept    map[string][]stored // by resource, for the checks behind the pass
}

// tallies are several counts.
type tallies[K comparable] = ordered[K, tally[string]]

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
	stored struct {
		key   keys.Key
		entry *inspect.Entry
	}
	namespace struct {
		entry *inspect.Entry
		meta  encoding.Meta
	}
)

func newIndex() index {
	return index{
		unread: map[gvr.GroupResource]bool{}, definitions: map[folder]*definition{}, namespaces: map[space]*namespace{},
		located: map[uid]location{}, numbers: map[string]uint32{}, kept: map[string][]stored{},
	}
}

// uid is a UID in 16 bytes, or in another form as text.
type uid struct {
	bits [16]byte
	text string
}

// toUID parses a UID as Kubernetes writes them; it keeps other texts.
func toUID(s string) uid {
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s { // another text is another UID
		return uid{text: strings.Clone(s)}
	}
	return uid{bits: id}
}

// location is the resource and the namespace of an object, as indexes of names.
type location struct{ resource, namespace uint32 }

func (x *index) number(s string) uint32 {
	n, known := x.numbers[s]
	if !known {
		n = uint32(len(x.names))
		x.numbers[s] = n
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

// managedVersions lists the apiVersions in the managedFields of a custom resource, each once. API
// servers drop malformed entries.
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

// keep keeps the parts of an object that checks behind the pass need.
func (d *doctor) keep(key keys.Key, e *inspect.Entry, meta encoding.Meta) {
	d.locate(key, e, meta)
	if !meta.DeletionTimestamp.IsZero() {
		for _, finalizer := range meta.Finalizers {
			d.held.add(hold{content{space{key.Prefix, key.Namespace}, key.Resource}, finalizer}, e.Key)
		}
	}
	switch name := plain(key.Resource); name {
	case "namespaces":
		d.namespaces[space{key.Prefix, key.Name}] = &namespace{e, meta}
	case "customresourcedefinitions.apiextensions.k8s.io":
		d.define(key, e)
	case "validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"apiservices.apiregistration.k8s.io", "masterleases", "nodes", "leases.coordination.k8s.io", "secrets":
		heartbeat, token := key.Namespace == corev1.NamespaceNodeLease, meta.Annotations[corev1.ServiceAccountNameKey] != ""
		if (key.Resource.Resource != "leases" || heartbeat) && (name != "secrets" || token) {
			d.kept[name] = append(d.kept[name], stored{key, e})
		}
	}
}

// locate keeps the location and the owners of an object. It reports a second object of a UID.
func (d *doctor) locate(key keys.Key, e *inspect.Entry, meta encoding.Meta) {
	at := location{d.number(plain(key.Resource)), d.number(key.Namespace)}
	id := toUID(meta.UID)
	if other, twice := d.located[id]; meta.UID == "" || isRecord(key.Resource) {
		// API servers' own records have none
	} else if twice {
		where := ""
		if ns := d.names[other.namespace]; ns != "" {
			where = " in namespace " + ns
		}
		d.raise(e.Key, codeDuplicateUID.Because("its UID %s is also that of an object of %s%s", meta.UID, d.names[other.resource], where))
	} else {
		d.located[id] = at
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
