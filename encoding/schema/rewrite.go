package schema

import (
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errNotStorageVersion is returned for an object that was not converted to the storage version.
var errNotStorageVersion = errors.New("not at the storage version")

// Mode selects one of the two results of a no-op write.
type Mode int

const (
	// Settled is the object that further no-op writes leave unchanged: Pure, then decoded at the
	// storage version with its defaults. The generation stays.
	Settled Mode = iota
	// Pure is the result of one no-op write through the stored version. The next read applies the
	// storage version's own defaults, and the next write stores them.
	Pure
)

// Begin is the first half of a no-op write: Begin decodes obj in place like a server that reads obj
// from etcd, at its stored version (coerce, default), and returns the dropped paths. Errors are
// ErrNoVersion and ErrTooLarge. The conversion follows (Relabel, or the webhook's if NeedsWebhook),
// then Finish.
func (c *CRD) Begin(obj map[string]any) (dropped []string, err error) {
	stored, err := c.versionOf(obj)
	if err != nil {
		return nil, err
	}
	if dropped, err = stored.Coerce(obj); err != nil {
		return nil, err
	}
	return dropped, stored.Default(obj)
}

// NeedsWebhook reports whether only the conversion webhook can convert obj to the storage version.
func (c *CRD) NeedsWebhook(obj map[string]any) bool {
	return c.Webhook() && obj["apiVersion"] != c.storageAPIVersion()
}

// Relabel is the conversion of the strategy None: apiVersion becomes the storage version. Unknown
// fields stay until Finish. Objects that need the webhook stay unchanged.
func (c *CRD) Relabel(obj map[string]any) {
	if !c.NeedsWebhook(obj) {
		obj["apiVersion"] = c.storageAPIVersion()
	}
}

// Finish is the second half of a no-op write: Finish turns obj in place, converted to the storage
// version, into the stored object and returns the dropped paths. Malformed metadata, another
// version and endless defaults (ErrTooLarge) are errors.
func (c *CRD) Finish(obj map[string]any, m Mode) (dropped []string, err error) {
	storage, err := c.Version(c.StorageVersion())
	if err != nil {
		return nil, err
	}
	if obj["apiVersion"] != c.storageAPIVersion() {
		return nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, obj["apiVersion"],
			errNotStorageVersion)
	}
	strictly := func(obj map[string]any) ([]string, error) { return storage.coerce(obj, true) }
	steps := []func(map[string]any) ([]string, error){strictly, c.Begin, strictly}
	if m == Pure {
		steps = steps[:1]
	}
	for _, step := range steps {
		lost, err := step(obj)
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, lost...)
	}
	if meta, ok := obj["metadata"].(map[string]any); ok {
		// Every server clears these fields before storing an object.
		delete(meta, "resourceVersion")
		delete(meta, "selfLink")
	}
	return dropped, nil
}

// Rewrite is Begin, Relabel and Finish: Rewrite changes obj in place into the object that no-op
// writes at the storage version leave unchanged, or returns ErrNeedsWebhook.
func (c *CRD) Rewrite(obj map[string]any) (dropped []string, err error) {
	if dropped, err = c.Begin(obj); err != nil {
		return nil, err
	}
	if c.NeedsWebhook(obj) {
		return nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, obj["apiVersion"],
			ErrNeedsWebhook)
	}
	c.Relabel(obj)
	lost, err := c.Finish(obj, Settled)
	if err != nil {
		return nil, err
	}
	return append(dropped, lost...), nil
}

// storageAPIVersion returns the apiVersion of an object at the storage version.
func (c *CRD) storageAPIVersion() string {
	return schema.GroupVersion{Group: c.v1.Spec.Group, Version: c.StorageVersion()}.String()
}

// Convert changes obj in place from the version in its apiVersion to another version and returns
// the paths dropped by the target's schema. An object at the target version is only coerced and
// needs no webhook. Errors are ErrNoVersion unless the CRD lists both versions, and ErrNeedsWebhook
// unless the strategy is None. Convert applies no defaults.
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
			return nil, fmt.Errorf("CustomResourceDefinition %q: from %s to %s: %w", c.v1.Name, from.spec.Name, to,
				ErrNeedsWebhook)
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
