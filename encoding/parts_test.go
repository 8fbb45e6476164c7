package encoding

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const wholeObject = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","annotations":{"a":"b",` +
	`"kubectl.kubernetes.io/last-applied-configuration":"{\"x\":1}"},` +
	`"managedFields":[{"manager":"me"}]},"spec":{"a":1},"status":{}}` + "\n"

// TestMeasure checks the sizes of parts, and that no value has more parts than bytes.
func TestMeasure(t *testing.T) {
	v, p, err := Measure([]byte(wholeObject))
	require.NoError(t, err)
	require.Equal(t, "X", v.GVK.Kind)
	require.Equal(t, []Part{
		{Name: "apiVersion", Bytes: len(`"apiVersion":"v1"`)}, {Name: "kind", Bytes: len(`"kind":"X"`)},
		{Name: "metadata", Bytes: p.Fields[2].Bytes},
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
	_, c, err := Measure(cbor)
	require.NoError(t, err)
	sum = len("\xd9\xd9\xf7") + 1 // tag and head of the map
	for _, f := range c.Fields {
		sum += f.Bytes
	}
	require.InDelta(t, len(cbor), sum, float64(3*len(c.Fields)+3)) // each part was encoded with its own tag
	require.Positive(t, c.ManagedFields)
	require.Positive(t, c.LastApplied)
}

// TestMeasureMessage checks that the parts of a protobuf message add up to its size.
func TestMeasureMessage(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": "b", lastAppliedAnnotation: "{}"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}, {Manager: "y"}}},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	p, err := measureWire(raw)
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
	for n := range raw { // a message cut anywhere gives an error, or the parts before the cut
		p, err := measureWire(raw[:n])
		sum := 0
		for _, f := range p.Fields {
			sum += f.Bytes
		}
		require.True(t, err != nil || sum == n, n)
	}
	_, _, err = Measure([]byte(`{"apiVersion":"v1","kind":"X","metadata":1}`))
	require.Error(t, err)
}

// TestMeasureOwned checks that Owned misses no owner, in stored and in damaged values.
func TestMeasureOwned(t *testing.T) {
	random, owned, without := rand.New(rand.NewPCG(3, 4)), 0, 0
	check := func(data []byte) {
		meta, err := ReadMeta(data)
		has := err == nil && len(meta.OwnerReferences) > 0
		_, p, measureErr := Measure(data)
		if measureErr == nil && !p.Owned {
			require.False(t, has, "%q", data)
			without++
		} else if has {
			owned++
		}
	}
	require.NoError(t, filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		check(data)
		for range 200 {
			if len(data) == 0 || len(data) > 64<<10 {
				break
			}
			damaged := append([]byte{}, data...)
			damaged[random.IntN(min(len(data), 400))] = byte(random.IntN(256))
			check(damaged)
		}
		return err
	}))
	require.Positive(t, without)
	value, err := Set([]byte(`{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`), []any{
		map[string]any{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"},
		map[string]any{"apiVersion": "b/v1", "kind": "B", "name": "b", "uid": "v", "controller": true},
	}, "metadata", "ownerReferences")
	require.NoError(t, err)
	check(value)
	require.Positive(t, owned)
}
