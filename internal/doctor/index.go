package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
)

// index holds the results of one pass over the records.
type index struct {
	kinds      map[gvr.GroupKind]*inspect.Type
	groups     tally[group]
	encryption ordered[folder, tally[string]] // values by provider and key, "" for none
	unread     map[string]bool                // types with unreadable values

	always    map[gvr.GroupVersionKind]bool // built-in kinds: every release decodes the version
	sometimes tally[gvr.GroupVersionKind]   // objects of other built-in kinds
	notServed map[gvr.GroupVersionKind]bool // see unserved

	versions    ordered[folder, tally[string]] // custom resources by apiVersion and kind
	managed     ordered[folder, tally[string]] // by apiVersions in managedFields
	definitions ordered[folder, definition]
	unwritten   []folder                   // definitions not checked by writers
	undefined   map[gvr.GroupResource]bool // see orphans
	namespaces  map[space]labels.Set
	whole       map[string]bool // storage prefixes with namespaces: --etcd-servers-overrides may omit them
	contents    ordered[space, tally[gvr.GroupResource]]
	held        tally[hold] // terminating objects, by finalizer

	uids   map[objects.UID]uint32 // the numbers of places
	places places
	owned  []family
	kindOf interned[ownerKind]

	kept        map[string][]stored  // by type; it has the types of all checks
	beats       map[string]time.Time // the last heartbeats of nodes
	apiServices []apiService
	local       map[gvr.GroupVersion]bool // served by kube-apiserver: built in, or of definitions
	aggregated  map[gvr.GroupVersion]bool // served by another API server
}

