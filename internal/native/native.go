package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// ErrUnknownKind is returned for a protobuf value of a kind that this build's k8s.io/api lacks: a
// removed kind, or a kind of a newer or aggregated API server. The wrapping error names the kind.
var ErrUnknownKind = errors.New("kind is not known to this build")

var errFieldType = errors.New("a field has a value that its type can't have")

// Known reports whether Decode reads protobuf values of the kind.
func Known(gvk schema.GroupVersionKind) bool { return scheme.Scheme.Recognizes(gvk) }

// Decode decodes a stored value as JSON content. It returns encoding.ErrEncrypted,
// encoding.ErrUnknownFormat, ErrUnknownKind, or an error that describes the damage.
func Decode(value []byte) (map[string]any, error) {
	v, err := encoding.Parse(value)
	if err != nil {
		return nil, err
	}
	return DecodeParsed(v)
}

// DecodeParsed decodes a parsed value as JSON content.
func DecodeParsed(v encoding.Value) (map[string]any, error) { return decodeParsed(v, true) }

// DecodeUnmanaged is DecodeParsed for callers that read no metadata.managedFields: these may be
// missing, since their content takes long to make.
func DecodeUnmanaged(v encoding.Value) (map[string]any, error) { return decodeParsed(v, false) }

func decodeParsed(v encoding.Value, managed bool) (map[string]any, error) {
	if v.Format != encoding.FormatProtobuf {
		obj, _, err := encoding.DecodeObject(v.Raw)
		if err == nil {
			err = checkExponents(v)
		}
		return obj, err
	}
	obj, err := decodeProtobuf(v)
	if err != nil {
		return nil, err
	}
	if !managed {
		dropManaged(obj)
	}
	content, err := Content(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name(v.GVK), err)
	}
	content["apiVersion"], content["kind"] = v.GVK.ToAPIVersionAndKind()
	return content, nil
}

// dropManaged removes the managedFields of an object, unless some have no content.
func dropManaged(obj runtime.Object) {
	of, err := meta.Accessor(obj)
	if err != nil || slices.ContainsFunc(of.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.FieldsV1 != nil && !isFieldSet(m.FieldsV1.GetRawBytes())
	}) {
		return
	}
	of.SetManagedFields(nil)
}

// As decodes a parsed value into a typed object; unknown fields are dropped. The parameters are the
// results of encoding.Parse; its error is returned.
func As[T any](v encoding.Value, err error) (out T, _ error) {
	if err != nil {
		return out, err
	}
	if scheme.Scheme.AllKnownTypes()[v.GVK] == reflect.TypeFor[T]() && Decodes(v) {
		if obj, err := decodeProtobuf(v); err == nil { // in a tenth of the time
			obj.GetObjectKind().SetGroupVersionKind(v.GVK)
			return *any(obj).(*T), nil
		}
	}
	content, err := DecodeParsed(v)
	if err != nil {
		return out, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &out)
	return out, err
}

// Check returns the reason why an API server cannot decode the value as its own kind. It returns
// ErrUnknownKind for protobuf of an unknown kind, and accepts JSON and CBOR of such kinds. No error
// quotes the value.
func Check(v encoding.Value) error {
	if v.Format == encoding.FormatProtobuf {
		if wellFormed(v.GVK, v.Raw) {
			return nil
		}
		_, err := decodeProtobuf(v)
		return err
	}
	obj, err := newObject(v.GVK)
	if err != nil || v.Format != encoding.FormatJSON {
		return nil // a custom resource; native objects are never stored as CBOR
	}
	if err := checkExponents(v); err != nil {
		return err
	}
	_, stored := obj.(interface{ Unmarshal([]byte) error })
	if _, is := obj.(*APIService); !stored && !is {
		return nil
	}
	err = utiljson.Unmarshal(v.Raw, obj) // the error may quote the value
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s: %s: %w", Name(v.GVK), wrong.Field, errFieldType)
	case err != nil:
		return fmt.Errorf("%s: %w", Name(v.GVK), errFieldType)
	}
	return nil
}

// CheckServed returns ErrUnknownKind for a built-in kind at a version that no API server of
// LinkedRelease decodes, also if the content of its JSON can be read.
func CheckServed(gvk schema.GroupVersionKind) error {
	if DecodedBy(gvk, LinkedRelease) {
		return nil
	}
	return unknown(gvk)
}

// unknown returns ErrUnknownKind with the kind, or the last release that decodes its version.
func unknown(gvk schema.GroupVersionKind) error {
	if _, last := Releases(gvk); last > 0 && last < LinkedRelease {
		return fmt.Errorf("%s: %w", Name(gvk), removedError(last))
	}
	return fmt.Errorf("%s: %w", Name(gvk), ErrUnknownKind)
}

// removedError is an ErrUnknownKind with the last minor release that decodes the version.
type removedError int

func (last removedError) Error() string {
	return fmt.Sprintf("Kubernetes 1.%d is the last that decodes this version", int(last))
}

func (removedError) Unwrap() error { return ErrUnknownKind }

// name formats a kind: "v1 Secret".
func Name(gvk schema.GroupVersionKind) string {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return apiVersion + " " + kind
}

func decodeProtobuf(v encoding.Value) (runtime.Object, error) {
	obj, err := scheme.Scheme.New(v.GVK)
	message, ok := obj.(interface{ Unmarshal([]byte) error })
	if err != nil || !ok { // unknown, or registered but never stored as protobuf
		return nil, unknown(v.GVK)
	}
	if err := checkExponents(v); err != nil {
		return nil, err
	}
	if err := message.Unmarshal(v.Raw); err != nil {
		return nil, fmt.Errorf("%s: %w", Name(v.GVK), err)
	}
	return obj, nil
}

// Metadata reads apiVersion, kind and metadata, without managedFields, of a value of any kind.
// Errors are those of encoding.ReadMeta.
func Metadata(value []byte) (map[string]any, error) {
	m, err := encoding.ReadMeta(value)
	if err != nil {
		return nil, err
	}
	typed := metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: m.APIVersion, Kind: m.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: types.UID(m.UID), Generation: m.Generation,
			CreationTimestamp: metav1.NewTime(m.CreationTimestamp),
			Labels:            m.Labels, Annotations: m.Annotations, Finalizers: m.Finalizers,
		},
	}
	if !m.DeletionTimestamp.IsZero() {
		typed.DeletionTimestamp = new(metav1.NewTime(m.DeletionTimestamp))
	}
	for _, o := range m.OwnerReferences {
		typed.OwnerReferences = append(typed.OwnerReferences, metav1.OwnerReference{
			APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID),
			Controller: o.Controller, BlockOwnerDeletion: o.BlockOwnerDeletion,
		})
	}
	return Content(&typed)
}
