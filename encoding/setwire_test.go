package encoding_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
)

const (
	groupEnv   = "CALICO_API_GROUP"
	groupValue = "projectcalico.org/v3 <&>"
	templateGn = "deprecated.daemonset.template.generation"
)

// workloads returns the files of testdata/k8s with a pod template, and the field number of the
// template.
func workloads() map[string]protowire.Number {
	return map[string]protowire.Number{
		"apps.v1.DaemonSet": 2, "extensions.v1beta1.DaemonSet": 2,
		"apps.v1.Deployment": 3, "apps.v1.ReplicaSet": 3, "apps.v1.StatefulSet": 3,
	}
}

func templateOf(t testing.TB, obj native) *corev1.PodSpec {
	t.Helper()
	switch o := obj.(type) {
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *extensionsv1beta1.DaemonSet:
		return &o.Spec.Template.Spec
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	}
	require.Fail(t, "no workload", "%T", obj)
	return nil
}

// fill gives the template one container for each case, and an init container.
func fill(t testing.TB, obj native) {
	pod := templateOf(t, obj)
	rich := pod.Containers[0]
	container := func(name string, env ...corev1.EnvVar) corev1.Container {
		c := *rich.DeepCopy()
		c.Name, c.Env = name, env
		return c
	}
	from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
	other := corev1.EnvVar{Name: "OTHER", Value: "x"}
	pod.InitContainers = []corev1.Container{container("init", other)}
	pod.Containers = []corev1.Container{
		container("none"),
		container("behind", other, corev1.EnvVar{Name: "LATER", ValueFrom: from}),
		container("same", corev1.EnvVar{Name: groupEnv, Value: groupValue}, other),
		container("differs", other, corev1.EnvVar{Name: groupEnv, Value: "crd"}, other),
		container("empty", corev1.EnvVar{Name: groupEnv}),
		container("from", corev1.EnvVar{Name: groupEnv, ValueFrom: from}, other),
		container("twice", corev1.EnvVar{Name: groupEnv, Value: "a"}, corev1.EnvVar{Name: groupEnv, Value: groupValue}),
	}
	pod.ServiceAccountName = "calico-node"
}

// setTyped makes the edit on the typed object, with the additions of a server's update.
func setTyped(t testing.TB, obj native) {
	pod := templateOf(t, obj)
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			found := false
			for j, env := range list[i].Env {
				if env.Name == groupEnv {
					list[i].Env[j], found = corev1.EnvVar{Name: groupEnv, Value: groupValue}, true
				}
			}
			if !found {
				list[i].Env = append(list[i].Env, corev1.EnvVar{Name: groupEnv, Value: groupValue})
			}
		}
	}
	obj.SetGeneration(obj.GetGeneration() + 1)
	switch o := obj.(type) {
	case *appsv1.DaemonSet:
		n, _ := strconv.Atoi(o.Annotations[templateGn])
		o.Annotations[templateGn] = strconv.Itoa(n + 1)
	case *extensionsv1beta1.DaemonSet:
		o.Spec.TemplateGeneration++
	}
}

func mustSetEnv(t testing.TB) func([]byte) []byte {
	return func(data []byte) []byte {
		content, err := encoding.Get(data, "spec", "template", "spec")
		require.NoError(t, err)
		pod := content.(map[string]any)
		for _, list := range []string{"initContainers", "containers"} {
			for _, container := range pod[list].([]any) {
				setContainerEnv(container.(map[string]any))
			}
		}
		out, err := encoding.Set(data, pod, "spec", "template", "spec")
		require.NoError(t, err)
		m, err := encoding.ReadMeta(data)
		require.NoError(t, err)
		out, err = encoding.Set(out, m.Generation+1, "metadata", "generation")
		require.NoError(t, err)
		switch m.GVK().GroupKind().String() {
		case "DaemonSet.apps":
			n, _ := strconv.Atoi(m.Annotations[templateGn])
			out, err = encoding.Set(out, strconv.Itoa(n+1), "metadata", "annotations", templateGn)
		case "DaemonSet.extensions":
			var n any
			n, err = encoding.Get(out, "spec", "templateGeneration")
			require.NoError(t, err)
			out, err = encoding.Set(out, n.(int64)+1, "spec", "templateGeneration")
		}
		require.NoError(t, err)
		return out
	}
}

