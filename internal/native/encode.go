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

// ErrUnknownFields is returned for a protobuf value that this build would not write unchanged: its
// k8s.io/api lacks fields of a newer Kubernetes.
var ErrUnknownFields = errors.New("it has fields that this build does not know and would drop")

var (
	errNoField = errors.New("the kind has no such field")
	errUnfit   = errors.New("it is no object of the kind")

	errNotBase64 = errors.New("text in a field of bytes is not base64; plain text of a Secret goes into stringData")
)

// Encode returns the protobuf message of content, to replace the stored value v of a Known kind.
// Only the differences change; messages omitted by older servers become empty messages. Encode
// returns ErrUnknownFields, the errors of Decode, or the field that does not fit the kind, without
// its value.
func Encode(v encoding.Value, content map[string]any) ([]byte, error) {
	stored, err := decodeProtobuf(v)
	if err != nil {
		return nil, err
	}
	before, err := Content(stored)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name(v.GVK), err)
	}
	same, err := encode(v, stored, before, before)
	if err != nil || !intact(v, stored, same) {
		return nil, fmt.Errorf("%s: %w", Name(v.GVK), ErrUnknownFields)
	}
	return encode(v, stored, before, content)
}

// EmptyBundle reports whether a webhook of a stored configuration has an empty caBundle: a server's
// update removes it.
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

// intact reports whether a message same, encoded from the decoded value v, has all fields of v.
func intact(v encoding.Value, decoded runtime.Object, same []byte) bool {
	return bytes.Equal(same, v.Raw) || wellFormed(v.GVK, v.Raw) && decodesTo(decoded, same)
}

// decodesTo reports whether a message of the same kind decodes to the object: empty bytes and an
// empty list count as missing.
func decodesTo(obj runtime.Object, message []byte) bool {
	other := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(interface{ Unmarshal([]byte) error })
	return other.Unmarshal(message) == nil && equality.Semantic.DeepEqual(obj, other)
}

// encode is Encode without a check. Managed fields have an order that content lacks: if unchanged,
// they are taken from the stored object.
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
		return nil, unknown(v.GVK)
	}
	return message.Marshal()
}

func managedFields(content map[string]any) any {
	metadata, _ := content["metadata"].(map[string]any)
	return metadata["managedFields"]
}

// fromContent converts JSON content to a typed object in its stored form, without apiVersion and
// kind.
func fromContent(v encoding.Value, content map[string]any) (runtime.Object, error) {
	obj, err := scheme.Scheme.New(v.GVK)
	if err != nil {
		return nil, unknown(v.GVK)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, obj, true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name(v.GVK), cmp.Or(Unfit(v, content), errUnfit))
	}
	if wide(content) { // the converter truncates numbers too large for their field
		if err := Unfit(v, content); err != nil {
			return nil, fmt.Errorf("%s: %w", Name(v.GVK), err)
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

// Unfit returns an error that names the field for which content does not fit the kind of v; nil for
// none. It may be ErrUnknownKind. Unlike errors of the converter it never quotes a value.
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
