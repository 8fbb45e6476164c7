package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// codec encodes the objects and lists of this package in every format that clients ask for. All
// other objects go through the scheme's own codec.
type codec struct {
	serializer.CodecFactory
	scheme    *runtime.Scheme
	formats   map[runtime.Encoder]format
	collected chan struct{} // a place for each list that may be in memory as a whole
}

// format is how an encoder of the scheme writes.
type format struct {
	mediaType string
	pretty    bool
	raw       bool // the message alone, in a watch
}

// mostCollected is the number of lists that are in memory as a whole at one time.
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

// EncoderForVersion returns the encoder of a format. Objects are at their version already.
func (c *codec) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return &encoder{codec: c, Encoder: c.CodecFactory.EncoderForVersion(e, gv), raw: e, format: c.formats[e]}
}

// DecoderToVersion returns a decoder that leaves an object at its version: there is no internal
// one.
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
		if e.format.mediaType == runtime.ContentTypeJSON {
			return e.streamList(o, w)
		}
		e.collected <- struct{}{}
		defer func() { <-e.collected }()
		if e.format.mediaType == runtime.ContentTypeProtobuf {
			return e.protobufList(o, w)
		}
		all, err := o.collect()
		if err != nil {
			return err
		}
		return e.raw.Encode(all, w)
	case *unstructured.Unstructured:
		if e.format.mediaType == runtime.ContentTypeProtobuf {
			typed, err := e.typed(o)
			if err != nil {
				return err
			}
			return e.raw.Encode(typed, w)
		}
		return e.raw.Encode(o, w)
	}
	return e.Encoder.Encode(obj, w)
}

// streamList writes a list in JSON while it is read. The first write is short, as a server's.
func (e *encoder) streamList(l *list, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	head, err := json.Marshal(struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
	}{l.TypeMeta, l.ListMeta})
	if err != nil {
		return err
	}
	open, before, between, behind := `,"items":[`, "", ",", "]}\n"
	if e.format.pretty {
		var indented bytes.Buffer
		if err := json.Indent(&indented, head, "", "  "); err != nil {
			return err
		}
		head = bytes.Replace(indented.Bytes(), []byte("\n}"), []byte("}"), 1) // the last one: metadata ends in "\n  }"
		open, before, between, behind = ",\n  \"items\": [", "\n    ", ",\n    ", "\n  ]\n}\n"
	}
	_, _ = out.Write(bytes.TrimSuffix(head, []byte("}"))) // an error of out comes back from Flush
	_, _ = out.WriteString(open)
	items := 0
	err = stream.Each(l.items, func(o *unstructured.Unstructured) error {
		if items++; items > 1 {
			before = between
		}
		_, _ = out.WriteString(before)
		return e.item(l, o, out)
	})
	if err != nil {
		return fmt.Errorf("%w (after the list began)", err)
	}
	if items == 0 {
		behind = strings.TrimPrefix(behind, "\n  ")
	}
	_, _ = out.WriteString(behind)
	return out.Flush()
}

// item writes an item of a list in JSON. Those of built-in kinds do not say what they are.
func (e *encoder) item(l *list, o *unstructured.Unstructured, out io.Writer) (err error) {
	if l.typed {
		delete(o.Object, "apiVersion")
		delete(o.Object, "kind")
	}
	var text []byte
	if e.format.pretty {
		text, err = json.MarshalIndent(o.Object, "    ", "  ")
	} else {
		text, err = json.Marshal(o.Object)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// message is an object that protobuf can write.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// typed turns an object into the Go type of its kind.
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
		return nil, fmt.Errorf("%s %s/%s has a field of another type than its kind", o.GetKind(), o.GetNamespace(), o.GetName()) // err may quote a value
	}
	return m, nil
}

// protobufList writes a list in protobuf: the length of all items stands before the first.
func (e *encoder) protobufList(l *list, w io.Writer) error {
	gvk := schema.FromAPIVersionAndKind(l.APIVersion, l.Kind)
	if !e.scheme.Recognizes(gvk) {
		return errNoProtobuf(gvk)
	}
	meta, err := l.ListMeta.Marshal()
	if err != nil {
		return err
	}
	raw := appendField(nil, 1, meta) // every list has its metadata in field 1 and its items in field 2
	err = stream.Each(l.items, func(o *unstructured.Unstructured) error {
		m, err := e.typed(o)
		if err != nil {
			return err
		}
		data, err := m.Marshal()
		raw = appendField(raw, 2, data)
		return err
	})
	if err != nil {
		return err
	}
	kind, err := (&runtime.TypeMeta{APIVersion: l.APIVersion, Kind: l.Kind}).Marshal()
	if err != nil {
		return err
	}
	head := appendField([]byte("k8s\x00"), 1, kind) // runtime.Unknown: typeMeta and raw
	head = protowire.AppendVarint(protowire.AppendTag(head, 2, protowire.BytesType), uint64(len(raw)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err = w.Write(raw)
	return err
}

func appendField(b []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), data)
}

// noProtobuf is the error for a kind that has no protobuf form, such as a custom resource.
type noProtobuf struct{ kind schema.GroupVersionKind }

func errNoProtobuf(kind schema.GroupVersionKind) error { return &noProtobuf{kind} }

func (e *noProtobuf) Error() string {
	return fmt.Sprintf("%s has no protobuf form: ask for JSON", e.kind.Kind)
}

// Status makes it a 406.
func (e *noProtobuf) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: 406, Reason: metav1.StatusReasonNotAcceptable, Message: e.Error()}
}
