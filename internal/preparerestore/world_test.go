package preparerestore

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	cluster = "../../testdata/kubectl/all.db.gz" // has a Pod on node n1 and one on n2
	onNode  = `"metadata":{"name":"%s","namespace":"shop","uid":"uid-%[1]s"%s},"spec":{"nodeName":"%s",` +
		`"containers":[{"name":"c","image":"i"}]}`
)

// record is a key below /registry/ and its value.
type record struct{ key, value string }

func pod(name, more, node string) record {
	return record{"pods/shop/" + name, `{"apiVersion":"v1","kind":"Pod",` + fmt.Sprintf(onNode, name, more, node) + `}`}
}

func owned(kind, uid string) string {
	return `,"ownerReferences":[{"apiVersion":"v1","kind":"` + kind + `","name":"o","uid":"` + uid +
		`","controller":true}]`
}

// object returns an object with its metadata; rest follows, as `,"spec":{}`.
func object(key, apiVersion, kind, meta, rest string) record {
	parts := strings.Split(key, "/")
	return record{key, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s}%s}`, apiVersion, kind,
		parts[len(parts)-1], meta, rest)}
}

const in = `,"namespace":"shop"`

// world has an object for each step and, beside each, an object that stays.
func world() []record {
	return []record{
		{"masterleases/192.0.2.1",
			`{"apiVersion":"v1","kind":"Endpoints","metadata":{},"subsets":[{"addresses":[{"ip":"192.0.2.1"}]}]}`},
		object("services/endpoints/default/kubernetes", "v1", "Endpoints", `,"namespace":"default"`,
			`,"subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":6443}]}]`),
		object("leases/kube-system/apiserver-abc", "coordination.k8s.io/v1", "Lease",
			`,"namespace":"kube-system","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}`,
			`,"spec":{"holderIdentity":"x"}`),
		object("leases/kube-system/kube-scheduler", "coordination.k8s.io/v1", "Lease", `,"namespace":"kube-system"`,
			`,"spec":{"holderIdentity":"n1"}`),
		object("leases/shop/free", "coordination.k8s.io/v1", "Lease", in, `,"spec":{"holderIdentity":""}`),
		object("configmaps/shop/leader", "v1", "ConfigMap",
			in+`,"annotations":{"control-plane.alpha.kubernetes.io/leader":"{}","a":"b"}`, ``),
		object("leases/kube-node-lease/n1", "coordination.k8s.io/v1", "Lease", `,"namespace":"kube-node-lease"`,
			`,"spec":{"holderIdentity":"n1"}`),
		object("leases/kube-node-lease/n2", "coordination.k8s.io/v1", "Lease", `,"namespace":"kube-node-lease"`,
			`,"spec":{"holderIdentity":"n2"}`),
		object("secrets/kube-system/n1.node-password.k3s", "v1", "Secret", `,"namespace":"kube-system"`, ``),
		object("secrets/kube-system/n2.node-password.k3s", "v1", "Secret", `,"namespace":"kube-system"`, ``),
		object("secrets/kube-system/bootstrap-token-abcdef", "v1", "Secret", `,"namespace":"kube-system"`,
			`,"type":"bootstrap.kubernetes.io/token","data":{"token-secret":"cGFzc3dvcmQ="}`),
		object("secrets/kube-system/bootstrap-token-mine", "v1", "Secret", `,"namespace":"kube-system"`,
			`,"type":"Opaque"`),
		object("secrets/shop/sa", "v1", "Secret", in+`,"annotations":{"kubernetes.io/service-account.name":"default"}`,
			`,"type":"kubernetes.io/service-account-token","data":{"token":"cGFzc3dvcmQ=","namespace":"c2hvcA=="}`),
		object("serviceaccounts/shop/default", "v1", "ServiceAccount", in, ``),
		object("secrets/shop/plain", "v1", "Secret", in, `,"type":"Opaque","data":{"token":"cGFzc3dvcmQ="}`),
		pod("web", owned("ReplicaSet", "rs"), "n1"), pod("kept", owned("ReplicaSet", "rs"), "n2"),
		pod("bare", "", "n1"), pod("waiting", owned("ReplicaSet", "rs"), ""),
		pod("gone", owned("ReplicaSet", "rs"), "n9"),
		pod("mirror", `,"annotations":{"kubernetes.io/config.mirror":"x"}`+owned("Node", "n"), "n1"),
		pod("tracked", `,"finalizers":["batch.kubernetes.io/job-tracking"]`+owned("Job", "j"), "n1"),
		object("configmaps/shop/of-web", "v1", "ConfigMap", in+`,"uid":"uid-cm"`+owned("Pod", "uid-web"), ``),
		object("configmaps/shop/of-cm", "v1", "ConfigMap", in+owned("ConfigMap", "uid-cm"), ``),
		object("configmaps/shop/guarded", "v1", "ConfigMap", in+`,"finalizers":["x/y"]`+owned("Pod", "uid-web"), ``),
		object("endpointslices/shop/web", "discovery.k8s.io/v1", "EndpointSlice",
			in+
				`,"labels":{"kubernetes.io/service-name":"web",`+
				`"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"}`,
			`,"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"conditions":{},"nodeName":"n1"}]`),
		object("endpointslices/shop/both", "discovery.k8s.io/v1", "EndpointSlice",
			in+`,"labels":{"kubernetes.io/service-name":"both"}`,
			`,"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"conditions":{},"targetRef":{"kind":"Pod",`+
				`"uid":"uid-web"}},{"addresses":["10.0.0.2"],"conditions":{}}]`),
		object("services/endpoints/shop/web", "v1", "Endpoints", in,
			`,"subsets":[{"addresses":[{"ip":"10.0.0.1","nodeName":"n1"}],"ports":[{"port":80}]}]`),
		object("services/specs/shop/web", "v1", "Service", in,
			`,"spec":{"clusterIP":"10.96.1.1","ports":[{"port":443}],"selector":{"a":"b"},"type":"ClusterIP"}`),
		object("volumeattachments/on-n1", "storage.k8s.io/v1", "VolumeAttachment",
			`,"finalizers":["external-attacher/x"]`,
			`,"spec":{"attacher":"x","nodeName":"n1","source":{"persistentVolumeName":"v"}}`),
		object("volumeattachments/on-n2", "storage.k8s.io/v1", "VolumeAttachment", ``,
			`,"spec":{"attacher":"x","nodeName":"n2","source":{"persistentVolumeName":"v"}}`),
		object("resourceslices/on-n1", "resource.k8s.io/v1", "ResourceSlice", ``,
			`,"spec":{"driver":"d","nodeName":"n1","pool":{"name":"p","generation":1,"resourceSliceCount":1}}`),
		object("resourceslices/for-n1", "resource.k8s.io/v1", "ResourceSlice", ``,
			`,"spec":{"driver":"d","perDeviceNodeSelection":true,"pool":{"name":"q","generation":1,`+
				`"resourceSliceCount":1},"devices":[`+
				`{"name":"a","nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",`+
				`"operator":"In","values":["n1"]}]}]}}]}`),
		object("persistentvolumeclaims/shop/waits", "v1", "PersistentVolumeClaim",
			in+`,"annotations":{"volume.kubernetes.io/selected-node":"n1","a":"b"}`,
			`,"spec":{"storageClassName":"s"}`),
		object("persistentvolumeclaims/shop/bound", "v1", "PersistentVolumeClaim",
			in+`,"annotations":{"volume.kubernetes.io/selected-node":"n1"}`, `,"spec":{"volumeName":"v"}`),
		object("podcertificaterequests/shop/p", "certificates.k8s.io/v1beta1", "PodCertificateRequest", in,
			`,"spec":{"nodeName":"n2"}`),
		object("validatingwebhookconfigurations/guard", "admissionregistration.k8s.io/v1",
			"ValidatingWebhookConfiguration", `,"generation":1,"uid":"u"`, `,"webhooks":[`+
				hook("in.example.com", `"service":{"namespace":"shop","name":"web"}`, "Fail")+`,`+
				hook("out.example.com",
					`"url":"https://192.0.2.9/"`, "Fail")+`]`),
		object("apiregistration.k8s.io/apiservices/v1.metrics.example.org", "apiregistration.k8s.io/v1",
			"APIService", `,"uid":"a"`,
			`,"spec":{"group":"metrics.example.org","version":"v1","service":{"namespace":"shop","name":"web",`+
				`"port":443},"groupPriorityMinimum":100,"versionPriority":100}`),
	}
}

