package patch_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/patch"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// run patches objects of a snapshot in testdata and returns the report and the patched object, nil
// after a refusal.
func run(t *testing.T, command, body string) (*transform.Report, *inspect.Object) {
	t.Helper()
	words := strings.Fields(command) // FILE TYPE NAME... --FLAG=VALUE
	a := transformtest.Args(append([]string{"--type=strategic", "--patch=" + body}, words[1:]...)...)
	to, err := patch.Spec.New(t.Context(), a)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "after.db")
	report, err := transform.Run(t.Context(), transform.Options{Command: "patch", In: "../../testdata/" + words[0],
		Out: out}, to)
	if err != nil {
		require.ErrorIs(t, err, transform.ErrRefused)
		return report, nil
	}
	s, err := snapshot.Open(t.Context(), out, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := inspect.NewReader(s, nil)
	types, err := r.Types(t.Context())
	require.NoError(t, err)
	found, err := types.Resolve(a.Rest[0])
	require.NoError(t, err)
	for o, err := range r.Objects(t.Context(), found[0], inspect.Selection{Namespace: a.String("namespace"),
		Names: a.Rest[1:]}) {
		require.NoError(t, err)
		o.AsServed()
		return report, o
	}
	require.Fail(t, "no object")
	return nil, nil
}

func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		command, body string
		path          string // in the result
		want          any
	}{
		"strategic merges lists": {
			"kubectl/all.db.gz deploy d --namespace=a",
			"spec: {template: {spec: {containers: [{name: more, image: x:1}]}}}",
			"spec.template.spec.containers.0.name", "more",
		},
		"merge replaces lists": {
			"kubectl/all.db.gz deploy d --namespace=a --type=merge",
			`{"spec": {"template": {"spec": {"containers": [{"name": "one", "image": "x:1"}]}}}}`,
			"spec.template.spec.containers.0.image", "x:1",
		},
		"json": {"kubectl/all.db.gz deploy d --namespace=a --type=json",
			`[{"op": "add", "path": "/spec/replicas", "value": 5}]`, "spec.replicas", int64(5)},
		"immutable": {"kubectl/all.db.gz deploy d --namespace=a --type=merge",
			`{"spec": {"selector": {"matchLabels": {"app": "z"}}, "template": {"metadata": {"labels": {"app": "z"}}}}}`,
			"spec.selector.matchLabels.app", "z"},
		"volume": {"kubectl/all.db.gz pv pv1",
			`{"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", ` +
				`"operator": "In", "values": ["a"]}]}]}}}}`,
			"spec.nodeAffinity.required.nodeSelectorTerms.0.matchExpressions.0.key", "zone"},
		"status": {"kubectl/all.db.gz pv pv1", `{"status": {"phase": "Available"}}`,
			"status.phase", "Available"},
		"custom": {"storage/before.db.gz widgets.demo.example.com untouched --type=merge " +
			"--all-namespaces=true", `{"spec": {"size": 9}}`, "spec.size", int64(9)},
		"definition at v1": {"storage/before.db.gz crd widgets.demo.example.com",
			`{"spec": {"names": {"shortNames": ["wdg"]}}}`, "spec.names.shortNames.0", "wdg"},
		"APIService": {"kubectl/all.db.gz apiservice v1.apps", `{"spec": {"versionPriority": 3}}`,
			"spec.versionPriority", int64(3)},
		"stringData": {"kubectl/all.db.gz secrets s --namespace=a", `{"stringData": {"more": "x"}}`,
			"data.more", "eA=="},
		"metadata of a CRD": {"storage/before.db.gz crd widgets.demo.example.com",
			`{"metadata": {"labels": {"c": "d"}}}`, "metadata.labels.c", "d"},
	} {
		t.Run(name, func(t *testing.T) {
			report, o := run(t, test.command, test.body)
			require.NotNil(t, o, "%v", report.Problems)
			require.Equal(t, transform.Changes{Updated: 1}, report.Changes)
			require.Equal(t, test.want, at(o.Content, test.path))
		})
	}
}

