package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Objects are encoded once with these placeholders for name, namespace and UID; copies replace them
// with values of the same length.
const (
	anyName      = "NAME~~~~~~~~~~~~~~~~~~~" // frontend-00012345-0a1b2
	anyNamespace = "NAMESPACE~"              // tenant-042
	anyUID       = "UID~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"

	namespaces = 400
	variants   = 64 // encoded objects per kind
	group      = "bench.example.com"
)

// pattern is an encoded object with the positions of its name, namespace and UID.
type pattern struct {
	value []byte
	holes [3][]int
}

func newPattern(value []byte) (p pattern) {
	p.value = value
	for i, text := range []string{anyName, anyNamespace, anyUID} {
		for at := 0; ; at += len(text) {
			next := bytes.Index(value[at:], []byte(text))
			if next < 0 {
				break
			}
			at += next
			p.holes[i] = append(p.holes[i], at)
		}
	}
	return p
}

func (p pattern) fill(name, namespace, uid string) []byte {
	value := bytes.Clone(p.value)
	for i, text := range []string{name, namespace, uid} {
		for _, at := range p.holes[i] {
			copy(value[at:], text)
		}
	}
	return value
}

// kind is a resource and its share of the keys.
type kind struct {
	weight   int // percent of the keys
	resource string
	leased   bool
	current  []pattern
	stale    []pattern // the same at v1alpha1; empty for built-in kinds
}

// maker creates objects from random numbers.
type maker struct {
	testing.TB
	*rand.Rand
}

// kinds returns the mix of a cluster: a quarter of the keys are custom resources, of three kinds.
func (m maker) kinds() []kind {
	all := []kind{
		m.builtIn(15, "pods", func() runtime.Object { return m.pod() }),
		m.builtIn(25, "events", func() runtime.Object { return m.event() }),
		m.builtIn(3, "leases", func() runtime.Object {
			return &coordinationv1.Lease{ObjectMeta: m.meta("kubelet"), Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To(anyName), LeaseDurationSeconds: ptr.To[int32](40),
				RenewTime: ptr.To(metav1.NewMicroTime(moment()))}}
		}),
		m.builtIn(8, "configmaps", func() runtime.Object {
			return &corev1.ConfigMap{ObjectMeta: m.meta("helm"), Data: map[string]string{"app.conf": m.text(300, 2100)}}
		}),
		m.builtIn(9, "secrets", func() runtime.Object {
			return &corev1.Secret{ObjectMeta: m.meta("helm"), Type: corev1.SecretTypeOpaque,
				Data: map[string][]byte{"token": []byte(m.hex(1800 + m.IntN(5000)))}}
		}),
		m.builtIn(5, "endpointslices", func() runtime.Object { return m.endpoints() }),
		m.builtIn(4, "replicasets", func() runtime.Object { return m.replicaSet() }),
		m.builtIn(3, "deployments", func() runtime.Object { return m.deployment() }),
		m.builtIn(3, "serviceaccounts",
			func() runtime.Object { return &corev1.ServiceAccount{ObjectMeta: m.meta("helm")} }),
		m.custom(15, "Widget"), m.custom(5, "Route"), m.custom(5, "Backup"),
	}
	all[1].leased = true
	return all
}

// builtIn encodes objects as stored by an API server.
func (m maker) builtIn(weight int, resource string, object func() runtime.Object) kind {
	k := kind{weight: weight, resource: resource}
	for range variants {
		k.current = append(k.current, newPattern(m.encode(object())))
	}
	return k
}

func (m maker) encode(o runtime.Object) []byte {
	gvks, _, err := scheme.Scheme.ObjectKinds(o)
	require.NoError(m, err)
	o.GetObjectKind().SetGroupVersionKind(gvks[0])
	m.manage(o)
	var out bytes.Buffer
	require.NoError(m, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out))
	return out.Bytes()
}

func (m maker) custom(weight int, name string) kind {
	k := kind{weight: weight, resource: group + "/" + plural(name)}
	for range variants {
		encoded, err := json.Marshal(m.customResource(name))
		require.NoError(m, err)
		encoded = append(encoded, '\n')
		k.current = append(k.current, newPattern(encoded))
		k.stale = append(k.stale, newPattern(bytes.ReplaceAll(encoded, []byte(group+`/v1"`),
			[]byte(group+`/v1alpha1"`))))
	}
	return k
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }

// definition returns the CRD of a kind as stored by an API server.
func definition(t testing.TB, kind string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/crd.yaml")
	require.NoError(t, err)
	text = []byte(strings.NewReplacer("widget", strings.ToLower(kind), "Widget", kind).Replace(string(text)))
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(text, &crd))
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	crd.UID = types.UID(fmt.Sprintf("%x-0000-4000-8000-000000000000", kind[:4])) // distinguishes CRDs
	value, err := json.Marshal(crd)
	require.NoError(t, err)
	return append(value, '\n')
}

func moment() time.Time { return time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC) }

func (m maker) meta(manager string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: anyName, Namespace: anyNamespace, UID: anyUID, CreationTimestamp: metav1.NewTime(moment()),
		Labels: map[string]string{"app.kubernetes.io/name": "frontend-" + m.hex(5),
			"app.kubernetes.io/part-of": "shop"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			Time: ptr.To(metav1.NewTime(moment())), FieldsType: "FieldsV1", // its fields: see manage
		}},
	}
}

