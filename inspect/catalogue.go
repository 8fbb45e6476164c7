package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/keys"
)

// Catalogue says which resources a snapshot holds, and at which versions their objects are stored.
type Catalogue struct {
	Flavour   keys.Flavour   `json:"flavour"`   // of the file as a whole
	Prefixes  []keys.Storage `json:"prefixes"`  // the storage prefixes, in the order they were named and met
	Resources []Resource     `json:"resources"` // by prefix, name and identity
	// Other counts the keys that are in no resource's folder.
	Other int `json:"other"`
}

// Resource is a folder of objects. Those of kcp are of all logical clusters together, and have no Definition: a type may be
// defined in another way in each of them.
type Resource struct {
	Prefix     string      `json:"prefix"`
	Resource   string      `json:"resource"`           // "pods", "widgets.example.com"
	Identity   string      `json:"identity,omitempty"` // kcp: of the APIExport whose type it is
	Objects    int         `json:"objects"`
	Versions   []Version   `json:"versions"`             // what was found, by apiVersion and kind
	Definition *Definition `json:"definition,omitempty"` // of custom resources
	Orphans    bool        `json:"orphans,omitempty"`    // custom resources without a definition: no server serves them
}

// Definition is what a CustomResourceDefinition says of its versions.
type Definition struct {
	Name           string   `json:"name"`
	StorageVersion string   `json:"storageVersion"`
	Listed         []string `json:"listed"`          // spec.versions
	Served         []string `json:"served"`          // those of them that are served
	StoredVersions []string `json:"storedVersions"`  // status.storedVersions, as stored
	Webhook        bool     `json:"webhook"`         // objects not at the storage version need it to be converted
	Error          string   `json:"error,omitempty"` // why it cannot be read; then only its name is known
}

// Standing is how the version of an object fits its CustomResourceDefinition.
type Standing string

// The standings of a version. The empty one is that of resources without a definition.
const (
	AtStorage Standing = "storage"  // the storage version
	Stale     Standing = "stale"    // listed, but not the storage version: dropping it from the definition breaks these objects
	Unlisted  Standing = "unlisted" // not listed: no server reads them, nor lists the kind
	Unknown   Standing = "unknown"  // the version, or the definition, cannot be read, or the kind is not that of the key
)

// Version is the objects of a resource that are stored at one version.
type Version struct {
	APIVersion string         `json:"apiVersion"` // "" where it cannot be read
	Kind       string         `json:"kind"`
	Objects    int            `json:"objects"`
	Standing   Standing       `json:"standing,omitempty"`
	Encrypted  map[string]int `json:"encrypted,omitempty"` // objects by "PROVIDER:VERSION:KEY"
	Keys       []string       `json:"keys,omitempty"`      // of objects that are stale, unlisted or unknown, the first MaxKeys
}

// MaxKeys is how many keys a Version names.
const MaxKeys = 1000

// Survey reads every value of a snapshot once.
func Survey(ctx context.Context, r *Reader) (*Catalogue, error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	s := survey{layouts: layouts, definitions: map[folder]*Definition{}, kinds: map[folder]gvr.GroupKind{}, found: map[folder]map[typeMeta]*Version{}}
	if err := s.define(ctx, r); err != nil {
		return nil, err
	}
	for e, err := range r.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		s.add(e)
	}
	return s.catalogue(), nil
}

type (
	folder   struct{ prefix, resource, identity string }
	typeMeta struct{ apiVersion, kind string }
)

type survey struct {
	layouts     keys.Layouts
	definitions map[folder]*Definition
	kinds       map[folder]gvr.GroupKind
	found       map[folder]map[typeMeta]*Version
	custom      map[folder]bool
	other       int
}

// define reads the CustomResourceDefinitions.
func (s *survey) define(ctx context.Context, r *Reader) error {
	s.custom = map[folder]bool{}
	for _, storage := range s.layouts.Storages() {
		layout, ok := storage.Layout.(keys.Kubernetes)
		if !ok {
			continue
		}
		prefix := storage.Prefix
		dir := layout.Dir(keys.DefinitionType())
		for e, err := range r.Live(ctx, dir) {
			if err != nil {
				return err
			}
			key, err := e.ParseKey()
			if err != nil {
				continue // counted as one that is in no folder
			}
			crd, err := schema.ParseCRD(e.Value)
			if e.Undecryptable != nil {
				err = e.Undecryptable // says why
			}
			if err != nil {
				s.definitions[folder{prefix: prefix, resource: key.Name}] = &Definition{Name: key.Name, Listed: []string{}, Served: []string{}, StoredVersions: []string{}, Error: err.Error()}
				continue
			}
			at := folder{prefix: prefix, resource: crd.GroupResource().String()}
			s.definitions[at], s.kinds[at] = define(crd), crd.GroupKind()
		}
	}
	return nil
}

