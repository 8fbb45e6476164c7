package get

import (
	"testing"

	"github.com/stretchr/testify/require"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj, _, err := encoding.DecodeObject(data)
	require.NoError(t, err)
	return obj
}

func TestToManifest(t *testing.T) {
	for name, c := range map[string]struct{ kind, before, after string }{
		"metadata": {
			"ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, uid: u, resourceVersion: "1", generation: 2, creationTimestamp: x,
			deletionTimestamp: x, deletionGracePeriodSeconds: 3, managedFields: [], selfLink: x, ownerReferences: [{}], labels: {l: m}, finalizers: [foregroundDeletion],
			annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}, data: {a: b}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {l: m}}, data: {a: b}}`},
		"finalizers and annotations stay": {
			"PersistentVolumeClaim", `{metadata: {name: a, finalizers: [kubernetes.io/pvc-protection, example.com/mine],
			annotations: {pv.kubernetes.io/bind-completed: "yes", mine: x}}, spec: {volumeName: v}, status: {phase: Bound}}`,
			`{metadata: {name: a, finalizers: [example.com/mine], annotations: {mine: x}}, spec: {volumeName: v}}`},
		"pod": {
			"Pod", `{metadata: {name: a}, spec: {nodeName: n, priority: 0, preemptionPolicy: Never, volumes: [{name: kube-api-access-x2}], initContainers: [{name: i}],
			containers: [{name: c, volumeMounts: [{name: kube-api-access-x2}, {name: d}]}]}, status: {}}`,
			`{metadata: {name: a}, spec: {initContainers: [{name: i}], containers: [{name: c, volumeMounts: [{name: ` +
				`d}]}]}}`},
		"service": {"Service",
			`{spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{nodePort: 30000}]}}`,
			`{spec: {ports: [{nodePort: 30000}]}}`},
		"headless service": {"Service", `{spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{spec: {clusterIP: None, clusterIPs: [None]}}`},
		"namespace": {"Namespace",
			`{metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}, ` +
				`status: {phase: Active}}`, `{metadata: {name: a}}`},
		"volume": {"PersistentVolume", `{spec: {claimRef: {name: a, uid: u, resourceVersion: "1"}}}`,
			`{spec: {claimRef: {name: a}}}`},
		"job": {"Job",
			`{metadata: {labels: {job-name: j, mine: x}}, spec: {selector: {}, template: {metadata: {labels: ` +
				`{controller-uid: u}}}}}`,
			`{metadata: {labels: {mine: x}}, spec: {template: {metadata: {}}}}`},
		"job with its own selector": {"Job", `{spec: {manualSelector: true, selector: {a: b}}}`,
			`{spec: {manualSelector: true, selector: {a: b}}}`},
		"wrong types": {"Pod",
			`{metadata: {annotations: [1], labels: 2, finalizers: x}, spec: {containers: 7, volumes: x}}`,
			`{metadata: {annotations: [1], labels: 2, finalizers: x}, spec: {containers: 7, volumes: x}}`},
	} {
		got, err := toManifest(&inspect.Type{Kind: c.kind, Builtin: true}, parse(t, c.before))
		require.NoError(t, err, name)
		require.Equal(t, parse(t, c.after), got, name)
	}
}

// TestExportAtServedVersion checks that a custom resource has a version that a server accepts.
func TestManifestAtServedVersion(t *testing.T) {
	crd := func(strategy string) *inspect.Type {
		parsed, err := schema.ParseCRD(
			[]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"conversion":` + strategy + `,
			"versions":[{"name":"v1alpha1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
			{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`))
		require.NoError(t, err)
		return &inspect.Type{Kind: "Widget", Resource: gvr.GroupResource{Group: "example.com", Resource: "widgets"},
			CRD: parsed}
	}
	widget := func(version string) map[string]any {
		return parse(t, `{apiVersion: example.com/`+version+
			`, kind: Widget, metadata: {name: a, namespace: b}, spec: {x: 1}}`)
	}
	for _, version := range []string{"v1", "v1alpha1"} {
		got, err := toManifest(crd(`{"strategy":"None"}`), widget(version))
		require.NoError(t, err)
		require.Equal(t, widget("v1"), got)
	}
	webhook := `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://x"},"conversionReviewVersions":["v1"]}}`
	_, err := toManifest(crd(webhook), widget("v1alpha1"))
	require.ErrorIs(t, err, schema.ErrNeedsWebhook)
	require.ErrorContains(t, err, "stored at v1alpha1, which is not served")
}

func TestRank(t *testing.T) {
	builtin := func(resource string) *inspect.Type {
		return &inspect.Type{Builtin: true, Resource: gvr.GroupResource{Resource: resource}}
	}
	custom := &inspect.Type{Resource: gvr.GroupResource{Group: "example.com", Resource: "pods"}}
	order := []*inspect.Type{builtin("namespaces"), builtin("customresourcedefinitions"), builtin("serviceaccounts"),
		builtin("secrets"), builtin("configmaps"),
		builtin("clusterroles"), builtin("persistentvolumes"), builtin("services"), custom, builtin("pods"),
		builtin("deployments"),
		builtin("mutatingwebhookconfigurations")}
	for i := range order[1:] {
		require.Less(t, rank(order[i]), rank(order[i+1]), order[i+1].Name())
	}
	require.Equal(t, rank(custom), rank(builtin("newer")))
}

func TestMadeAgain(t *testing.T) {
	for text, want := range map[string]bool{
		`{metadata: {ownerReferences: [{kind: ReplicaSet, controller: true}]}}`:      true,
		`{metadata: {ownerReferences: [{kind: ReplicaSet}]}}`:                        false,
		`{metadata: {labels: {kube-aggregator.kubernetes.io/automanaged: onstart}}}`: true,
		`{metadata: {ownerReferences: x}}`:                                           false,
		`{}`:                                                                         false,
		`{metadata: {labels: {a: b}, ownerReferences: [{kind: Node, controller: true, name: n}]}}`: true,
	} {
		content := parse(t, text)
		require.Equal(t, want, madeAgain(content), text)
	}
}
