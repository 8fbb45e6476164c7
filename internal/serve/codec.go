package serve

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
)

// codec encodes the objects and lists of this package in every requested format. Other objects are
// encoded by the scheme's own codec.
type codec struct {
	serializer.CodecFactory
	scheme    *runtime.Scheme
	formats   map[runtime.Encoder]format
	collected chan struct{} // semaphore for lists that are in memory as a whole
}

// format describes the output of an encoder of the scheme.
type format struct {
	mediaType string
	pretty    bool
	raw       bool // without the envelope, in a watch
}

// mostCollected is the number of lists that may be in memory as a whole at the same time.
const mostCollected = 4

func newCodec(scheme *runtime.Scheme) *codec {
	c := &codec{
		CodecFactory: serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo)),
		scheme:       scheme, formats: map[runtime.Encoder]format{}, collected: make(chan struct{}, mostCollected),
	}
	for _, info := range c.SupportedMediaTypes() {
		c.formats[info.Serializer] = format{mediaType: info.MediaType}
		if info.PrettySerializer != nil {
			c.formats[info.PrettySerializer] = format{mediaType: info.MediaType, pretty: true}
		}
		if s := info.StreamSerializer; s != nil && s.Serializer != info.Serializer {
			c.formats[s.Serializer] = format{mediaType: info.MediaType, raw: true}
		}
	}
	return c
}

// EncoderForVersion returns the encoder of a format. Objects are already at the right version.
func (c *codec) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return &encoder{codec: c, Encoder: c.CodecFactory.EncoderForVersion(e, gv), raw: e, format: c.formats[e]}
}

// DecoderToVersion returns a decoder that keeps an object's version: there is no internal version.
func (c *codec) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return c.WithoutConversion().DecoderToVersion(d, gv)
}

// encoder encodes in one format.
type encoder struct {
	*codec
	runtime.Encoder // for other objects
	raw             runtime.Encoder
	format          format
}

// Encode writes an object or a list.
func (e *encoder) Encode(obj runtime.Object, w io.Writer) error {
	switch o := obj.(type) {
	case *list:
		return e.list(o, w)
	case *unstructured.Unstructured:
		if e.format.mediaType == runtime.ContentTypeProtobuf {
			typed, err := e.typed(o)
			if err != nil {
				return err
			}
			return e.raw.Encode(typed, w)
		}
		return e.raw.Encode(o, w)
	case *metav1.WatchEvent: // the scheme lacks WatchEvent in the groups of custom resources
		return e.raw.Encode(o, w)
	}
	return e.Encoder.Encode(obj, w)
}

// message is an object with a protobuf encoding.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// typed converts an object into the Go type of its kind.
func (e *encoder) typed(o *unstructured.Unstructured) (message, error) {
	obj, err := e.scheme.New(o.GroupVersionKind())
	if err != nil {
		return nil, errNoProtobuf(o.GroupVersionKind())
	}
	m, is := obj.(message)
	if !is {
		return nil, errNoProtobuf(o.GroupVersionKind())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m); err != nil {
		return nil, fmt.Errorf("%s %s/%s has a field of another type than its kind", o.GetKind(), o.GetNamespace(),
			o.GetName()) // err may quote a value
	}
	return m, nil
}

// noProtobuf is the error for a kind without a protobuf form, such as a custom resource.
type noProtobuf struct{ kind schema.GroupVersionKind }

func errNoProtobuf(kind schema.GroupVersionKind) error { return &noProtobuf{kind} }

func (e *noProtobuf) Error() string {
	return fmt.Sprintf("%s has no protobuf form: ask for JSON", e.kind.Kind)
}

// Status returns a status with code 406.
func (e *noProtobuf) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: 406, Reason: metav1.StatusReasonNotAcceptable,
		Message: e.Error()}
}
