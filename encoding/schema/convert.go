package schema

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Convert changes obj in place from the version in its apiVersion to another one and returns the
// paths that the target's schema drops: fields of the old version only are lost. An object at the
// target is only coerced and needs no webhook.
//
// It returns ErrNoVersion unless the CRD lists both versions, and ErrNeedsWebhook unless the
// strategy is None. It applies no defaults: a server defaults with the source's schema before (see
// Settle), and with the target's on the next read.
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
		if c.Webhook() {
			return nil, fmt.Errorf("CustomResourceDefinition %q: from %s to %s: %w", c.v1.Name, from.spec.Name, to, ErrNeedsWebhook)
		}
		obj["apiVersion"] = schema.GroupVersion{Group: c.v1.Spec.Group, Version: to}.String()
	}
	return target.coerce(obj, true)
}

// versionOf returns the version in the apiVersion of obj.
func (c *CRD) versionOf(obj map[string]any) (*Version, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err == nil && gv.Group == c.v1.Spec.Group {
		return c.Version(gv.Version)
	}
	return nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, apiVersion, ErrNoVersion)
}

// Webhook reports whether the conversion strategy is not None.
func (c *CRD) Webhook() bool {
	conversion := c.v1.Spec.Conversion
	return conversion != nil && conversion.Strategy != apiextensionsv1.NoneConverter
}
