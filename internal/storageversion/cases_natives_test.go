package storageversion

import (
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

// protobufOf is an object as kube-apiserver stores it, whose bytes may be cut.
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

// TestUndecodableNatives: a value that no API server can decode as what its key says refuses the
// run, whatever is in it.
func TestUndecodableNatives(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a", Namespace: "ns"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-a"}}
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"ns"},"data":{"k":"dg=="}}`
	for name, c := range map[string]struct{ key, value, reason string }{
		"cut JSON":              {"secrets/ns/a", secret[:len(secret)-9], "unexpected end of JSON input"},
		"cut protobuf":          {"pods/ns/a", protobufOf(t, "v1", "Pod", pod, 3), "unexpected EOF"},
		"no object":             {"configmaps/ns/a", "nothing", "neither a JSON object nor protobuf"},
		"empty":                 {"configmaps/ns/b", " ", "1 bytes"},
		"field of another type": {"secrets/ns/a", strings.Replace(secret, `{"k":"dg=="}`, `5`, 1), "a field has a value that its type can't have"},
		"another kind":          {"secrets/ns/a", protobufOf(t, "v1", "Pod", pod, 0), "a v1 Pod, under the key of a Secret"},
		"another kind in JSON":  {"pods/ns/a", secret, "a v1 Secret, under the key of a Pod"},
		"another group":         {"deployments/ns/a", `{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"a"}}`, "a example.com/v1 Deployment, under the key of a Deployment of apps"},
		"no kind":               {"pods/ns/a", `{"apiVersion":"v1","metadata":{"name":"a"}}`, "apiVersion and kind are not those of an object"},
		"orphan":                {"other.org/things/ns/a", `{"apiVersion":"other.org/v1","kind":"Thing"`, "unexpected end of JSON input"},
		"masterlease":           {"masterleases/10.0.0.1", "x", "1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			key := "/registry/" + c.key
			r := newCluster(t, twoVersions()).add(resource{version: "v1", name: "w"}).put(key, c.value).migrate(Options{})
			require.ErrorIs(t, r.err, transform.ErrRefused)
			var reasons []string
			for _, p := range r.Problems {
				if p.Key == key && p.Level == finding.Error {
					require.Equal(t, finding.Undecodable.Name, p.Code.Name)
					reasons = append(reasons, p.Reason)
				}
			}
			require.Len(t, reasons, 1)
			require.Contains(t, reasons[0], c.reason)
			require.NotContains(t, reasons[0], "dg==")

			r = newCluster(t, twoVersions()).add(resource{version: "v1", name: "w"}).put(key, c.value).migrate(Options{}, finding.Undecodable.Name)
			require.NoError(t, r.err)
			require.Equal(t, c.value, r.out[key].value)
		})
	}
}

// TestDecodableNatives: what an API server reads passes, also what was stored by old releases, or
// newer ones.
func TestDecodableNatives(t *testing.T) {
	c := newCluster(t, twoVersions())
	for key, value := range map[string]string{
		"ingress/ns/a":                  `{"apiVersion":"extensions/v1beta1","kind":"Ingress","metadata":{"name":"a","namespace":"ns"}}`,
		"deployments/ns/a":              `{"apiVersion":"extensions/v1beta1","kind":"Deployment","metadata":{"name":"a","namespace":"ns"}}`,
		"events/ns/a":                   `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a","namespace":"ns"},"eventTime":null}`,
		"podsecuritypolicy/a":           protobufOf(t, "policy/v1beta1", "PodSecurityPolicy", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, 0),
		"novelties/ns/a":                protobufOf(t, "new.k8s.io/v9", "Novelty", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, 0),
		"masterleases/10.0.0.1":         `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":""}}`,
		"ranges/serviceips":             `{"apiVersion":"v1","kind":"RangeAllocation","metadata":{},"range":"10.0.0.0/8","data":""}`,
		"other.org/things/ns/a":         `{"apiVersion":"other.org/v1","kind":"Thing","metadata":{"name":"a","namespace":"ns"}}`,
		"services/endpoints/ns/a":       `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"a","namespace":"ns"}}`,
		"horizontalpodautoscalers/ns/a": `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a","namespace":"ns"}}`,
	} {
		c.put("/registry/"+key, value)
	}
	r := c.migrate(Options{})
	require.NoError(t, r.err, r.Problems)
}