func (m maker) customResource(kind string) map[string]any {
	fields := func(names ...string) map[string]any {
		out := map[string]any{}
		for _, name := range names {
			out["f:"+name] = map[string]any{}
		}
		return out
	}
	managed := func(manager, time, field, subresource string, names ...string) map[string]any {
		out := map[string]any{"manager": manager, "operation": "Update", "apiVersion": group + "/v1", "time": time,
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:" + field: fields(names...)}}
		if subresource != "" {
			out["subresource"] = subresource
		}
		return out
	}
	env := []any{}
	for i := range 1 + m.IntN(8) {
		env = append(env, map[string]any{"name": fmt.Sprintf("OPTION_%d", i), "value": m.text(10, 60)})
	}
	return map[string]any{
		"apiVersion": group + "/v1", "kind": kind,
		"metadata": map[string]any{"name": anyName, "namespace": anyNamespace, "uid": anyUID,
			"generation": 1 + m.IntN(9), "creationTimestamp": "2026-01-05T08:00:00Z",
			"labels": map[string]any{"app.kubernetes.io/name": "frontend-" + m.hex(5)},
			"managedFields": []any{managed("kubectl", "2026-01-05T08:00:00Z", "spec", "", "description", "ratio",
				"replicas", "tier"),
				managed(plural(kind)+"-controller", "2026-01-05T08:00:05Z", "status", "status", "conditions",
					"observedGeneration", "phase")}},
		"spec": map[string]any{"replicas": m.IntN(9), "paused": false, "tier": "standard",
			"description": m.text(100, 500), "ratio": 0.25,
			"selector": map[string]any{"app": "frontend", "shard": m.hex(4)},
			"settings": map[string]any{"depth": m.IntN(100), "names": []any{m.hex(8), m.hex(8)},
				"nested": map[string]any{"on": true}},
			"template": map[string]any{"image": "registry.example.com/shop/frontend:" + m.hex(12), "port": 8080,
				"pullPolicy": "IfNotPresent", "env": env}},
		"status": map[string]any{"phase": "Ready", "observedGeneration": 1, "conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "AllGood", "message": m.text(20, 120),
			"lastTransitionTime": "2026-01-05T08:00:00Z"}}},
	}
}

func (m maker) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: m.meta("kube-controller-manager"), Spec: corev1.PodSpec{
		NodeName: "node-" + m.hex(4), ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyAlways,
		SchedulerName: "default-scheduler",
		DNSPolicy:     corev1.DNSClusterFirst, TerminationGracePeriodSeconds: ptr.To[int64](30)}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: anyName,
		UID: anyUID, Controller: ptr.To(true)}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", m.IntN(256), m.IntN(256))}
	for _, condition := range []corev1.PodConditionType{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: condition, Status: "True", LastTransitionTime: metav1.NewTime(moment())})
	}
	containers := 1 + m.IntN(3)
	for i := range containers {
		c := m.container(fmt.Sprintf("c%d", i), (4+m.IntN(24))/containers)
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true,
				ImageID: c.Image + "@sha256:" + m.hex(64), ContainerID: "containerd://" + m.hex(64)})
	}
	return pod
}

func (m maker) container(name string, env int) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example.com/shop/frontend:" + m.hex(12),
		ImagePullPolicy:        corev1.PullIfNotPresent,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"),
			"memory": resource.MustParse("512Mi")}}}
	for i := range env {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("OPTION_%d", i), Value: m.text(10, 80)})
	}
	return c
}

func (m maker) event() *corev1.Event {
	return &corev1.Event{ObjectMeta: m.meta("kubelet"), Reason: "Unhealthy", Type: corev1.EventTypeWarning,
		Message: m.text(40, 200), Count: int32(1 + m.IntN(50)),
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: anyNamespace,
			Name: anyName, UID: anyUID},
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-" + m.hex(4)},
		FirstTimestamp: metav1.NewTime(moment()), LastTimestamp: metav1.NewTime(moment())}
}

func (m maker) endpoints() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: m.meta("endpointslice-controller"),
		AddressType: discoveryv1.AddressTypeIPv4}
	for range 1 + m.IntN(8) {
		slice.Endpoints = append(slice.Endpoints,
			discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.1.%d.%d", m.IntN(256), m.IntN(256))},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}, NodeName: ptr.To("node-" + m.hex(4)),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: anyNamespace, Name: anyName, UID: anyUID}})
	}
	return slice
}

func (m maker) replicaSet() *appsv1.ReplicaSet {
	of := m.deployment()
	return &appsv1.ReplicaSet{ObjectMeta: of.ObjectMeta, Spec: appsv1.ReplicaSetSpec{Replicas: of.Spec.Replicas,
		Selector: of.Spec.Selector, Template: of.Spec.Template}}
}

func (m maker) deployment() *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "frontend-" + m.hex(5)}
	return &appsv1.Deployment{ObjectMeta: m.meta("kube-controller-manager"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{m.container("c0", 10+m.IntN(30))}}}}}
}

func (m maker) hex(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = "0123456789abcdef"[m.IntN(16)]
	}
	return string(out)
}

// text returns words up to a random length between two bounds.
func (m maker) text(least, most int) string {
	words := strings.Fields("the pod waits for a volume that its node cannot attach because another node still holds " +
		"it and retries later with more patience")
	var out strings.Builder
	for n := least + m.IntN(most-least); out.Len() < n; {
		out.WriteString(words[m.IntN(len(words))] + " ")
	}
	return strings.TrimSpace(out.String())
}
