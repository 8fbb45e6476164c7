package native

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
)

// direct reports whether Direct decodes a Pod with a field set, and checks that Decode accepts the
// Pod too.
func direct(t *testing.T, fields string) bool {
	t.Helper()
	pod := &corev1.Pod{}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: metav1.NewFieldsV1(fields)}}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	v := encoding.Value{Format: encoding.FormatProtobuf, GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Raw: raw}
	sure := NewDirect(pod, nil).Decode(v, &corev1.Pod{})
	if sure {
		_, err := DecodeParsed(v)
		require.NoError(t, err, "%q", fields)
	}
	return sure
}

func TestDirectFieldSets(t *testing.T) {
	const deep = 100
	for text, sure := range map[string]bool{
		`{}`: true, `{"f:a":{".":{},"k:{\"b\":\"c\"}":{}}}`: true, `{"f:a":"words","f:b":[1,true,null]}`: true,
		" {}": false, `{} `: true, `{}{}`: false, `{"f:a"}`: false, `"words"`: false, `[]`: false, `null`: false,
		``: false, `{"f:a":1e999}`: false, `{"f:a":` + strings.Repeat("1", 400) + `}`: false, "{\"\x00\":{}}": false,
		strings.Repeat(`{"a":`, deep-1) + "{}" + strings.Repeat("}", deep-1): true,
		strings.Repeat(`{"a":`, deep) + "{}" + strings.Repeat("}", deep):     false,
	} {
		require.Equal(t, sure, direct(t, text), "%q", text)
	}
}

func FuzzDirectFieldSets(f *testing.F) {
	for _, text := range []string{`{"f:a":"words","f:b":[1.5,true,null]}`, `{"k:{\"b\":\"c\"}":{}} `} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { direct(t, text) })
}
