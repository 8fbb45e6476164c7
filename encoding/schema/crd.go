package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/etcdshift/etcdshift/encoding"
)

// ErrNoVersion is returned for a version not listed in the CRD. A server calls an object stored at
// such a version corrupt.
var ErrNoVersion = errors.New("not a version of the CustomResourceDefinition")

// ErrNeedsWebhook is returned if only the CRD's conversion webhook can convert an object.
var ErrNeedsWebhook = errors.New("conversion needs the CustomResourceDefinition's webhook")

// CRD is a CustomResourceDefinition with the schemas of its versions.
type CRD struct {
	internal *apiextensions.CustomResourceDefinition
	v1       *apiextensionsv1.CustomResourceDefinition
	stored   []string // status.storedVersions before defaulting
	versions map[string]*Version
	prefix   string // group and slash of the apiVersions
}

// ParseCRD reads a stored CustomResourceDefinition: JSON of apiextensions.k8s.io v1beta1 or v1, or
// CBOR. Version compiles the schemas.
func ParseCRD(data []byte) (*CRD, error) {
	internal, stored, err := crdCodec().decode(data)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	c := &CRD{internal: internal, v1: &apiextensionsv1.CustomResourceDefinition{}, stored: stored,
		versions: map[string]*Version{}}
	if internal.Spec.Group != "" { // kcp has definitions in the core group
		c.prefix = internal.Spec.Group + "/"
	}
	// The conversion restores hoisted fields of v1beta1 (schema, subresources, columns) to the
	// versions.
	if err := crdCodec().scheme.Convert(internal, c.v1, nil); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", internal.Name, err)
	}
	for i := range c.v1.Spec.Versions {
		spec := &c.v1.Spec.Versions[i]
		if c.versions[spec.Name] != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %q: version %q is listed twice", c.v1.Name, spec.Name)
		}
		c.versions[spec.Name] = newVersion(c, spec)
	}
	return c, nil
}

// Object returns the v1 form with defaults, as read by a client. The result is shared: do not
// modify it.
func (c *CRD) Object() *apiextensionsv1.CustomResourceDefinition { return c.v1 }

// StoredVersions returns status.storedVersions exactly as stored. Object has a default for an empty
// list.
func (c *CRD) StoredVersions() []string { return slices.Clone(c.stored) }

// GroupKind returns the group and kind of the objects governed by the schemas:
// status.acceptedNames, or spec.names before a server accepted any names.
func (c *CRD) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: c.v1.Spec.Group, Kind: cmp.Or(c.v1.Status.AcceptedNames.Kind, c.v1.Spec.Names.Kind)}
}

// GroupResource returns the resource in the etcd keys of the objects: status.acceptedNames, or
// spec.names before a server accepted any names.
func (c *CRD) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: c.v1.Spec.Group, Resource: cmp.Or(c.v1.Status.AcceptedNames.Plural,
		c.v1.Spec.Names.Plural)}
}

// StorageVersion returns the version at which a server stores the next write, "" if the CRD has
// none.
func (c *CRD) StorageVersion() string {
	for _, v := range c.v1.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// Served reports whether the CRD serves the version. Versions that are not served are converted
// too.
func (c *CRD) Served(name string) bool {
	v, ok := c.versions[name]
	return ok && v.spec.Served
}

// PreferredVersion returns the first served version in discovery, by Kubernetes' version priority,
// or "" if no version is served.
func (c *CRD) PreferredVersion() string {
	preferred := ""
	for name, v := range c.versions {
		if v.spec.Served && (preferred == "" || kubeversion.CompareKubeAwareVersionStrings(name, preferred) > 0) {
			preferred = name
		}
	}
	return preferred
}

// Version returns a version with a compiled schema: ErrNoVersion if the CRD does not list the
// version, another error if no server would serve its schema.
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

// encode returns the stored form of a CRD: v1beta1 JSON (kubernetes#82292) and a newline.
func encode(crd *apiextensions.CustomResourceDefinition) ([]byte, error) {
	data, err := runtime.Encode(crdCodec().encoder, crd)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", crd.Name, err)
	}
	return data, nil
}

// maxDepth limits the nesting of a CRD. A schema level costs two levels of JSON, and the decoder
// reads a nested list schema again at each level. Real CRDs stay below 100.
const maxDepth = 512

// codec decodes and encodes CRDs like the storage of an API server.
type codec struct {
	scheme  *runtime.Scheme
	decoder runtime.Decoder // neither defaults nor converts
	encoder runtime.Encoder // v1beta1 JSON
}

var crdCodec = sync.OnceValue(func() codec {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	factory := serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	return codec{
		scheme:  scheme,
		decoder: factory.UniversalDeserializer(),
		encoder: factory.LegacyCodec(v1beta1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion),
	}
})

// decode returns the CRD in the internal type, with defaults, and its storedVersions before
// defaulting.
func (c codec) decode(data []byte) (*apiextensions.CustomResourceDefinition, []string, error) {
	if err := checkValue(data); err != nil {
		return nil, nil, err
	}
	obj, gvk, err := c.decoder.Decode(data, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	var stored []string
	switch crd := obj.(type) {
	case *v1beta1.CustomResourceDefinition:
		stored = crd.Status.StoredVersions
	case *apiextensionsv1.CustomResourceDefinition:
		stored = crd.Status.StoredVersions
	default:
		return nil, nil, fmt.Errorf("%s is not a CustomResourceDefinition", gvk)
	}
	stored = slices.Clone(stored)
	c.scheme.Default(obj)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := c.scheme.Convert(obj, internal, nil); err != nil {
		return nil, nil, err
	}
	return internal, stored, nil
}

// checkValue accepts JSON of limited depth, and CBOR, whose decoder has its own limit. Without this
// check, codec.decoder would also accept YAML and protobuf.
func checkValue(data []byte) error {
	switch format := encoding.Detect(data); format {
	case encoding.FormatJSON:
		return checkDepth(data)
	case encoding.FormatCBOR:
		return nil
	case encoding.FormatEncrypted:
		return encoding.ErrEncrypted
	default:
		return fmt.Errorf("%w of a CustomResourceDefinition: %s", encoding.ErrUnknownFormat, format)
	}
}

// checkDepth counts brackets outside strings.
func checkDepth(json []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(json); i++ {
		switch b := json[i]; {
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case inString:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("nested more than %d levels deep", maxDepth)
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}
