package native

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// TestExponents checks that a quantity with very many digits is never computed, in any field, and
// that a label that looks like one is accepted. Computing takes hours.
func TestExponents(t *testing.T) {
	for text, bomb := range map[string]bool{
		"11111111111111111111e999999999": true, "11111111111111111111E99999999": true, "1.5e-999999999": true,
		"11111111111111111111e+99999999":  true,
		"-11111111111111111111e999999999": true, strings.Repeat("1", 99) + "e999999999": true,
		strings.Repeat("1", 45) + "e999999999": true,
		"1e9999":                               false, "12e4": false, "100Ei": false,
	} {
		for _, field := range []string{"limit", "divisor", "sizeLimit"} {
			json, proto := podOf(t, field, text, "x")
			for _, v := range []encoding.Value{json, proto} {
				_, err := DecodeParsed(v)
				if bomb {
					require.ErrorIs(t, err, errExponent, "%s %s", field, text)
					require.ErrorIs(t, Check(v), errExponent, "%s %s", field, text)
				} else {
					require.NoError(t, err, text)
				}
			}
		}
		if len(text) > 48 {
			continue // too long for a label
		}
		json, proto := podOf(t, "limit", "1234567", text)
		for _, v := range []encoding.Value{json, proto} {
			content, err := DecodeParsed(v)
			require.NoError(t, err)
			require.Equal(t, text, content["metadata"].(map[string]any)["labels"].(map[string]any)["a"])
			require.NoError(t, Check(v))
		}
	}
	number, err := encoding.Parse(
		[]byte(
			`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a","namespace":"b"},` +
				`"spec":{"limits":[{"max":{"cpu":1e-99999999}}]}}`))
	require.NoError(t, err)
	require.ErrorIs(t, Check(number), errExponent)
	for text, bomb := range map[string]bool{`1\u0065-99999999`: true, `1\\u0065-99999999`: false,
		`\u003c\u0026`: false} {
		v, err := encoding.Parse(
			[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","annotations":{"a":"` +
				text + `"}}}`))
		require.NoError(t, err)
		_, err = DecodeParsed(v)
		require.Equal(t, bomb, err != nil, text)
	}
}

// podOf returns a Pod with a quantity in a field and a label, as JSON and protobuf.
func podOf(t *testing.T, field, quantity, label string) (json, proto encoding.Value) {
	stand := "2" + strings.Repeat("1", len(quantity)-1) // as long
	q := resource.MustParse(stand)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{"a": label}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
	c := &pod.Spec.Containers[0]
	switch field {
	case "limit":
		c.Resources.Limits = corev1.ResourceList{"cpu": q}
	case "divisor":
		c.Env = []corev1.EnvVar{{Name: "e",
			ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu",
				Divisor: q}}}}
	case "sizeLimit":
		pod.Spec.Volumes = []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &q}}}}
	}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	proto = encoding.Value{GVK: gvk, Format: encoding.FormatProtobuf,
		Raw: bytes.Replace(raw, []byte(stand), []byte(quantity), 1)}
	content, err := DecodeParsed(encoding.Value{GVK: gvk, Format: encoding.FormatProtobuf, Raw: raw})
	require.NoError(t, err)
	text, err := encoding.EncodeObject(content, encoding.FormatJSON)
	require.NoError(t, err)
	json, err = encoding.Parse(bytes.Replace(text, []byte(`"`+stand+`"`), []byte(`"`+quantity+`"`), 1))
	require.NoError(t, err)
	return json, proto
}
