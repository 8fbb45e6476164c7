package encoding_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
)

// native is a generated Kubernetes type.
type native interface {
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// natives returns the files of testdata/k8s with their types.
func natives() map[string]func() native {
	return map[string]func() native{
		"apps.v1.DaemonSet":                        func() native { return &appsv1.DaemonSet{} },
		"apps.v1.Deployment":                       func() native { return &appsv1.Deployment{} },
		"apps.v1.ReplicaSet":                       func() native { return &appsv1.ReplicaSet{} },
		"apps.v1.StatefulSet":                      func() native { return &appsv1.StatefulSet{} },
		"core.v1.ConfigMap":                        func() native { return &corev1.ConfigMap{} },
		"core.v1.Pod":                              func() native { return &corev1.Pod{} },
		"core.v1.Secret":                           func() native { return &corev1.Secret{} },
		"extensions.v1beta1.DaemonSet":             func() native { return &extensionsv1beta1.DaemonSet{} },
		"networking.k8s.io.v1.NetworkPolicy":       func() native { return &networkingv1.NetworkPolicy{} },
		"rbac.authorization.k8s.io.v1.ClusterRole": func() native { return &rbacv1.ClusterRole{} },
	}
}

func TestNativesAreTheFiles(t *testing.T) {
	entries, err := os.ReadDir("testdata/k8s")
	require.NoError(t, err)
	found := 0
	for _, entry := range entries {
		if name, isProtobuf := strings.CutSuffix(entry.Name(), ".pb"); isProtobuf {
			require.Contains(t, natives(), name)
			found++
		}
	}
	require.Len(t, natives(), found)
}

// decode decodes the typed object in a protobuf value.
func decode(t testing.TB, data []byte, into native) native {
	t.Helper()
	v, err := encoding.Parse(data)
	require.NoError(t, err)
	require.NoError(t, into.Unmarshal(v.Raw))
	return into
}

// wrap returns a typed object in its stored form.
func wrap(t testing.TB, apiVersion, kind string, obj native) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	require.NoError(t, err)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	out, err := unknown.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), out...)
}

// rewrap returns the value before with another object.
func rewrap(t testing.TB, before []byte, obj native) []byte {
	t.Helper()
	m, err := encoding.ReadMeta(before)
	require.NoError(t, err)
	return wrap(t, m.APIVersion, m.Kind, obj)
}

// levels holds the fields of a message with nested messages to test.
type levels map[protowire.Number]levels

// metaLevels covers every message of the metadata, from runtime.Unknown down.
func metaLevels() levels {
	return levels{1: {}, 2: {1: {8: {}, 11: {}, 12: {}, 13: {}, 17: {7: {}}}}}
}

// workloadLevels also covers the messages of the pod template, in the given field of the spec.
func workloadLevels(template protowire.Number) levels {
	container := levels{7: {}} // without valueFrom: a literal value replaces valueFrom entirely
	all := metaLevels()
	all[2][2] = levels{template: {1: all[2][1], 2: {2: container, 20: container}}}
	return all
}

const unknownField protowire.Number = 4095

// sprinkle adds an unknown field before and after the content of every message in levels.
func sprinkle(t testing.TB, msg []byte, in levels, added *int) []byte {
	t.Helper()
	odd := func(text string) []byte {
		*added++
		return protowire.AppendString(protowire.AppendTag(nil, unknownField, protowire.BytesType), text)
	}
	out := odd("in front")
	for rest := msg; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		n := tag + protowire.ConsumeFieldValue(num, typ, rest[tag:])
		require.Greater(t, n, tag)
		if inner, known := in[num]; known {
			content, _ := protowire.ConsumeBytes(rest[tag:])
			out = protowire.AppendBytes(append(out, rest[:tag]...), sprinkle(t, content, inner, added))
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return append(out, odd("behind")...)
}

// strip removes and counts the unknown fields.
func strip(t testing.TB, msg []byte, in levels, dropped *int) []byte {
	t.Helper()
	var out []byte
	for rest := msg; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		n := tag + protowire.ConsumeFieldValue(num, typ, rest[tag:])
		require.Greater(t, n, tag)
		inner, known := in[num]
		switch {
		case num == unknownField:
			*dropped++
		case known:
			content, _ := protowire.ConsumeBytes(rest[tag:])
			out = protowire.AppendBytes(append(out, rest[:tag]...), strip(t, content, inner, dropped))
		default:
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// requireUnknownFieldsSurvive runs an edit with unknown fields at every level: all of them are
// kept, and without them the result equals that of an edit without unknown fields.
func requireUnknownFieldsSurvive(t testing.TB, data []byte, in levels, edit func([]byte) []byte) {
	t.Helper()
	var added, dropped int
	odd := append([]byte("k8s\x00"), sprinkle(t, data[4:], in, &added)...)
	require.Greater(t, added, 8)
	edited := edit(odd)
	require.False(t, bytes.Equal(odd, edited))
	plain := append([]byte("k8s\x00"), strip(t, edited[4:], in, &dropped)...)
	require.Equal(t, added, dropped)
	requireSame(t, edit(data), plain, "without the unknown fields")
}

// requireSame compares long values and shows the first difference.
func requireSame(t testing.TB, want, got []byte, name string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			require.Fail(t, "different bytes", "%s at %d: want %q, got %q", name, i, want[i:min(len(want), i+40)],
				got[i:min(len(got), i+40)])
		}
	}
	require.Len(t, got, len(want), name)
}
