package native

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/etcdshift/etcdshift/encoding"
)

// ErrUnknownFields is returned for a protobuf value that this build would not write as it is: a
// newer Kubernetes wrote fields that its k8s.io/api lacks.
var ErrUnknownFields = errors.New("it has fields that this build does not know and would drop")

var (
	errNoField = errors.New("the kind has no such field")
	errUnfit   = errors.New("it is no object of the kind")

	errNotBase64 = errors.New("text in a field of bytes is not base64; plain text of a Secret goes into stringData")
)

// Encode returns the protobuf message of content, in place of the stored value v of a kind that is
// Known. Nothing but the difference between both changes, and messages that older servers left out
// are there, empty. It returns ErrUnknownFields, the
// errors of Decode, or what does not fit the kind, without its value.
func Encode(v encoding.Value, content map[string]any) ([]byte, error) {
	stored, err := decodeProtobuf(v)
	if err != nil {
		return nil, err
	}
	before, err := toContent(stored)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(v.GVK), err)
	}
	same, err := encode(v, stored, before, before)
	if err != nil || !bytes.Equal(same, v.Raw) && !(wellFormed(v.GVK, v.Raw) && decodesTo(stored, same)) {
		return nil, fmt.Errorf("%s: %w", name(v.GVK), ErrUnknownFields)
	}
	return encode(v, stored, before, content)
}

// EmptyBundle reports whether a webhook of a stored configuration has a caBundle of no bytes: a
// server's update leaves it out.
func EmptyBundle(v encoding.Value) bool {
	obj, _ := decodeProtobuf(v)
	empty := func(c admissionregistration.WebhookClientConfig) bool {
		return c.CABundle != nil && len(c.CABundle) == 0
	}
	switch obj := obj.(type) {
	case *admissionregistration.MutatingWebhookConfiguration:
		return slices.ContainsFunc(obj.Webhooks,
			func(w admissionregistration.MutatingWebhook) bool { return empty(w.ClientConfig) })
	case *admissionregistration.ValidatingWebhookConfiguration:
		return slices.ContainsFunc(obj.Webhooks,
			func(w admissionregistration.ValidatingWebhook) bool { return empty(w.ClientConfig) })
	}
	return false
}

// decodesTo reports whether a message of the same kind decodes to the object: no bytes and an empty
// list are the same there.
func decodesTo(obj runtime.Object, message []byte) bool {
	other := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(interface{ Unmarshal([]byte) error })
	return other.Unmarshal(message) == nil && equality.Semantic.DeepEqual(obj, other)
}

// encode is Encode without a check. Managed fields have an order of their own, which content lacks:
// where they did not change, they are taken from the stored object.
func encode(v encoding.Value, stored runtime.Object, before, content map[string]any) ([]byte, error) {
	obj, err := fromContent(v, content)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(managedFields(before), managedFields(content)) {
		from, err := meta.Accessor(stored)
		if err != nil {
			return nil, err
		}
		to, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		to.SetManagedFields(from.GetManagedFields())
	}
	message, ok := obj.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%s: %w", name(v.GVK), ErrUnknownKind)
	}
	return message.Marshal()
}

func managedFields(content map[string]any) any {
	metadata, _ := content["metadata"].(map[string]any)
	return metadata["managedFields"]
}

// fromContent turns JSON content into a typed object, without its apiVersion and kind, as its
// message is stored.
func fromContent(v encoding.Value, content map[string]any) (runtime.Object, error) {
	obj, err := scheme.Scheme.New(v.GVK)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(v.GVK), ErrUnknownKind)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, obj, true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(v.GVK), cmp.Or(Unfit(v, content), errUnfit))
	}
	if wide(content) { // the converter cuts numbers that their field cannot hold
		if err := Unfit(v, content); err != nil {
			return nil, fmt.Errorf("%s: %w", name(v.GVK), err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj, nil
}

// wide reports whether content has a number beyond 32 bits.
func wide(content any) bool {
	switch v := content.(type) {
	case map[string]any:
		for _, child := range v {
			if wide(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, wide)
	case int64:
		return v != int64(int32(v))
	case float64:
		return math.Abs(v) > math.MaxInt32
	}
	return false
}

// Unfit names the field for which content is no object of the kind of v; nil for none. It returns
// ErrUnknownKind, and never a value, which errors of the converter quote.
func Unfit(v encoding.Value, content map[string]any) error {
	obj, err := newObject(v.GVK)
	if err != nil {
		return ErrUnknownKind
	}
	text, err := json.Marshal(content)
	if err != nil {
		return errUnfit
	}
	strict, err := kjson.UnmarshalStrict(text, obj)
	var wrong *json.UnmarshalTypeError
	var unknown kjson.FieldError
	switch {
	case err == nil && len(strict) == 0:
		return nil
	case errors.As(err, new(base64.CorruptInputError)):
		return errNotBase64
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s: %w", wrong.Field, errFieldType)
	case err == nil && errors.As(errors.Join(strict...), &unknown):
		return fmt.Errorf("%s: %w", unknown.FieldPath(), errNoField)
	}
	return errUnfit
}
