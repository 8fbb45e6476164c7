package storageversion

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

const namespaceJSON = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`

// protobufOf returns an object as kube-apiserver stores it, perhaps truncated.
func protobufOf(t testing.TB, apiVersion, kind string, obj runtime.ProtobufMarshaller, cut int) string {
	t.Helper()
	raw := make([]byte, obj.Size())
	_, err := obj.MarshalTo(raw)
	require.NoError(t, err)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw[:len(raw)-cut]}
	body, err := unknown.Marshal()
	require.NoError(t, err)
	return "k8s\x00" + string(body)
}

// TestUndecodableNatives checks that a value that no API server can decode as the kind of its key
// refuses the run.
func TestUndecodableNatives(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a", Namespace: "ns"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-a"}}
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"ns"},"data":{"k":"dg=="}}`
	cases := map[string]struct{ value, reason string }{
		"secrets/ns/cut":  {secret[:len(secret)-9], "unexpected end of JSON input"},
		"pods/ns/cut":     {protobufOf(t, "v1", "Pod", pod, 3), "unexpected EOF"},
		"configmaps/ns/a": {"nothing", "neither a JSON object nor protobuf"},
		"configmaps/ns/b": {" ", "1 bytes"},
		"secrets/ns/a": {strings.Replace(secret, `{"k":"dg=="}`, `5`, 1),
			"a field has a value that its type can't have"},
		"secrets/ns/other-kind": {protobufOf(t, "v1", "Pod", pod, 0), "a v1 Pod, under the key of a Secret"},
		"pods/ns/other-kind":    {secret, "a v1 Secret, under the key of a Pod"},
		"deployments/ns/a": {`{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"a"}}`,
			"under the key of a Deployment of apps"},
		"pods/ns/no-kind": {`{"apiVersion":"v1","metadata":{"name":"a"}}`,
			"apiVersion and kind are not those of an object"},
		"other.org/things/ns/a": {`{"apiVersion":"other.org/v1","kind":"Thing"`, "unexpected end of JSON input"},
		"masterleases/10.0.0.1": {"x", "1 bytes"},
	}
	c := newCluster(t, definition{versions: "v1*"}).add(resource{version: "v1", name: "w"})
	for key, row := range cases {
		c.put("/registry/"+key, row.value)
	}
	path := c.build()
	r := migrate(t, transform.Options{In: path}, Options{})
	require.ErrorIs(t, r.err, transform.ErrRefused)
	for key, row := range cases {
		at := slices.IndexFunc(r.Problems, func(p finding.Finding) bool {
			return p.Key == "/registry/"+key &&
				p.Level == finding.Error
		})
		require.GreaterOrEqual(t, at, 0, key)
		require.Equal(t, finding.Undecodable.Name, r.Problems[at].Code.Name)
		require.Contains(t, r.Problems[at].Reason, row.reason)
		require.NotContains(t, r.Problems[at].Reason, "dg==")
	}
	require.Empty(t, migrate(t, transform.Options{In: path, Allow: []string{finding.Undecodable.Name}},
		Options{}).changed())
}
