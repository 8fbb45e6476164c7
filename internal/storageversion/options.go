package storageversion

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/conversion"
)

// Options of a migration. The zero value migrates every custom resource as no-op updates would, and
// needs no converter if the conversion strategy is None.
type Options struct {
	// CRDs, Groups and Selector choose CustomResourceDefinitions by name, group and labels. Empty
	// fields choose all.
	CRDs, Groups []string
	Selector     labels.Selector
	Exclude      []string    // names of CustomResourceDefinitions that stay unchanged
	Mode         schema.Mode // which of the two results of a no-op write is stored
	// new storage version of each chosen definition; empty: the present version
	To                string
	Mappings          []Mapping            // for versions that a CustomResourceDefinition no longer lists
	KeepManagedFields bool                 // keep metadata.managedFields, even if server-side apply fails on them
	AllManagedFields  bool                 // relabel entries at every other version, so that the version can be removed
	Converters        map[string]Converter // by group, in place of conversion webhooks
	Rewrap            bool                 // encrypt every value by the first configured provider and key
	// minor release of Kubernetes whose storage versions built-in kinds get; 0: they stay unchanged
	Release        int
	RemoveUnserved bool // delete objects of built-in kinds that Release does not have
	Helm           bool // replace versions that are not served in the manifests of Helm releases
}

// Mapping gives objects of GROUP/Old, a version without a schema, the apiVersion GROUP/New.
type Mapping struct{ Group, Old, New string }

// Converter converts objects as the conversion webhook of crd would. conversion.Converter is a
// Converter.
type Converter interface {
	Convert(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string,
		objs []map[string]any) ([]conversion.Converted, error)
}

// chooses reports whether the options choose a CustomResourceDefinition.
func (o *Options) chooses(c *schema.CRD) bool {
	obj := c.Object()
	return o.names(obj.Name, obj.Spec.Group) && (o.Selector == nil || o.Selector.Matches(labels.Set(obj.Labels)))
}

// names is chooses without the labels.
func (o *Options) names(name, group string) bool {
	return !slices.Contains(o.Exclude, name) && (len(o.CRDs) == 0 || slices.Contains(o.CRDs, name)) &&
		(len(o.Groups) == 0 || slices.Contains(o.Groups, group))
}

// checkNames refuses names without a CustomResourceDefinition in the snapshot: such names may be
// misspelled.
func (o *Options) checkNames(kinds []*kind) error {
	mapped := []string{}
	for _, m := range o.Mappings {
		mapped = append(mapped, m.Group)
	}
	for _, given := range []struct {
		list []string
		what string
		is   func(k *kind, name string) bool
	}{
		{slices.Concat(o.CRDs, o.Exclude), "CustomResourceDefinition %q",
			func(k *kind, name string) bool { return k.row.CRD == name }},
		{slices.Concat(o.Groups, mapped), "group %q", func(k *kind, name string) bool { return k.group == name }},
		{slices.Sorted(maps.Keys(o.Converters)), "a CustomResourceDefinition of group %q that a webhook converts",
			func(k *kind, name string) bool { return k.group == name && (k.crd == nil || k.crd.Webhook()) }},
	} {
		for _, name := range given.list {
			if !slices.ContainsFunc(kinds, func(k *kind) bool { return given.is(k, name) }) {
				return fmt.Errorf("%w: "+given.what, ErrNotThere, name)
			}
		}
	}
	return nil
}