// TestServiceTypes checks that a change of a Service's type removes fields of the old type and the
// IPAddress, and keeps fields set by the patch.
func TestServiceTypes(t *testing.T) {
	for name, test := range map[string]struct {
		service, body string
		gone, is      string // fields of the spec
		deleted       int
	}{
		"balancer to cluster IP": {"lb", `{"type": "ClusterIP"}`,
			"allocateLoadBalancerNodePorts externalTrafficPolicy healthCheckNodePort ports.0.nodePort",
			"clusterIP clusterIPs ipFamilies", 0},
		"balancer to node port": {"lb", `{"type": "NodePort"}`, "allocateLoadBalancerNodePorts healthCheckNodePort",
			"ports.0.nodePort externalTrafficPolicy", 0},
		"balancer of any node": {"lb", `{"externalTrafficPolicy": "Cluster"}`, "healthCheckNodePort",
			"allocateLoadBalancerNodePorts ports.0.nodePort", 0},
		"node port to cluster": {"web", `{"type": "ClusterIP"}`,
			"externalTrafficPolicy ports.0.nodePort ports.1.nodePort ports.2.nodePort", "clusterIP", 0},
		"with an external IP": {"web", `{"type": "ClusterIP", "externalIPs": ["192.0.2.1"]}`, "ports.0.nodePort",
			"externalTrafficPolicy", 0},
		"to an external name": {"web", `{"type": "ExternalName", "externalName": "a.b"}`,
			"clusterIP clusterIPs ipFamilies ipFamilyPolicy internalTrafficPolicy externalTrafficPolicy " +
				"ports.1.nodePort", "externalName", 1},
		"ports without numbers": {"web", `{"ports": [{"name": "https", "port": 444}]}`, "", "ports.0.nodePort", 0},
		"no cluster IP": {"web", `{"clusterIP": null, "clusterIPs": null, "publishNotReadyAddresses": true}`,
			"", "clusterIP clusterIPs", 0},
		"another cluster IP": {"web", `{"clusterIP": "10.0.0.78"}`, "", "clusterIPs", 1},
	} {
		t.Run(name, func(t *testing.T) {
			report, o := run(t, "reports/base.db.gz svc "+test.service+" --namespace=shop --type=merge",
				`{"spec": `+test.body+`}`)
			require.NotNil(t, o, "%v", report.Problems)
			require.Equal(t, transform.Changes{Updated: 1, Deleted: test.deleted}, report.Changes)
			for _, field := range strings.Fields(test.gone) {
				require.Nil(t, at(o.Content, "spec."+field), field)
			}
			for _, field := range strings.Fields(test.is) {
				require.NotNil(t, at(o.Content, "spec."+field), field)
			}
			if name == "another cluster IP" {
				require.Equal(t, []any{"10.0.0.78"}, at(o.Content, "spec.clusterIPs"))
				require.Equal(t, []any{"IPv4"}, at(o.Content, "spec.ipFamilies"))
			}
		})
	}
}

// TestGeneration checks that the generation grows as after a server's update. e2e compares more
// kinds with a real server.
func TestGeneration(t *testing.T) {
	for _, test := range []struct {
		object, body string
		want         any
	}{
		{"deploy web --namespace=shop", `{"spec": {"minReadySeconds": 0}}`, int64(2)},
		{"deploy web --namespace=shop", `{"spec": {"strategy": null, "revisionHistoryLimit": null}}`, int64(2)},
		{"deploy web --namespace=shop", `{"spec": {"minReadySeconds": 1}}`, int64(3)},
		{"deploy web --namespace=shop", `{"metadata": {"annotations": {"a": "b"}}}`, int64(3)},
		{"deploy web --namespace=shop", `{"metadata": {"generation": 9, "labels": {"a": "b"}}}`, int64(2)},
		{"priorityclass important", `{"description": "x"}`, int64(1)},
		{"csidriver csi.acme.example", `{"spec": {"requiresRepublish": true}}`, int64(1)},
		{"csidriver csi.acme.example", `{"spec": {"seLinuxMount": null}}`, nil},
		{"podtemplate tmpl --namespace=shop", `{"template": {"spec": {"hostname": "x"}}}`, int64(2)},
		{"networkpolicy deny --namespace=shop", `{"spec": {"egress": []}}`, int64(2)},
		{"networkpolicy deny --namespace=shop", `{"spec": {"podSelector": {"matchExpressions": []}}}`, int64(2)},
		{"networkpolicy deny --namespace=shop", `{"spec": {"policyTypes": ["Ingress", "Egress"], "egress": null}}`,
			int64(1)},
		{"deploy web --namespace=shop", `{"spec": {"template": {"spec": {"tolerations": []}}}}`, int64(2)},
		{"hpa web --namespace=shop", `{"spec": {"maxReplicas": 9}}`, nil},
		{"widgets.example.com w2 --namespace=shop", `{"spec": {"ports": [{"name": "a", "port": 1}]}}`, int64(2)},
	} {
		report, o := run(t, "reports/base.db.gz "+test.object+" --type=merge", test.body)
		require.NotNil(t, o, "%v", report.Problems)
		require.Equal(t, test.want, at(o.Content, "metadata.generation"), "%s %s", test.object, test.body)
	}
}