func hook(name, client, policy string) string {
	return `{"name":"` + name + `","clientConfig":{` + client + `},"failurePolicy":"` + policy +
		`","sideEffects":"None","admissionReviewVersions":["v1"],` +
		`"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}`
}

// written returns the recorded cluster with additional records.
func written(t testing.TB, records ...record) (path string) {
	t.Helper()
	on, err := snapshot.Open(t.Context(), cluster, snapshot.Config{})
	require.NoError(t, err)
	defer on.Close()
	path = filepath.Join(t.TempDir(), "before.db")
	_, err = snapshot.Write(t.Context(), path, on, func(yield func(snapshot.Change, error) bool) {
		for _, r := range records {
			if !yield(snapshot.Change{Key: []byte("/registry/" + r.key), Value: []byte(r.value + "\n")}, nil) {
				return
			}
		}
	}, snapshot.WriteConfig{})
	require.NoError(t, err)
	return path
}

// ran is the result of a run.
type ran struct {
	*transform.Report
	out    string
	values map[string]map[string]any // content by key below /registry/
}

// runOn runs a transform and returns its error.
func runOn(t testing.TB, in string, tr transform.Transform, allow ...string) (ran, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "after.db")
	report, err := transform.Run(t.Context(), transform.Options{Command: "prepare-restore", In: in, Out: out,
		Allow: allow}, tr)
	if err != nil {
		return ran{Report: report}, err
	}
	return ran{report, out, contents(t, out)}, nil
}

