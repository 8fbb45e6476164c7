package preparerestore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/transform"
)

// acting returns objects of controllers that act outside, without definitions.
func acting() []record {
	custom := func(key, kind, meta, rest string) record {
		group, _, _ := strings.Cut(key, "/")
		return object(key, group+"/v1", kind, in+meta, rest)
	}
	return []record{
		custom("argoproj.io/applications/shop/a", "Application", ``,
			`,"spec":{"syncPolicy":{"automated":{"prune":true},"retry":{}}}`),
		custom("kustomize.toolkit.fluxcd.io/kustomizations/shop/k", "Kustomization", ``, `,"spec":{"interval":"1m"}`),
		custom("helm.toolkit.fluxcd.io/helmreleases/shop/h", "HelmRelease", ``, `,"spec":{"suspend":false}`),
		custom("cluster.x-k8s.io/clusters/shop/c", "Cluster", ``, `,"spec":{"paused":true}`),
		custom("velero.io/backupstoragelocations/shop/b", "BackupStorageLocation", ``,
			`,"spec":{"accessMode":"ReadWrite"}`),
		custom("keda.sh/scaledobjects/shop/s", "ScaledObject", `,"annotations":{"a":"b"}`, `,"spec":{}`),
		custom("cert-manager.io/issuers/shop/i", "Issuer", ``,
			`,"spec":{"acme":{"server":"https://acme.example.com"}}`),
		object("persistentvolumes/disk", "v1", "PersistentVolume", ``,
			`,"spec":{"csi":{"driver":"d","volumeHandle":"h"},"persistentVolumeReclaimPolicy":"Delete",`+
				`"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}`),
		object("deployments/kube-system/coredns", "apps/v1", "Deployment",
			`,"namespace":"kube-system","labels":{"k8s-app":"kube-dns"}`, deployed("coredns")),
		object("deployments/kube-system/external-dns", "apps/v1", "Deployment",
			`,"namespace":"kube-system","labels":{"k8s-app":"kube-dns"}`,
			deployed("registry.example.com/external-dns/external-dns:v1")),
		object("services/specs/shop/lb", "v1", "Service",
			in+
				`,"finalizers":["service.kubernetes.io/load-balancer-cleanup"],`+
				`"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":"192.0.2.0/24"}`,
			`,"spec":{"type":"LoadBalancer","clusterIP":"10.96.2.2","healthCheckNodePort":31000,`+
				`"externalTrafficPolicy":"Local","ports":[{"name":"a","port":80,"nodePort":30001},{"name":"b",`+
				`"port":81,"nodePort":30002}]}`),
	}
}

func deployed(image string) string {
	return `,"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},` +
		`"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}`
}

func isolating() *prepare {
	p := prepared(nil, "webhooks", "api-services", "workloads", "jobs", "load-balancers", "volumes", "controllers")
	p.isolated = true
	return p
}

// TestIsolated checks that the objects of the table are stopped, and restored by --undo.
func TestIsolated(t *testing.T) {
	path := written(t, append(world(), acting()...)...)
	before := contents(t, path)
	r, err := runOn(t, path, isolating())
	require.NoError(t, err, "%v", r.Problems)
	for key, want := range map[string]string{
		"argoproj.io/applications/shop/a":                   `{"spec":{"syncPolicy":{"automated":null}}}`,
		"kustomize.toolkit.fluxcd.io/kustomizations/shop/k": `{"spec":{"suspend":true}}`,
		"helm.toolkit.fluxcd.io/helmreleases/shop/h":        `{"spec":{"suspend":true}}`,
		"cluster.x-k8s.io/clusters/shop/c":                  `{}`,
		"velero.io/backupstoragelocations/shop/b":           `{"spec":{"accessMode":"ReadOnly"}}`,
		"keda.sh/scaledobjects/shop/s":                      `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`,
		"persistentvolumes/disk":                            `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`,
		"deployments/kube-system/coredns":                   `{}`,
		"deployments/kube-system/external-dns": `{"metadata":{"annotations":{"etcdshift/replicas":"2"}},` +
			`"spec":{"replicas":0}}`,
		"deployments/a/d": `{"metadata":{"annotations":{"etcdshift/replicas":"3"}},` +
			`"spec":{"replicas":0}}`,
		"daemonsets/a/ds":   `{"spec":{"template":{"spec":{"nodeSelector":{"etcdshift/isolated":"true"}}}}}`,
		"cronjobs/a/cj":     `{"spec":{"suspend":true}}`,
		"pods/shop/waiting": `{"spec":{"nodeSelector":{"etcdshift/isolated":"true"}}}`,
		"pods/shop/web":     `{}`,
		"services/specs/shop/lb": `{"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":null},"finalizers":null},"spec":{"externalTrafficPolicy":null,"healthCheckNodePort":null,
			"ports":[{"name":"a","nodePort":null},{"name":"b","nodePort":null}],"type":"ClusterIP"}}`,
		"validatingwebhookconfigurations/guard": `{"webhooks":[{"name":"in.example.com","failurePolicy":"Ignore"}]}`,
	} {
		_, is := changed(before[key], r.values[key])
		text, err := json.Marshal(is)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text), key)
	}
	require.Contains(t, strings.Join(r.Steps, " "), "no switch pauses cert-manager")
	back, err := runOn(t, r.out, undone(t, r))
	require.NoError(t, err, "%v", back.Problems)
	require.Equal(t, before, back.values)
}

