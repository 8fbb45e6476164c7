package schema

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Convert changes obj in place from the version in its apiVersion to another
// one and returns the paths that the target's schema drops: fields that exist
// in the old version only are lost. An object already at the target is only
// coerced, for which no webhook is needed.
//
// It returns ErrNoVersion unless the CRD lists both versions and ErrNeedsWebhook
// unless its conversion strategy is None. It applies no defaults: a server
// defaults with the source's schema before (see Settle) and with the target's
// only on the next read.
func (c *CRD) Convert(obj map[string]any, to string) (dropped []string, err error) {
	from, err := c.versionOf(obj)
	if err != nil {
		return nil, err
	}
	target, err := c.Version(to)
	if err != nil {
		return nil, err
	}
	if from != target {
		if c.needsWebhook() {
			return nil, fmt.Errorf("CustomResourceDefinition %q: from %s to %s: %w", c.v1.Name, from.Name(), to, ErrNeedsWebhook)
		}
		obj["apiVersion"] = schema.GroupVersion{Group: c.v1.Spec.Group, Version: to}.String()
	}
	return target.coerce(obj, true)
}

// Settle changes obj, as decoded from etcd, in place into what it becomes at
// the storage version once no-op writes no longer change it, and returns the
// paths that are dropped on the way. That is what one no-op write by a server
// leaves (decode, default and prune at the stored version, convert), done
// twice, because only the second applies the storage version's defaults. The
// generation stays.
func (c *CRD) Settle(obj map[string]any) (dropped []string, err error) {
	storage := c.StorageVersion()
	for range 2 {
		stored, err := c.versionOf(obj)
		if err != nil {
			return nil, err
		}
		pruned, err := stored.Coerce(obj)
		if err != nil {
			return nil, err
		}
		stored.Default(obj)
		lost, err := c.Convert(obj, storage)
		if err != nil {
			return nil, err
		}
		dropped = append(append(dropped, pruned...), lost...)
	}
	if meta, ok := obj["metadata"].(map[string]any); ok {
		// Every server clears these before it stores an object.
		delete(meta, "resourceVersion")
		delete(meta, "selfLink")
	}
	return dropped, nil
}

// versionOf is the version that obj's apiVersion names.
func (c *CRD) versionOf(obj map[string]any) (*Version, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err == nil && gv.Group == c.v1.Spec.Group {
		return c.Version(gv.Version)
	}
	return nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, apiVersion, ErrNoVersion)
}

func (c *CRD) needsWebhook() bool {
	conversion := c.v1.Spec.Conversion
	return conversion != nil && conversion.Strategy != apiextensionsv1.NoneConverter
}
