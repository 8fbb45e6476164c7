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
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// Catalogue lists the resources of a snapshot, and the stored versions of their objects.
type Catalogue struct {
	Flavour   keys.Flavour   `json:"flavour"`   // of the file as a whole
	Prefixes  []keys.Storage `json:"prefixes"`  // as in keys.Layouts
	Resources []Resource     `json:"resources"` // by prefix, name and identity
	Other     int            `json:"other"`     // keys of no resource
}

// Resource is a folder of objects. In kcp, a Resource has the objects of all logical clusters and
// no Definition, since each logical cluster may have its own definition.
type Resource struct {
	Prefix     string      `json:"prefix"`
	Resource   string      `json:"resource"`           // "pods", "widgets.example.com"
	Identity   string      `json:"identity,omitempty"` // kcp: of the APIExport of the type
	Objects    int         `json:"objects"`
	Versions   []Version   `json:"versions"`             // by apiVersion and kind
	Definition *Definition `json:"definition,omitempty"` // of custom resources
	Orphans    bool        `json:"orphans,omitempty"`    // custom resources without a definition, unserved
}

// Definition has the versions of a CustomResourceDefinition.
type Definition struct {
	Name           string   `json:"name"`
	StorageVersion string   `json:"storageVersion"`
	Listed         []string `json:"listed"`          // spec.versions
	Served         []string `json:"served"`          // the served versions of Listed
	StoredVersions []string `json:"storedVersions"`  // status.storedVersions, as stored
	Webhook        bool     `json:"webhook"`         // objects need a webhook for their conversion to other versions
	Error          string   `json:"error,omitempty"` // why the definition is unreadable; then only Name is set
}

// Standing is the status of a stored version in its CustomResourceDefinition.
type Standing string

// The standings of a version; "" for resources without a definition.
const (
	AtStorage Standing = "storage"  // the storage version
	Stale     Standing = "stale"    // listed, but not the storage version: unreadable once the definition drops it
	Unlisted  Standing = "unlisted" // not listed: no server reads or lists the objects
	Unknown   Standing = "unknown"  // version or definition is unreadable, or the kind is not the kind of the key
)

// Version has the objects of a resource at one stored version.
type Version struct {
	APIVersion string         `json:"apiVersion"` // "" if unreadable
	Kind       string         `json:"kind"`
	Objects    int            `json:"objects"`
	Standing   Standing       `json:"standing,omitempty"`
	Encrypted  map[string]int `json:"encrypted,omitempty"` // objects by "PROVIDER:VERSION:KEY"
	// of stale, unlisted or unknown objects, the first MaxKeys
	Keys []string `json:"keys,omitempty"`
}

// MaxKeys is the length limit of Version.Keys.
const MaxKeys = 1000

// Survey reads every value of a snapshot once.
func Survey(ctx context.Context, r *Reader) (*Catalogue, error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	s := survey{
		layouts: layouts, definitions: map[folder]*Definition{}, kinds: map[folder]gvr.GroupKind{},
		found: map[folder]map[typeMeta]*Version{}, custom: map[folder]bool{},
	}
	if err := s.readDefinitions(ctx, r); err != nil {
		return nil, err
	}
	item := func(e *Entry) (standingEntry, int) { return standingEntry{Entry: e}, len(e.Value) }
	for e, err := range stream.Ahead(r.snapshot.Guard, r.Live(ctx, nil), item, (*standingEntry).parse) {
		if err != nil {
			return nil, err
		}
		s.add(e)
	}
	return s.catalogue(), nil
}

// standingEntry is an entry with the type in its value.
type standingEntry struct {
	*Entry
	is typeMeta
}

func (e *standingEntry) parse() {
	_, _ = e.ParseKey()                                // kept by the entry
	if v, err := encoding.Parse(e.Value); err == nil { // parsed once, so not kept
		e.is.apiVersion, e.is.kind = v.GVK.ToAPIVersionAndKind()
	}
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

func (s *survey) readDefinitions(ctx context.Context, r *Reader) error {
	for _, storage := range s.layouts.Storages() {
		layout, ok := storage.Layout.(keys.Kubernetes)
		if !ok {
			continue
		}
		for e, err := range r.Live(ctx, layout.Dir(keys.DefinitionType())) {
			if err != nil {
				return err
			}
			key, err := e.ParseKey()
			if err != nil {
				continue // counted as Other
			}
			crd, err := schema.ParseCRD(e.Value)
			if err = cmp.Or(e.Undecryptable, err); err != nil {
				s.definitions[folder{prefix: storage.Prefix, resource: key.Name}] = &Definition{
					Name: key.Name, Listed: []string{}, Served: []string{}, StoredVersions: []string{},
					Error: err.Error(),
				}
				continue
			}
			at := folder{prefix: storage.Prefix, resource: crd.GroupResource().String()}
			s.definitions[at], s.kinds[at] = Define(crd), crd.GroupKind()
		}
	}
	return nil
}

// Define returns the versions of a definition.
func Define(crd *schema.CRD) *Definition {
	conversion := crd.Object().Spec.Conversion
	d := &Definition{
		Name: crd.Object().Name, StorageVersion: crd.StorageVersion(),
		StoredVersions: append([]string{}, crd.StoredVersions()...),
		Listed:         []string{}, Served: []string{}, Webhook: conversion != nil &&
			conversion.Strategy == apiextensionsv1.WebhookConverter,
	}
	for _, v := range crd.Object().Spec.Versions {
		d.Listed = append(d.Listed, v.Name)
		if v.Served {
			d.Served = append(d.Served, v.Name)
		}
	}
	return d
}

func (s *survey) add(e *standingEntry) {
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
	is := e.is
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

// standing returns the standing of a type in the definition of its folder.
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

// catalogue sorts the results, including definitions without objects.
func (s *survey) catalogue() *Catalogue {
	c := &Catalogue{Flavour: s.layouts.Flavour(), Prefixes: s.layouts.Storages(),
		Resources: []Resource{}, Other: s.other}
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
		r := Resource{Prefix: at.prefix, Resource: at.resource, Identity: at.identity, Definition: s.definitions[at],
			Versions: []Version{}}
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
		return cmp.Or(cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Identity, b.Identity))
	})
	return c
}