// TestKeepRunning checks that --keep-running accepts workloads by name or namespace.
func TestKeepRunning(t *testing.T) {
	path := written(t, acting()...)
	for running, replicas := range map[string]int64{"": 0, "kube-system/external-dns": 2, "kube-system": 0, "a/d": 0} {
		p := isolating()
		p.running = []string{running}
		r, err := runOn(t, path, p)
		require.NoError(t, err)
		spec := r.values["deployments/kube-system/external-dns"]["spec"].(map[string]any)
		require.Equal(t, replicas, spec["replicas"], running)
	}
}

// TestUndoRefuses checks that fields changed after the run are not restored; --allow skips them.
func TestUndoRefuses(t *testing.T) {
	path := written(t, append(world(), acting()...)...)
	r, err := runOn(t, path, isolating())
	require.NoError(t, err)
	u := undone(t, r)
	for i := range u.changes {
		switch c := &u.changes[i]; c.Key {
		case "/registry/deployments/a/d":
			c.After = []byte(`{"spec":{"replicas":5}}`)
		case "/registry/validatingwebhookconfigurations/guard":
			c.After = []byte(`{"webhooks":[{"name":"gone.example.com","failurePolicy":"Ignore"}]}`)
		case "/registry/cronjobs/a/cj":
			u.saved[c.Key] = []byte(`{"metadata":{"uid":"other"},"spec":{"suspend":false}}`)
		case "/registry/jobs/a/j2":
			delete(u.saved, c.Key)
		case "/registry/persistentvolumes/disk":
			c.After = []byte(`null`)
		}
	}
	refused, err := runOn(t, r.out, u)
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, 5, countOf(refused, codeChangedSince), "%v", refused.Problems)
	allowed, err := runOn(t, r.out, u, codeChangedSince.Name)
	require.NoError(t, err)
	require.Equal(t, r.values["deployments/a/d"], allowed.values["deployments/a/d"])
}

// TestUndoElsewhere checks that a report of another cluster is refused, and one without changes is
// a warning.
func TestUndoElsewhere(t *testing.T) {
	path := written(t, append(world(), acting()...)...)
	r, err := runOn(t, path, isolating())
	require.NoError(t, err)
	u := undone(t, r)
	require.NotEmpty(t, u.cluster)
	u.cluster = "another"
	refused, err := runOn(t, r.out, u)
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, 1, countOf(refused, codeOtherCluster), "%v", refused.Problems)
	_, err = runOn(t, r.out, u, codeOtherCluster.Name)
	require.NoError(t, err)
	none, err := runOn(t, r.out, &undo{})
	require.NoError(t, err)
	require.Equal(t, 1, countOf(none, codeNothingSaved))
}

func countOf(r ran, code *finding.Code) (n int) {
	for _, p := range r.Problems {
		if p.Code == code {
			n++
		}
	}
	return n
}

