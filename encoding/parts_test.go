package encoding

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const wholeObject = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"{\"x\":1}"},` +
	`"managedFields":[{"manager":"me"}]},"spec":{"a":1},"status":{}}` + "\n"

// TestMeasureParts: parts are as long as they stand, and no value has more parts than bytes.
func TestMeasureParts(t *testing.T) {
	v, err := Parse([]byte(wholeObject))
	require.NoError(t, err)
	p, err := MeasureParts(v)
	require.NoError(t, err)
	require.Equal(t, []Part{
		{Name: "apiVersion", Bytes: len(`"apiVersion":"v1"`)}, {Name: "kind", Bytes: len(`"kind":"X"`)}, {Name: "metadata", Bytes: p.Fields[2].Bytes},
		{Name: "spec", Bytes: len(`"spec":{"a":1}`)}, {Name: "status", Bytes: len(`"status":{}`)},
	}, p.Fields)
	require.Equal(t, len(`"managedFields":[{"manager":"me"}]`), p.ManagedFields)
	require.Equal(t, len(`"kubectl.kubernetes.io/last-applied-configuration":"{\"x\":1}"`), p.LastApplied)
	sum := len(p.Fields) - 1 + len("{}\n") // commas
	for _, f := range p.Fields {
		sum += f.Bytes
	}
	require.Equal(t, len(wholeObject), sum)

	var obj map[string]any
	require.NoError(t, json.Unmarshal([]byte(wholeObject), &obj))
	cbor, err := EncodeObject(obj, FormatCBOR)
	require.NoError(t, err)
	v, err = Parse(cbor)
	require.NoError(t, err)
	c, err := MeasureParts(v)
	require.NoError(t, err)
	sum = len("\xd9\xd9\xf7") + 1 // tag and head of the map
	for _, f := range c.Fields {
		sum += f.Bytes
	}
	require.InDelta(t, len(cbor), sum, float64(3*len(c.Fields)+3)) // each part has been given a tag of its own
	require.Positive(t, c.ManagedFields)
	require.Positive(t, c.LastApplied)
}

// TestMeasurePartsOfMessages: a protobuf message is measured to its bytes.
func TestMeasurePartsOfMessages(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": "b", lastAppliedAnnotation: "{}"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}, {Manager: "y"}}},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	p, err := MeasureParts(Value{Format: FormatProtobuf, Raw: raw})
	require.NoError(t, err)
	sum := 0
	for i, f := range p.Fields {
		require.Equal(t, i+1, f.Number)
		sum += f.Bytes
	}
	require.Equal(t, len(raw), sum)
	without := pod.DeepCopy()
	without.ManagedFields = nil
	require.Equal(t, pod.ObjectMeta.Size()-without.ObjectMeta.Size(), p.ManagedFields)
	delete(without.Annotations, lastAppliedAnnotation)
	require.Equal(t, pod.ObjectMeta.Size()-without.ObjectMeta.Size()-p.ManagedFields, p.LastApplied)
	for n := range raw { // cut off anywhere: an error, or the parts before
		p, err := MeasureParts(Value{Format: FormatProtobuf, Raw: raw[:n]})
		sum := 0
		for _, f := range p.Fields {
			sum += f.Bytes
		}
		require.True(t, err != nil || sum == n, n)
	}
	_, err = MeasureParts(Value{Format: FormatJSON, Raw: []byte(`{"metadata":1}`)})
	require.Error(t, err)
}
