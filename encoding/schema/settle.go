package schema

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNotStorageVersion is returned by Finish for an object that is not at the
// storage version: it was not converted, or to another version.
var ErrNotStorageVersion = errors.New("not at the storage version")

// Mode says which of the values that a no-op write may leave Finish makes.
type Mode int

const (
	// Settled is what the object becomes once no-op writes no longer change it:
	// Pure, then decoded at the storage version, whose defaults that applies.
	// A server leaves any no-op write on it undone. The generation stays.
	Settled Mode = iota
	// Pure is what one no-op write through the stored version leaves: without
	// the defaults that only the storage version has. The next read applies
	// them, and the next write, whatever it is, stores them.
	Pure
)

// Begin is the first half of a no-op write: it decodes obj, in place, as a
// server reads it from etcd, at the version it is stored at (coerce, default),
// and returns the paths that this drops. ErrNoVersion where the CRD does not
// list that version, ErrTooLarge where its defaults know no end.
//
// What follows is the conversion (Relabel, or the webhook's where NeedsWebhook
// says so) and Finish.
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

// NeedsWebhook says whether only the conversion webhook can bring obj to the
// storage version. An object that is there needs none.
func (c *CRD) NeedsWebhook(obj map[string]any) bool {
	return c.Webhook() && obj["apiVersion"] != c.storageAPIVersion()
}

// Relabel is the whole conversion of the strategy None: apiVersion becomes the
// storage version's. Fields that the storage version does not know stay until
// Finish. An object that NeedsWebhook is left alone.
func (c *CRD) Relabel(obj map[string]any) {
	if !c.NeedsWebhook(obj) {
		obj["apiVersion"] = c.storageAPIVersion()
	}
}

// Finish is the second half of a no-op write: it turns obj, in place, as it
// came out of its conversion to the storage version, into what is stored, and
// returns the paths that this drops. Malformed metadata is an error, as after a
// conversion by a webhook; an object at another version is ErrNotStorageVersion,
// one whose defaults know no end ErrTooLarge.
func (c *CRD) Finish(obj map[string]any, m Mode) (dropped []string, err error) {
	storage, err := c.Version(c.StorageVersion())
	if err != nil {
		return nil, err
	}
	if obj["apiVersion"] != c.storageAPIVersion() {
		return nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, obj["apiVersion"], ErrNotStorageVersion)
	}
	if dropped, err = storage.coerce(obj, true); err != nil {
		return nil, err
	}
	if m == Settled {
		for _, strict := range []bool{false, true} {
			lost, err := storage.coerce(obj, strict)
			if err != nil {
				return nil, err
			}
			dropped = append(dropped, lost...)
			if strict {
				break
			}
			if err := storage.Default(obj); err != nil {
				return nil, err
			}
		}
	}
	if meta, ok := obj["metadata"].(map[string]any); ok {
		// Every server clears these before it stores an object.
		delete(meta, "resourceVersion")
		delete(meta, "selfLink")
	}
	return dropped, nil
}

// Settle changes obj, as decoded from etcd, in place into what it becomes at
// the storage version once no-op writes no longer change it, and returns the
// paths that are dropped on the way: Begin, Relabel and Finish as Settled.
// ErrNeedsWebhook where NeedsWebhook says so.
func (c *CRD) Settle(obj map[string]any) (dropped []string, err error) {
	if dropped, err = c.Begin(obj); err != nil {
		return nil, err
	}
	if c.NeedsWebhook(obj) {
		return nil, fmt.Errorf("CustomResourceDefinition %q: object of %q: %w", c.v1.Name, obj["apiVersion"], ErrNeedsWebhook)
	}
	c.Relabel(obj)
	lost, err := c.Finish(obj, Settled)
	if err != nil {
		return nil, err
	}
	return append(dropped, lost...), nil
}

// storageAPIVersion is the apiVersion of an object at the storage version.
func (c *CRD) storageAPIVersion() string {
	return schema.GroupVersion{Group: c.v1.Spec.Group, Version: c.StorageVersion()}.String()
}