// FuzzPutBack checks that putBack reverts the result of changed for any two objects.
func FuzzPutBack(f *testing.F) {
	f.Add(`{"a":1,"l":[{"name":"x","p":1}]}`, `{"a":2,"b":{"c":1},"l":[{"name":"x","p":2}]}`)
	f.Add(`{"a":{"b":1}}`, `{"a":null}`)
	f.Add(`{"l":[1]}`, `{"l":[{"name":"x"}]}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		var b, a map[string]any
		if utiljson.Unmarshal([]byte(before), &b) != nil || utiljson.Unmarshal([]byte(after), &a) != nil || b == nil ||
			a == nil {
			return
		}
		was, is := changed(b, a)
		require.Empty(t, putBack(a, was, is))
		require.Equal(t, filled(b), filled(a))
	})
}

// filled returns a value without empty objects and nulls, which equal missing fields, and without
// the fields changed by each write.
func filled(value any) any {
	content, is := value.(map[string]any)
	if !is {
		if list, is := value.([]any); is {
			out := []any{}
			for _, one := range list {
				out = append(out, filled(one))
			}
			return out
		}
		return value
	}
	out := map[string]any{}
	for field, inner := range content {
		if inner = filled(inner); inner != nil && field != "generation" && field != "resourceVersion" {
			out[field] = inner
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// TestUndoOfPlan checks that --undo accepts the report of a plan with one step of this command.
func TestUndoOfPlan(t *testing.T) {
	const (
		step = `{"command":"prepare-restore","sections":[{"prepared":[],"undo":[{"key":"/registry/x",` +
			`"step":"webhooks","after":null}]}]}`
		head = `{"apiVersion":"etcdshift/v1","kind":"Report","outcome":"written","saved":{"/registry/x":{}},"plan":[`
	)
	for plan, wrong := range map[string]string{
		`{"command":"delete","sections":[{"deletion":{}}]},` + step: "",
		step + "," + step:                    "several steps are",
		`{"command":"delete","sections":[]}`: "not the report of a run",
	} {
		path := filepath.Join(t.TempDir(), "report.json")
		require.NoError(t, os.WriteFile(path, []byte(head+plan+`]}`), 0o600))
		u, err := newFromArgs(t.Context(), transformtest.Args("--undo="+path))
		if wrong != "" {
			require.ErrorContains(t, err, wrong)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "/registry/x", u.(*undo).changes[0].Key)
		require.Contains(t, u.(*undo).saved, "/registry/x")
	}
}

// A deleted object is saved in the report without its credentials; a manual step names it.
func TestSavedHasNoCredentials(t *testing.T) {
	path := written(t, append(world(), object("apiregistration.k8s.io/apiservices/v1.gone.example.net",
		"apiregistration.k8s.io/v1", "APIService", `,"uid":"g","annotations":{"token":"hunter2-MARK","note":"kept"}`,
		`,"spec":{"group":"gone.example.net","version":"v1","service":{"name":"gone","namespace":"shop"},`+
			`"groupPriorityMinimum":1,"versionPriority":1}`))...)
	r, err := runOn(t, path, prepared(nil, "api-services"))
	require.NoError(t, err)
	report, err := json.Marshal(r.Report)
	require.NoError(t, err)
	require.NotContains(t, string(report), "MARK")
	require.Contains(t, string(report), `"note":"kept"`)
	require.Contains(t, string(report), "v1.gone.example.net without its credentials")
}

// Webhooks with the same name are saved as a whole list without credentials, and are therefore not
// restored.
func TestSavedListHasNoCredentials(t *testing.T) {
	hook :=
		`{"name":"twice.example.com","clientConfig":{"service":{"name":"gone","namespace":"shop",` +
			`"path":"/x?token=hunter2-MARK"}},"sideEffects":"None",` +
			`"admissionReviewVersions":["v1"],"failurePolicy":"Fail"}`
	const key = "validatingwebhookconfigurations/twice"
	path := written(t, append(world(), object(key, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
		`,"uid":"t"`, `,"webhooks":[`+hook+`,`+hook+`]`))...)
	r, err := runOn(t, path, prepared(nil, "webhooks"))
	require.NoError(t, err)
	report, err := json.Marshal(r.Report)
	require.NoError(t, err)
	require.Contains(t, string(r.Saved["/registry/"+key]), "twice.example.com")
	require.NotContains(t, string(report), "MARK")
	back, err := runOn(t, r.out, undone(t, r))
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, 1, countOf(back, codeChangedSince), "%v", back.Problems)
}