// contents returns the objects of a snapshot, without the fields changed by each write.
func contents(t testing.TB, path string) map[string]map[string]any {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	types, err := r.Types(t.Context())
	require.NoError(t, err)
	all := map[string]map[string]any{}
	for _, typ := range types.All() {
		for o, err := range r.Objects(context.Background(), typ, inspect.Selection{}) {
			require.NoError(t, err)
			require.NoError(t, o.Err, "%s", o.Key)
			for _, field := range [][]string{{"metadata", "resourceVersion"}, {"metadata", "generation"},
				{"metadata", "annotations", "deprecated.daemonset.template.generation"}} {
				unstructured.RemoveNestedField(o.Content, field...)
			}
			all[strings.TrimPrefix(string(o.Key), "/registry/")] = o.Content
		}
	}
	return all
}

// prepared returns the transform of the named steps, or of all steps enabled by default.
func prepared(keep []string, names ...string) *prepare {
	p := &prepare{keep: map[string]bool{}}
	for _, name := range keep {
		p.keep[name] = true
	}
	for _, s := range steps() {
		if slices.Contains(names, s.name) || len(names) == 0 && s.on == always {
			p.steps = append(p.steps, s)
		}
	}
	return p
}

// undone reads the report of a run as --undo does.
func undone(t testing.TB, r ran) *undo {
	t.Helper()
	text, err := json.Marshal(r.Report)
	require.NoError(t, err)
	u := new(undo)
	var read struct {
		Prepared
		Saved map[string]json.RawMessage `json:"saved"`
	}
	require.NoError(t, json.Unmarshal(text, &read))
	u.changes, u.saved, u.cluster = read.Undo, read.Saved, read.Cluster
	return u
}
