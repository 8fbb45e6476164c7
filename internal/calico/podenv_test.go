package calico

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// setPodEnv sets a variable in all containers of a workload.
func setPodEnv(value []byte, name, to string) (out []byte, changed []string, err error) {
	return editContainers(value, func(container map[string]any) bool { return setEnv(container, name, to) })
}

// workload reads a stored workload as a migration does.
func workload(t testing.TB, value string) component {
	t.Helper()
	c := component{value: []byte(value)}
	pod, err := encoding.Get(c.value, podSpec()...)
	require.NoError(t, err)
	c.pod = pod.(map[string]any)
	c.meta, err = encoding.ReadMeta(c.value)
	require.NoError(t, err)
	return c
}

// requireGroup checks that every container has the variable: setting it changes nothing.
func requireGroup(t testing.TB, w component) {
	t.Helper()
	require.NotEmpty(t, containers(w.pod))
	out, changed, err := setPodEnv(w.value, envAPIGroup, apiVersionV3)
	require.NoError(t, err)
	require.Empty(t, changed, "%s %s", w.meta.Kind, w.meta.Name)
	require.Same(t, &w.value[0], &out[0])
}

// podsOfEachSort has one container for each state of the variable.
func podsOfEachSort() corev1.PodTemplateSpec {
	from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
	other := corev1.EnvVar{Name: "OTHER", Value: "x"}
	container := func(name string, env ...corev1.EnvVar) corev1.Container {
		return corev1.Container{Name: name, Image: "image", Env: env, Command: []string{"a"}}
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container("init", other)},
		Containers: []corev1.Container{
			container("none"),
			container("behind", other, corev1.EnvVar{Name: "LATER", ValueFrom: from}),
			container("same", corev1.EnvVar{Name: envAPIGroup, Value: apiVersionV3}, other),
			container("differs", other, corev1.EnvVar{Name: envAPIGroup, Value: "crd"}, other),
			container("empty", corev1.EnvVar{Name: envAPIGroup}),
			container("from", corev1.EnvVar{Name: envAPIGroup, ValueFrom: from}, other),
			container("twice", corev1.EnvVar{Name: envAPIGroup, Value: "a"},
				corev1.EnvVar{Name: envAPIGroup, Value: apiVersionV3}),
		},
		ServiceAccountName: "calico-node",
	}}
}

// setTyped applies the edit to the typed template.
func setTyped(template *corev1.PodTemplateSpec) {
	for _, list := range [][]corev1.Container{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range list {
			found := false
			for j, env := range list[i].Env {
				if env.Name == envAPIGroup {
					list[i].Env[j], found = corev1.EnvVar{Name: envAPIGroup, Value: apiVersionV3}, true
				}
			}
			if !found {
				list[i].Env = append(list[i].Env, corev1.EnvVar{Name: envAPIGroup, Value: apiVersionV3})
			}
		}
	}
}

// workloadsOfEachKind returns workloads, each with a function that changes its template like a
// server's update.
func workloadsOfEachKind(annotations map[string]string) map[runtime.Object]func() {
	meta := metav1.ObjectMeta{Name: "n", Namespace: "kube-system", Generation: 4, Annotations: annotations}
	ds := &appsv1.DaemonSet{ObjectMeta: *meta.DeepCopy(), Spec: appsv1.DaemonSetSpec{Template: podsOfEachSort()}}
	old := &extensionsv1beta1.DaemonSet{ObjectMeta: *meta.DeepCopy(),
		Spec: extensionsv1beta1.DaemonSetSpec{Template: podsOfEachSort(), TemplateGeneration: 7}}
	deployment := &appsv1.Deployment{ObjectMeta: *meta.DeepCopy(),
		Spec: appsv1.DeploymentSpec{Template: podsOfEachSort()}}
	return map[runtime.Object]func(){
		ds: func() {
			n, _ := strconv.Atoi(ds.Annotations[templateGeneration])
			metav1.SetMetaDataAnnotation(&ds.ObjectMeta, templateGeneration, strconv.Itoa(n+1))
			ds.Generation++
			setTyped(&ds.Spec.Template)
		},
		old: func() {
			old.Spec.TemplateGeneration++
			old.Generation++
			setTyped(&old.Spec.Template)
		},
		deployment: func() {
			deployment.Generation++
			setTyped(&deployment.Spec.Template)
		},
	}
}