type (
	// group is the subject of a finding about several records.
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
	// stored is an object decoded by later checks.
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

// place is a resource in one namespace below one storage prefix, with the counts of its objects.
// One struct holds all counts, so that an object costs one lookup.
type place struct {
	location
	number     uint32 // index in places.all
	name       string // of the resource, for people
	custom     bool
	kept       bool // for a check: see keeping
	encryption *tally[string]
	versions   *tally[string] // nil before the first counted object
	managed    *tally[string]
	contents   *tally[gvr.GroupResource]
	mentions   map[mention]string // subjects of findings, "" for none
}

// places holds places, numbered from 0.
type places struct {
	by  map[location]*place
	all []*place
}

// place returns the place of an object by its key.
func (d *index) place(key keys.Key) *place {
	at := location{key.Prefix, key.Resource, key.Namespace}
	p := d.places.by[at]
	if p == nil {
		p = &place{
			location: at, number: uint32(len(d.places.all)), name: plain(key.Resource),
			custom:     keys.IsCustom(key.Resource),
			encryption: d.encryption.at(folder{key.Prefix, key.Resource}),
		}
		_, p.kept = d.kept[p.name]
		d.places.by[at], d.places.all = p, append(d.places.all, p)
	}
	return p
}

// count counts an object by version and namespace.
func (d *index) count(p *place, e *inspect.Entry, l *look) {
	if p.custom {
		apiVersion := string(l.apiVersion)
		if apiVersion != "" {
			apiVersion += " " + string(l.kind)
		}
		if p.versions == nil {
			at := folder{p.prefix, p.resource}
			p.versions, p.managed = d.versions.at(at), d.managed.at(at)
		}
		p.versions.add(apiVersion, e.Key)
		for _, version := range l.managed {
			p.managed.add(string(version), e.Key)
		}
	}
	if p.namespace != "" {
		if p.contents == nil {
			p.contents = d.contents.at(space{p.prefix, p.namespace})
		}
		p.contents.add(p.resource, e.Key)
	}
}

// managed decodes the apiVersions in managedFields.
var managed = encoding.FieldsOf[struct {
	Metadata struct {
		ManagedFields []struct {
			APIVersion string `json:"apiVersion"`
		} `json:"managedFields"`
	} `json:"metadata"`
}]()

// managedVersions lists the apiVersions in managedFields, without duplicates; none of malformed
// ones.
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

// sorted sorts texts and removes duplicates.
func sorted(texts [][]byte) [][]byte {
	slices.SortFunc(texts, bytes.Compare)
	return slices.CompactFunc(texts, bytes.Equal)
}

// keep stores the parts of an object needed by later checks.
func (d *doctor) keep(key keys.Key, p *place, e *inspect.Entry, l *look) {
	d.locate(p, e, l)
	meta := l.meta
	if meta == nil {
		meta = &encoding.Meta{} // nothing below concerns the object: see needsMeta
	}
	if !meta.DeletionTimestamp.IsZero() {
		for _, finalizer := range meta.Finalizers {
			d.held.add(hold{space{key.Prefix, key.Namespace}, key.Resource, finalizer}, e.Key)
		}
		d.keepTerminating(stored{key, e}, p)
	}
	o, keep := stored{key, e}, p.kept
	switch p.name {
	case "namespaces":
		d.namespaces[space{key.Prefix, key.Name}], d.whole[key.Prefix] = meta.Labels, true
		keep = !meta.DeletionTimestamp.IsZero()
	case "apiservices.apiregistration.k8s.io":
		d.serve(o)
	case "leases.coordination.k8s.io":
		if l.beat != nil {
			d.beats[key.Name] = *l.beat
		}
	case "secrets":
		keep = meta.Annotations[corev1.ServiceAccountNameKey] != ""
	}
	if keep {
		d.kept[p.name] = append(d.kept[p.name], o)
	}
}

// locate stores the place and the owners of an object, and reports a second object of one UID.
func (d *doctor) locate(p *place, e *inspect.Entry, l *look) {
	if l.hasUID && !keys.IsRecord(p.resource) { // API servers' own records have none
		other, twice := d.uids[l.uid]
		if !twice {
			d.uids[l.uid] = p.number
		} else {
			where := d.places.all[other].name
			if in := d.places.all[other].namespace; in != "" {
				where += " in namespace " + in
			}
			d.raise(e.Key, codeDuplicateUID, "its UID %s is also that of an object of %s", l.uidText(e), where)
		}
	}
	if len(l.owners) == 0 || l.meta != nil && l.meta.DeletionTimestamp.Unix() > 0 || p.resource.Resource == "events" {
		return
	}
	last := len(d.owned) - 1
	if last < 0 || len(d.owned[last].owned) == familySize {
		last, d.owned = last+1, append(d.owned, family{owned: make([]owned, 0, familySize)})
	}
	f := &d.owned[last]
	for _, o := range l.owners {
		f.refs = append(f.refs, reference{objects.ToUID(o.UID),
			d.kindOf.id(ownerKind{string(o.APIVersion), string(o.Kind)})})
	}
	f.owned = append(f.owned, owned{e.Key, p.number, uint32(len(l.owners))})
}

// ordered is a map that keeps the order of its keys.
type ordered[K comparable, V any] struct {
	keys []K
	by   map[K]*V
}

// at returns the value of a key, a new one for a new key.
func (o *ordered[K, V]) at(k K) *V {
	if o.by == nil {
		o.by = map[K]*V{}
	}
	if o.by[k] == nil {
		o.by[k] = new(V)
		o.keys = append(o.keys, k)
	}
	return o.by[k]
}

func (o *ordered[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for _, k := range o.keys {
			if !yield(k, o.by[k]) {
				return
			}
		}
	}
}

// tally counts objects by a common property.
type tally[K comparable] struct {
	ordered[K, count]
	total count
}

// count is a number of objects, with the key of the first.
type count struct {
	objects int
	first   []byte
}

func (t *tally[K]) add(k K, key []byte) {
	for _, c := range []*count{t.at(k), &t.total} {
		if c.objects++; c.objects == 1 {
			c.first = key
		}
	}
}

// few joins the first words, up to most, and counts the others with a noun.
func few(words []string, most int, noun string) string {
	if n := len(words) - most; n > 0 {
		words = append(words[:most:most], fmt.Sprintf("and %d more%s", n, noun))
	}
	return strings.Join(words, ", ")
}

// list joins words for people.
func list(words []string) string { return cmp.Or(strings.Join(words, ", "), "none") }

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