// TestGenerationOfWebhooks checks that for these kinds an empty list differs from an absent list.
func TestGenerationOfWebhooks(t *testing.T) {
	for _, object := range []string{"validatingwebhookconfiguration guard", "mutatingwebhookconfiguration inject"} {
		for path, want := range map[string]any{"matchConditions": int64(2), "objectSelector": int64(1)} {
			value := map[string]string{"matchConditions": "[]", "objectSelector": "null"}[path]
			_, o := run(t, "reports/base.db.gz "+object+" --type=json",
				`[{"op": "add", "path": "/webhooks/0/`+path+`", "value": `+value+`}]`)
			require.NotNil(t, o)
			require.Equal(t, want, at(o.Content, "metadata.generation"), "%s %s", object, path)
		}
	}
}

// TestClaimTemplates checks that claim templates of a StatefulSet get apiVersion and kind, as on a
// server.
func TestClaimTemplates(t *testing.T) {
	_, o := run(t, "reports/base.db.gz sts db --namespace=shop --type=json",
		`[{"op": "test", "path": "/spec/volumeClaimTemplates/0/kind", "value": "PersistentVolumeClaim"}, {"op": `+
			`"add", "path": "/spec/replicas", "value": 4}]`)
	require.NotNil(t, o)
	require.Equal(t, "v1", at(o.Content, "spec.volumeClaimTemplates.0.apiVersion"))
}

// TestFollowing checks fields that a server sets as a consequence of other fields.
func TestFollowing(t *testing.T) {
	_, o := run(t, "reports/base.db.gz sa default --namespace=shop", `{"secrets": [{"name": "s", "namespace": "x"}]}`)
	require.Equal(t, []any{map[string]any{"name": "s"}}, at(o.Content, "secrets"))
	_, o = run(t, "reports/base.db.gz secret tls-web --namespace=shop", `{"type": null, "stringData": {"a": "b"}}`)
	require.Equal(t, "kubernetes.io/tls", at(o.Content, "type"))
	_, o = run(t, "reports/base.db.gz pvc data-db-0 --namespace=shop",
		`{"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "p"}}}`)
	require.Equal(t, "p", at(o.Content, "spec.dataSourceRef.name"))
	report, _ := run(t, "reports/base.db.gz svc manual --namespace=billing", `{"spec": {"type": "NodePort"}}`)
	require.Contains(t, strings.Join(report.Steps, " "),
		"kubectl -n billing get service manual -o json | kubectl replace")
	report, _ = run(t, "reports/base.db.gz svc web --namespace=shop", `{"spec": {"type": "LoadBalancer"}}`)
	require.NotContains(t, strings.Join(report.Steps, " "), "kubectl replace")
}

// at returns the field at a dotted path.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch is := value.(type) {
		case map[string]any:
			value = is[name]
		case []any:
			value = is[name[0]-'0']
		default:
			value = nil
		}
	}
	return value
}

func TestDefinitionIsStoredAsBefore(t *testing.T) {
	_, o := run(t, "storage/before.db.gz crd widgets.demo.example.com --type=merge",
		`{"metadata": {"annotations": {"a": "b"}}}`)
	require.Contains(t, string(o.Value), `"apiVersion":"apiextensions.k8s.io/v1beta1"`)
	require.True(t, strings.HasPrefix(string(o.Value), `{"kind":"CustomResourceDefinition","apiVersion"`),
		"the order of a server")
}

// refusedPatch is a patch, and the finding that refuses it.
type refusedPatch struct{ command, body, code, reason string }