// TestSetPodEnvEqualsTypedEdit: the bytes equal those marshalled by k8s.io/api after the same edit
// of the typed object and a server's update; a second edit changes nothing.
func TestSetPodEnvEqualsTypedEdit(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {"z": ""}, {"a": "b", templateGeneration: "41", "z": "y"}} {
		for obj, change := range workloadsOfEachKind(annotations) {
			kinds, _, err := scheme.Scheme.ObjectKinds(obj)
			require.NoError(t, err)
			obj.GetObjectKind().SetGroupVersionKind(kinds[0])
			apiVersion, kind := kinds[0].ToAPIVersionAndKind()
			asProtobuf, asJSON := envelope(t, apiVersion, kind, obj.(runtime.ProtobufMarshaller)), asText(t, obj)
			change()
			want := []string{"init", "none", "behind", "differs", "empty", "from", "twice"}
			out, changed, err := setPodEnv(asProtobuf, envAPIGroup, apiVersionV3)
			require.NoError(t, err)
			require.Equal(t, want, changed)
			require.Equal(t, envelope(t, apiVersion, kind, obj.(runtime.ProtobufMarshaller)), out, kind)
			requireGroup(t, workload(t, string(out)))

			out, changed, err = setPodEnv(asJSON, envAPIGroup, apiVersionV3)
			require.NoError(t, err)
			require.Equal(t, want, changed)
			require.JSONEq(t, string(asText(t, obj)), string(out), kind)
			requireGroup(t, workload(t, string(out)))
		}
	}
}

func asText(t testing.TB, obj any) []byte {
	t.Helper()
	out, err := json.Marshal(obj)
	require.NoError(t, err)
	return out
}

// TestSetPodEnvErrors: a template generation that is not a number, or has no successor, is an error
// without its value.
func TestSetPodEnvErrors(t *testing.T) {
	for _, value := range []string{"x7777", strconv.Itoa(math.MaxInt64), ""} {
		ds := daemonSet("kube-system", "calico-node", podsOfEachSort())
		ds.Annotations = map[string]string{templateGeneration: value}
		_, _, err := setPodEnv(envelope(t, "apps/v1", "DaemonSet", ds), "A", "b")
		require.EqualError(t, err, "metadata.annotations["+templateGeneration+
			"]: not a number that can be raised by one")
	}
	old := &extensionsv1beta1.DaemonSet{Spec: extensionsv1beta1.DaemonSetSpec{Template: podsOfEachSort(),
		TemplateGeneration: math.MaxInt64}}
	_, _, err := setPodEnv(envelope(t, "extensions/v1beta1", "DaemonSet", old), "A", "b")
	require.EqualError(t, err, "spec.templateGeneration: not a number that can be raised by one")
	ds := daemonSet("kube-system", "calico-node", podsOfEachSort())
	ds.Generation = math.MaxInt64
	_, _, err = setPodEnv(envelope(t, "apps/v1", "DaemonSet", ds), "A", "b")
	require.EqualError(t, err, "metadata.generation: not a number that can be raised by one")
	_, _, err = setPodEnv(envelope(t, "v1", "Pod", &corev1.Pod{}), "A", "b")
	require.ErrorIs(t, err, encoding.ErrUnknownFormat)
}

// FuzzSetPodEnv: afterwards every container has the value, and a second edit changes nothing.
func FuzzSetPodEnv(f *testing.F) {
	f.Add(envelope(f, "apps/v1", "DaemonSet", daemonSet("a", "b", podsOfEachSort())))
	f.Add(
		[]byte(
			`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{},` +
				`"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"A","valueFrom":{}}]}]}}}}`))
	f.Add([]byte("k8s\x00\x0a\x14\x0a\x07apps/v1\x12\x09DaemonSet\x12\x0b\x0a\x00\x12\x07\x12\x05\x12\x03\x12\x01c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, changed, err := setPodEnv(data, "A", "b")
		if err != nil {
			return
		}
		if len(changed) == 0 {
			require.Same(t, &data[0], &out[0])
		}
		again, none, err := setPodEnv(out, "A", "b")
		require.NoError(t, err)
		require.Empty(t, none)
		require.Same(t, &out[0], &again[0])
		before, err := encoding.Get(data, podSpec()...)
		require.NoError(t, err)
		after, err := encoding.Get(out, podSpec()...)
		require.NoError(t, err)
		was, _ := before.(map[string]any)
		is, _ := after.(map[string]any)
		require.Len(t, containers(is), len(containers(was)))
	})
}