func setContainerEnv(container map[string]any) {
	env, _ := container["env"].([]any)
	found := false
	for _, element := range env {
		if v := element.(map[string]any); v["name"] == groupEnv {
			v["value"], found = groupValue, true
			delete(v, "valueFrom")
		}
	}
	if !found {
		container["env"] = append(env, map[string]any{"name": groupEnv, "value": groupValue})
	}
}

// The edited bytes equal the output of k8s.io/api after the same edit of the typed object.
func TestEnvEditEqualsTypedEdit(t *testing.T) {
	for name, template := range workloads() {
		for _, annotations := range []map[string]string{
			{"a": "b"}, {"z": ""}, {"a": "b", templateGn: "41", "z": "y"},
		} {
			data := stored(t, "k8s/"+name+".pb")
			obj := decode(t, data, natives()[name]())
			fill(t, obj)
			obj.SetAnnotations(annotations)
			before := rewrap(t, data, obj)
			setTyped(t, obj)
			after := mustSetEnv(t)(before)
			requireSame(t, rewrap(t, data, obj), after, name)
			require.Equal(t, obj, decode(t, after, natives()[name]()), name)
			requireUnknownFieldsSurvive(t, before, workloadLevels(template), mustSetEnv(t))
		}
	}
}

// A workload in JSON, in the order of its Go type, as stored with
// --storage-media-type=application/json.
func TestEnvEditOfJSON(t *testing.T) {
	for name := range workloads() {
		data := stored(t, "k8s/"+name+".pb")
		obj := decode(t, data, natives()[name]())
		fill(t, obj)
		obj.SetAnnotations(map[string]string{templateGn: "41"})
		m, err := encoding.ReadMeta(data)
		require.NoError(t, err)
		obj.(runtime.Object).GetObjectKind().SetGroupVersionKind(m.GVK())
		before := marshalJSON(t, obj)
		setTyped(t, obj)
		out := mustSetEnv(t)(before)
		require.JSONEq(t, string(marshalJSON(t, obj)), string(out), name)
	}
}

// If the template of a workload is cut, the error names the field.
func TestCutTemplate(t *testing.T) {
	env := func(content string) string { return "\x3a" + string(rune(len(content))) + content } // container.env
	nest := func(content string) []byte {
		for _, tag := range []string{"\x12", "\x12", "\x12", "\x12", "\x12"} { // containers, spec, template, spec, raw
			content = tag + string(rune(len(content))) + content
		}
		return []byte("k8s\x00\x0a\x14\x0a\x07apps/v1\x12\x09DaemonSet" + content)
	}
	for content, want := range map[string]string{
		"\x0a\x05": "protobuf value: spec.template.spec.containers[0]: field 1 at byte 0: the field ends " +
			"beyond its message",
		"\x08\x05": "protobuf value: spec.template.spec.containers[0].name: field 1 at byte 0: wire type " +
			"0, want length-delimited",
		env("\x0a\x05"): "protobuf value: spec.template.spec.containers[0].env[0]: field 1 at byte 0: the field " +
			"ends beyond its message",
		env("\x0a\x01A\x10"): "protobuf value: spec.template.spec.containers[0].env[0]: field 2 at byte 3: the field " +
			"ends beyond its message",
	} {
		_, err := encoding.Get(nest(content), "spec", "template", "spec")
		require.EqualError(t, err, want)
		_, err = encoding.Set(nest(content), nil, "spec", "template", "spec", "containers")
		require.EqualError(t, err, want)
	}
}

// Of several unknown fields, the error names the first by name.
func TestSetUnknownFields(t *testing.T) {
	for range 50 {
		_, err := encoding.Set([]byte("k8s\x00\x12\x02\x0a\x00"),
			map[string]any{"c": "x", "name": "n", "b": "x", "d": "x"}, "metadata")
		require.EqualError(t, err, "protobuf value: metadata.b: not of the field's type")
	}
}
