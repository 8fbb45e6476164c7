package doctor

import (
	"bytes"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// index is what one pass over the records keeps.
type index struct {
	groups     tally[group]
	encryption ordered[folder, tally[string]] // values by provider and key, "" for none
	unread     map[gvr.GroupResource]bool     // resources with values whose metadata is unknown

	versions    ordered[folder, tally[string]] // custom resources by apiVersion and kind
	managed     ordered[folder, tally[string]] // by apiVersions in managedFields
	definitions ordered[folder, definition]
	unwritten   []folder                   // definitions that writers leaves out
	orphans     map[gvr.GroupResource]bool // resources without a definition
	namespaces  map[space]labels.Set
	whole       map[string]bool // storage prefixes with namespaces: --etcd-servers-overrides leaves them out
	contents    ordered[space, tally[gvr.GroupResource]]
	held        tally[hold] // objects that are being deleted, by finalizer

	uids   uidTable
	places interned[location]
	owned  []owned
	refs   []reference // of all owned, as they follow each other
	kindOf interned[ownerKind]

	kept        map[string][]stored       // by resource
	beats       map[string]time.Time      // the last heartbeats of nodes
	apiServices []apiService              // aggregated ones
	local       map[gvr.GroupVersion]bool // served by kube-apiserver: built in, or of definitions
	aggregated  map[gvr.GroupVersion]bool // served by another API server
}

type (
	// group is what a finding about several records is about.
	group struct {
		code    *finding.Code
		subject string
	}
	folder struct {
		prefix   string
		resource gvr.GroupResource
	}
	space struct{ prefix, name string }
	hold  struct {
		space
		resource  gvr.GroupResource
		finalizer string
	}
	// stored is an object that later checks decode.
	stored struct {
		keys.Key
		entry *inspect.Entry
	}
	location struct {
		prefix    string
		resource  gvr.GroupResource
		namespace string
	}
)

// count counts an object by version and namespace.
func (d *doctor) count(key keys.Key, e *inspect.Entry, l *look) {
	if keys.IsCustom(key.Resource) {
		apiVersion := string(l.apiVersion)
		if apiVersion != "" {
			apiVersion += " " + string(l.kind)
		}
		at := folder{key.Prefix, key.Resource}
		d.versions.at(at).add(apiVersion, e.Key)
		for _, version := range l.managed {
			d.managed.at(at).add(string(version), e.Key)
		}
	}
	if key.Namespace != "" {
		d.contents.at(space{key.Prefix, key.Namespace}).add(key.Resource, e.Key)
	}
}

// managed has the apiVersions in managedFields.
var managed = encoding.FieldsOf[struct {
	Metadata struct {
		ManagedFields []struct {
			APIVersion string `json:"apiVersion"`
		} `json:"managedFields"`
	} `json:"metadata"`
}]()

// managedVersions lists the apiVersions in managedFields, each once; none of malformed ones.
func managedVersions(value []byte) (versions [][]byte) {
	content, err := managed.Decode(value)
	if err != nil {
		return nil
	}
	for _, entry := range content.Metadata.ManagedFields {
		versions = append(versions, []byte(entry.APIVersion))
	}
	return sorted(versions)
}

// sorted sorts texts, each once.
func sorted(texts [][]byte) [][]byte {
	slices.SortFunc(texts, bytes.Compare)
	return slices.CompactFunc(texts, bytes.Equal)
}

// keep keeps what later checks need of an object.
func (d *doctor) keep(key keys.Key, e *inspect.Entry, l *look) {
	d.locate(key, e, l)
	meta := l.meta
	if meta == nil {
		meta = &encoding.Meta{} // nothing below is about the object: see needsMeta
	}
	if !meta.DeletionTimestamp.IsZero() {
		for _, finalizer := range meta.Finalizers {
			d.held.add(hold{space{key.Prefix, key.Namespace}, key.Resource, finalizer}, e.Key)
		}
	}
	o, keep := stored{key, e}, false
	switch plain(key.Resource) {
	case "namespaces":
		d.namespaces[space{key.Prefix, key.Name}], d.whole[key.Prefix] = meta.Labels, true
		keep = !meta.DeletionTimestamp.IsZero()
	case "apiservices.apiregistration.k8s.io":
		d.serve(o)
	case "validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"masterleases", "nodes":
		keep = true
	case "leases.coordination.k8s.io":
		if l.beat != nil {
			d.beats[key.Name] = *l.beat
		}
	case "secrets":
		keep = meta.Annotations[corev1.ServiceAccountNameKey] != ""
	}
	if keep {
		d.kept[key.Resource.Resource] = append(d.kept[key.Resource.Resource], o)
	}
}

// locate records the location and the owners of an object, and reports a second object of one UID.
func (d *doctor) locate(key keys.Key, e *inspect.Entry, l *look) {
	at := d.places.id(location{key.Prefix, key.Resource, key.Namespace})
	if l.hasUID && !isRecord(key.Resource) { // API servers' own records have none
		if other, twice := d.uids.put(l.uid, at); twice {
			place := d.places.all[other]
			where := plain(place.resource)
			if place.namespace != "" {
				where += " in namespace " + place.namespace
			}
			d.raise(e.Key, codeDuplicateUID, "its UID %s is also that of an object of %s", l.uidText(e), where)
		}
	}
	if len(l.owners) == 0 || l.meta != nil && l.meta.DeletionTimestamp.Unix() > 0 || key.Resource.Resource == "events" {
		return
	}
	for _, o := range l.owners {
		d.refs = append(d.refs, reference{toUID(o.UID), d.kindOf.id(ownerKind{string(o.APIVersion), string(o.Kind)})})
	}
	d.owned = append(d.owned, owned{e.Key, at, uint32(len(l.owners))})
}