func refusedPatches() map[string]refusedPatch {
	return map[string]refusedPatch{
		"name": {"kubectl/all.db.gz pv pv1", `{"metadata": {"name": "x"}}`, "patch-identity",
			`metadata.name is "pv1", and would be "x"`},
		"namespace": {"kubectl/all.db.gz deploy d --namespace=a --type=json",
			`[{"op": "remove", "path": "/metadata/namespace"}]`, "patch-identity", "metadata.namespace"},
		"uid": {"kubectl/all.db.gz pv pv1 --type=merge", `{"metadata": {"uid": null}}`, "patch-identity",
			`", and would be removed`},
		"kind": {"kubectl/all.db.gz pv pv1 --type=merge", `{"kind": "Node"}`, "patch-identity",
			`kind is "PersistentVolume", and would be "Node"`},
		"no kind": {"kubectl/all.db.gz pv pv1 --type=merge", `{"kind": 7}`, "patch-identity", "would be 7"},
		"cluster IP": {"reports/s1-services.db.gz svc lb --namespace=lab",
			`{"spec": {"clusterIP": "10.96.0.10"}}`, "address-in-use",
			"cluster IP 10.96.0.10 is that of /registry/services/specs/lab/web, /registry/services/specs/lab/twin too"},
		"node port": {"reports/base.db.gz svc manual --namespace=billing",
			`{"spec": {"type": "NodePort", "ports": [{"port": 9000, "nodePort": 30443}]}}`, "address-in-use",
			"node port 30443"},
		"node port too high": {"reports/s1-services.db.gz svc lb --namespace=lab",
			`{"spec": {"ports": [{"port": 80, "nodePort": 99999}]}}`, "invalid-object",
			"node port 99999 is not in the range from 1 to 65535"},
		"cluster IP outside": {"reports/s1-services.db.gz svc lb --namespace=lab",
			`{"spec": {"clusterIP": "192.168.9.9"}}`, "invalid-object",
			"cluster IP 192.168.9.9 is outside of the ServiceCIDRs: 10.96.0.0/24"},
		"health port": {"reports/base.db.gz svc lb --namespace=shop", `{"spec": {"healthCheckNodePort": 30443}}`,
			"address-in-use", "node port 30443"},
		"no cluster IP": {"reports/base.db.gz svc ext --namespace=shop",
			`{"spec": {"type": "ClusterIP", "externalName": null, "ports": [{"port": 80}]}}`,
			"cluster-ip-missing", "ClusterIP"},
		"source ranges": {"reports/base.db.gz svc lb --namespace=shop --type=merge",
			`{"spec": {"type": "ClusterIP", "loadBalancerSourceRanges": ["192.0.2.0/24"]}}`, "invalid-object",
			"spec.LoadBalancerSourceRanges (may only be used when `type` is 'LoadBalancer')"},
		"their annotation": {"reports/base.db.gz svc lb --namespace=shop --type=merge",
			`{"metadata": {"annotations": {"service.beta.kubernetes.io/load-balancer-source-ranges": ""}}, "spec": ` +
				`{"type": "NodePort"}}`, "invalid-object",
			"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"},
		"wanted node port": {"reports/base.db.gz svc web --namespace=shop",
			`{"spec": {"type": "ClusterIP", "ports": [{"name": "http", "port": 80, "nodePort": 30999}]}}`,
			"invalid-object", "spec.ports[0].nodePort (may not be used when `type` is 'ClusterIP')"},
		"balancer class": {"reports/base.db.gz svc web --namespace=shop", `{"spec": {"loadBalancerClass": "a/b"}}`,
			"invalid-object", "spec.loadBalancerClass"},
		"no health port": {"reports/base.db.gz svc web --namespace=shop",
			`{"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}}`, "invalid-object",
			"spec.healthCheckNodePort (required"},
		"headless port": {"reports/base.db.gz svc db --namespace=shop", `{"spec": {"type": "NodePort"}}`,
			"invalid-object", "spec.clusterIPs"},
		"no name": {"reports/base.db.gz svc web --namespace=shop", `{"spec": {"type": "ExternalName"}}`,
			"invalid-object", "spec.externalName"},
		"two first IPs": {"reports/base.db.gz svc web --namespace=shop --type=merge",
			`{"spec": {"clusterIPs": ["10.0.0.98"]}}`, "invalid-object", "spec.clusterIPs"},
		"resourceVersion": {"kubectl/all.db.gz pv pv1 --type=merge", `{"metadata": {"resourceVersion": "1"}}`,
			"patch-identity", "resourceVersion"},
		"strategic custom": {"storage/before.db.gz widgets.demo.example.com untouched --all-namespaces=true",
			`{"spec": {"size": 9}}`, "strategic-custom-resource", "--type merge"},
		"missing path": {"kubectl/all.db.gz pv pv1 --type=json", `[{"op": "remove", "path": "/spec/none"}]`,
			"patch-failed", "/spec/none"},
		"test": {"kubectl/all.db.gz pv pv1 --type=json",
			`[{"op": "test", "path": "/spec/storageClassName", "value": "x"}]`, "patch-failed", "test failed"},
		"merge key": {"kubectl/all.db.gz deploy d --namespace=a",
			"spec: {template: {spec: {containers: [{image: secret}]}}}", "patch-failed", `no "name"`},
		"type of a field": {"kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"spec": {"replicas": "many"}}`,
			"invalid-object", ""},
		"unknown field": {"kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"spec": {"replica": 1}}`,
			"invalid-object", "replica"},
		"schema": {"storage/before.db.gz widgets.demo.example.com untouched --all-namespaces=true " +
			"--type=merge", `{"spec": {"size": "big"}}`, "invalid-object", "spec.size"},
		"definition": {"storage/before.db.gz crd widgets.demo.example.com", `{"spec": {"scope": "Cluster"}}`,
			"invalid-object", "spec.scope"},
		"many errors": {"reports/errors.db.gz gizmo g --namespace=default --type=merge",
			`{"spec": {"l": [` + strings.Repeat("1,", 100_000) + `1]}}`, "invalid-object",
			"more than 1000 of its fields are not as the schema says, one is spec.l[0]"},
		"unique items": {"reports/uniq-10k.db.gz gizmo g --namespace=default --type=merge", `{"spec": {"l": [1]}}`,
			"invalid-object", "it cannot be checked: its schema has uniqueItems"},
		"lost selector": {"kubectl/all.db.gz deploy d --namespace=a --type=merge",
			`{"spec": {"selector": {"matchLabels": {"app": "z"}}}}`,
			"invalid-object", "spec.template.metadata.labels (`selector` does not match template `labels`)"},
		"negative replicas": {"kubectl/all.db.gz deploy d --namespace=a", `{"spec": {"replicas": -1}}`,
			"invalid-object", "spec.replicas (must be greater than or equal to 0)"},
		"no such object": {"kubectl/all.db.gz pv none", `{"spec": {}}`, "not-found", ""},
		"copies": {"kubectl/all.db.gz pv pv1 --type=json",
			"[" + strings.Repeat(`{"op": "copy", "from": "", "path": "/spec/a"}, `, 40) +
				`{"op": "remove", "path": "/spec/a"}]`, "patch-failed", "copy"},
	}
}