func define(crd *schema.CRD) *Definition {
	d := &Definition{
		Name: crd.Object().Name, StorageVersion: crd.StorageVersion(), StoredVersions: crd.StoredVersions(),
		Listed: []string{}, Served: []string{}, Webhook: crd.Object().Spec.Conversion != nil && crd.Object().Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter,
	}
	if d.StoredVersions == nil {
		d.StoredVersions = []string{}
	}
	for _, v := range crd.Object().Spec.Versions {
		d.Listed = append(d.Listed, v.Name)
		if v.Served {
			d.Served = append(d.Served, v.Name)
		}
	}
	return d
}

// add counts one value.
func (s *survey) add(e *Entry) {
	key, err := e.ParseKey()
	if err != nil {
		s.other++
		return
	}
	at := folder{key.Prefix, key.Resource.String(), key.Identity}
	if s.found[at] == nil {
		s.found[at] = map[typeMeta]*Version{}
		_, plain := e.Layout().(keys.Kubernetes)
		s.custom[at] = plain && keys.IsCustom(key.Resource)
	}
	var is typeMeta
	if v, err := e.ParseValue(); err == nil {
		is.apiVersion, is.kind = v.GVK.ToAPIVersionAndKind()
	}
	v := s.found[at][is]
	if v == nil {
		v = &Version{APIVersion: is.apiVersion, Kind: is.kind, Standing: s.standing(at, is)}
		if v.Standing == "" && checkKind(key, gvr.FromAPIVersionAndKind(is.apiVersion, is.kind)) != nil {
			v.Standing = Unknown
		}
		s.found[at][is] = v
	}
	v.Objects++
	if name, encrypted := encoding.Encryption(e.Stored); encrypted {
		if v.Encrypted == nil {
			v.Encrypted = map[string]int{}
		}
		v.Encrypted[name]++
	}
	if v.Standing != "" && v.Standing != AtStorage && len(v.Keys) < MaxKeys {
		v.Keys = append(v.Keys, string(e.Key))
	}
}

// standing tells how objects of one type fit the definition of the folder they are in.
func (s *survey) standing(at folder, is typeMeta) Standing {
	d := s.definitions[at]
	switch {
	case is.apiVersion == "":
		return Unknown
	case d == nil:
		return ""
	case d.Error != "":
		return Unknown
	}
	gv, err := gvr.ParseGroupVersion(is.apiVersion)
	switch {
	case err != nil || gv.WithKind(is.kind).GroupKind() != s.kinds[at]:
		return Unknown
	case gv.Version == d.StorageVersion:
		return AtStorage
	case slices.Contains(d.Listed, gv.Version):
		return Stale
	}
	return Unlisted
}

// catalogue puts what was found in order. Definitions without objects are part of it.
func (s *survey) catalogue() *Catalogue {
	c := &Catalogue{Flavour: s.layouts.Flavour(), Prefixes: s.layouts.Storages(), Resources: []Resource{}, Other: s.other}
	if c.Prefixes == nil {
		c.Prefixes = []keys.Storage{}
	}
	folders := maps.Clone(s.found)
	for at := range s.definitions {
		if folders[at] == nil {
			folders[at] = map[typeMeta]*Version{}
		}
	}
	for at, versions := range folders {
		r := Resource{Prefix: at.prefix, Resource: at.resource, Identity: at.identity, Definition: s.definitions[at], Versions: []Version{}}
		r.Orphans = s.custom[at] && r.Definition == nil
		for _, v := range versions {
			r.Objects += v.Objects
			r.Versions = append(r.Versions, *v)
		}
		slices.SortFunc(r.Versions, func(a, b Version) int {
			return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
		})
		c.Resources = append(c.Resources, r)
	}
	slices.SortFunc(c.Resources, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Identity, b.Identity))
	})
	return c
}
