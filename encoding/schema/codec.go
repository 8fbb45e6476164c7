package schema

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/etcdshift/etcdshift/encoding"
)

// maxDepth bounds the nesting of a CRD. A schema level costs two levels of JSON, and the decoder
// reads a nested list schema again at each level. Real CRDs stay below 100.
const maxDepth = 512

// codec decodes and encodes CRDs as an API server's storage does.
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

// decode returns the CRD in the internal type, defaulted, and its storedVersions before defaulting.
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

// checkValue accepts JSON of bounded depth and CBOR, whose decoder has a limit. The decoder would
// also take YAML and protobuf, as which no server stores a CRD.
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
