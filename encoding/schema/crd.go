package schema

import (
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

// ErrNoVersion is returned for a version that the CRD does not list, served or
// not. A server calls an object stored at such a version corrupt.
var ErrNoVersion = errors.New("not a version of the CustomResourceDefinition")

// ErrNeedsWebhook is returned where only the CRD's conversion webhook can
// convert an object.
var ErrNeedsWebhook = errors.New("conversion needs the CustomResourceDefinition's webhook")

// CRD is a CustomResourceDefinition with the schemas of its versions.
type CRD struct {
	internal *apiextensions.CustomResourceDefinition
	v1       *apiextensionsv1.CustomResourceDefinition
	stored   []string // status.storedVersions before defaulting
	versions map[string]*Version
}

// ParseCRD reads a CustomResourceDefinition as stored in etcd: JSON of
// apiextensions.k8s.io v1beta1 or v1 (CBOR too). Schemas are compiled by
// Version, not here.
func ParseCRD(data []byte) (*CRD, error) {
	internal, stored, err := crdCodec().decode(data)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	v1, err := crdCodec().v1(internal)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", internal.Name, err)
	}
	c := &CRD{internal: internal, v1: v1, stored: stored, versions: map[string]*Version{}}
	for i := range v1.Spec.Versions {
		v := newVersion(c, &v1.Spec.Versions[i])
		if _, twice := c.versions[v.Name()]; twice {
			return nil, fmt.Errorf("CustomResourceDefinition %q: version %q is listed twice", v1.Name, v.Name())
		}
		c.versions[v.Name()] = v
	}
	return c, nil
}

// Object is the v1 view, defaulted as a client reads it. It is shared: do not
// modify it.
func (c *CRD) Object() *apiextensionsv1.CustomResourceDefinition { return c.v1 }

// StoredVersions is status.storedVersions exactly as stored. Object shows the
// storage version where the stored list is empty.
func (c *CRD) StoredVersions() []string { return append([]string(nil), c.stored...) }

// GroupKind is what the objects' apiVersion and kind must name for a server to
// apply the schemas: status.acceptedNames, or spec.names before a server
// accepted any.
func (c *CRD) GroupKind() schema.GroupKind {
	kind := c.v1.Status.AcceptedNames.Kind
	if kind == "" {
		kind = c.v1.Spec.Names.Kind
	}
	return schema.GroupKind{Group: c.v1.Spec.Group, Kind: kind}
}

// GroupResource names the objects' folder in etcd, which follows
// status.acceptedNames like GroupKind.
func (c *CRD) GroupResource() schema.GroupResource {
	plural := c.v1.Status.AcceptedNames.Plural
	if plural == "" {
		plural = c.v1.Spec.Names.Plural
	}
	return schema.GroupResource{Group: c.v1.Spec.Group, Resource: plural}
}

// StorageVersion is the name of the version that writes are stored at; empty
// when the CRD names none.
func (c *CRD) StorageVersion() string {
	for _, v := range c.v1.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// Served says whether the CRD serves the named version. A server reads and
// converts objects of versions that it lists but does not serve.
func (c *CRD) Served(name string) bool {
	v, ok := c.versions[name]
	return ok && v.spec.Served
}

// PreferredVersion is the served version that discovery names first, by
// Kubernetes' version priority (v2, v1, v1beta2, v1alpha1, others by name);
// empty when none is served.
func (c *CRD) PreferredVersion() string {
	preferred := ""
	for name, v := range c.versions {
		if v.spec.Served && (preferred == "" || kubeversion.CompareKubeAwareVersionStrings(name, preferred) > 0) {
			preferred = name
		}
	}
	return preferred
}

// Version returns the named version, served or not, with its schema compiled:
// ErrNoVersion when the CRD has none of that name, another error when its
// schema is one that no server would serve.
func (c *CRD) Version(name string) (*Version, error) {
	v, ok := c.versions[name]
	if !ok {
		return nil, fmt.Errorf("CustomResourceDefinition %q: version %q: %w", c.v1.Name, name, ErrNoVersion)
	}
	if _, err := v.structural(); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: version %q: %w", c.v1.Name, name, err)
	}
	return v, nil
}

// Encode returns the CRD as an API server stores it: v1beta1 JSON with a final
// newline. It is byte-identical to a value that a server stored.
func (c *CRD) Encode() ([]byte, error) {
	data, err := crdCodec().encode(c.internal)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", c.v1.Name, err)
	}
	return data, nil
}