func TestRefused(t *testing.T) {
	for name, test := range refusedPatches() {
		t.Run(name, func(t *testing.T) {
			report, _ := run(t, test.command, test.body)
			require.Equal(t, transform.Refused, report.Outcome)
			var told []string
			for _, p := range report.Problems {
				told = append(told, p.Code.Name+": "+p.Reason)
			}
			text := strings.Join(told, "\n")
			require.Contains(t, text, test.code+": ")
			require.Contains(t, text, test.reason)
			require.NotContains(t, text, "secret")
		})
	}
}

// An API server ignores validation errors of unchanged fields, regardless of their number.
func TestLabelsOfUncheckedObjects(t *testing.T) {
	for _, file := range []string{"errors", "uniq-10k"} {
		report, o := run(t, "reports/"+file+".db.gz gizmo g --namespace=default --type=merge",
			`{"metadata": {"labels": {"a": "b"}}}`)
		require.Equal(t, transform.Written, report.Outcome, report.Problems)
		require.Equal(t, "b", at(o.Content, "metadata.labels.a"))
	}
}

func TestUnchanged(t *testing.T) {
	report, _ := run(t, "kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"kind": "Deployment"}`)
	require.Equal(t, transform.Unchanged, report.Outcome)
	require.Equal(t, "nothing-patched", report.Problems[len(report.Problems)-1].Code.Name)
	require.Equal(t, 1, report.Kinds[0].Unchanged)
}

func TestUsage(t *testing.T) {
	for _, test := range [][2]string{
		{"merge", "- a"}, {"merge", "null"}, {"strategic", "[]"}, {"json", "{}"},
		{"json", `[{"op": "remove", "pth": "/a"}]`}, {"merge", "a: ["},
		{"merge", "{a: 1, a: 2}"}, {"json", "[" + strings.Repeat(`{"op": "test", "path": ""},`, 10000) +
			`{"op": "test", "path": ""}]`},
	} {
		_, err := patch.Spec.New(t.Context(), transformtest.Args("pv", "a", "--type="+test[0], "--patch="+test[1]))
		require.ErrorAs(t, err, new(*transform.UsageError), "%.60s", test[1])
	}
	_, err := patch.Spec.New(t.Context(), transformtest.Args("pv", "a", "--type=strategic"))
	require.ErrorContains(t, err, "--patch PATCH or with --patch-file FILE")
}
