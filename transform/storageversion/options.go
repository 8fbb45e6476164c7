package storageversion

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/conversion"
)

// Options of a migration. The zero value migrates every custom resource to settled bytes, and needs no converter where the
// conversion strategy is None.
type Options struct {
	// CRDs, Groups and Selector choose CustomResourceDefinitions: by name, by group, by their labels. Empty ones choose all.
	CRDs, Groups []string
	Selector     labels.Selector
	// Exclude names CustomResourceDefinitions that stay as they are.
	Exclude []string
	// Mode says which of the two results of a no-op write is stored.
	Mode schema.Mode
	// To is made the storage version of each chosen CustomResourceDefinition first; empty: the one that it is.
	To string
	// Mappings say which version takes the place of one that a CustomResourceDefinition no longer lists.
	Mappings []Mapping
	// KeepManagedFields leaves metadata.managedFields as they are, also where server-side apply fails on them.
	KeepManagedFields bool
	// AllManagedFields relabels entries at every version but the storage version, so that those versions can be removed.
	AllManagedFields bool
	// Converters do what the conversion webhooks of a group would.
	Converters map[string]Converter
	// Rewrap encrypts every value of the snapshot by the provider and key that the encryption configuration names first.
	Rewrap bool
}

// Mapping gives objects of GROUP/Old, a version without a schema, the apiVersion GROUP/New.
type Mapping struct{ Group, Old, New string }

// Converter converts objects as the conversion webhook of crd would. conversion.Converter is one.
type Converter interface {
	Convert(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string, objs []map[string]any) ([]conversion.Converted, error)
}

// chooses says whether the options name a CustomResourceDefinition.
func (o *Options) chooses(c *schema.CRD) bool {
	obj := c.Object()
	return o.names(obj.Name, obj.Spec.Group) && (o.Selector == nil || o.Selector.Matches(labels.Set(obj.Labels)))
}

// names is chooses without the labels.
func (o *Options) names(name, group string) bool {
	switch {
	case slices.Contains(o.Exclude, name):
		return false
	case len(o.CRDs) > 0 && !slices.Contains(o.CRDs, name):
		return false
	}
	return len(o.Groups) == 0 || slices.Contains(o.Groups, group)
}

// checkNames makes an error of names that no CustomResourceDefinition of the snapshot has: one that is spelled wrong would
// choose nothing, or exclude nothing, and not say so. webhooks are the groups with one that a webhook converts.
func (o *Options) checkNames(names, groups, webhooks map[string]bool) error {
	for _, given := range []struct {
		flag string
		list []string
		in   map[string]bool
	}{{"CustomResourceDefinition", slices.Concat(o.CRDs, o.Exclude), names}, {"group", o.Groups, groups}} {
		for _, name := range given.list {
			if !given.in[name] {
				return fmt.Errorf("%w: %s %q", ErrNotThere, given.flag, name)
			}
		}
	}
	for _, m := range o.Mappings {
		if !groups[m.Group] {
			return fmt.Errorf("%w: group %q", ErrNotThere, m.Group)
		}
	}
	for group := range o.Converters {
		if !webhooks[group] { // a converter that is not asked, since a strategy was set to None, would be missed in the result
			return fmt.Errorf("%w: a CustomResourceDefinition of group %q that a webhook converts", ErrNotThere, group)
		}
	}
	return nil
}
