package storageversion

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	priorityJSON = `{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/VERSION",` +
		`"metadata":{"name":"a"},"value":7,"preemptionPolicy":"Never"}` + "\n"
	claimJSON = `{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/VERSION","metadata":{"name":"a",` +
		`"namespace":"ns"},"spec":{"devices":{}}}` + "\n"
)

func at(text, version string) string { return strings.Replace(text, "VERSION", version, 1) }

// TestRelease checks that only objects of built-in kinds at another version than the release stores
// are rewritten, and that owner references to removed versions change with them.
func TestRelease(t *testing.T) {
	const priority, claim, kept = "/registry/priorityclasses/a", "/registry/resourceclaims/ns/a",
		"/registry/resourceclaims/ns/kept"
	scaler := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1alpha1", Kind: "Widget", Name: "w",
			UID: "u"}},
	}, Spec: autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 3, TargetCPUUtilizationPercentage: new(int32(50))}}
	build := func() *cluster {
		return newCluster(t, definition{versions: "v1alpha1- v1*"}).add(resource{version: "v1", name: "w"}).
			leased(priority, at(priorityJSON, "v1alpha1"), 0).put(claim, at(claimJSON, "v1beta1")).
			put(kept, strings.Replace(at(claimJSON, "v1"), `"a"`, `"kept"`, 1)).
			native("/registry/horizontalpodautoscalers/ns/a", "autoscaling/v1", "HorizontalPodAutoscaler", scaler)
	}
	require.NotContains(t, build().migrate(Options{}).changed(), priority)

	r := build().migrate(Options{Release: native.LinkedRelease})
	require.Equal(t, []string{"/registry/horizontalpodautoscalers/ns/a", priority, claim}, r.changed())
	require.Equal(t, at(priorityJSON, "v1"), r.out[priority].value)
	require.Contains(t, r.out[claim].value, `"apiVersion":"resource.k8s.io/v1"`)
	scaled := r.out["/registry/horizontalpodautoscalers/ns/a"].value
	require.Contains(t, scaled, "autoscaling/v2\x12")
	require.Contains(t, scaled, "example.com/v1\x12")
	require.NotContains(t, scaled, "v1alpha1")
	require.Contains(t, r.BuiltinKinds, transform.KindCount{Kind: "PriorityClass", From: "scheduling.k8s.io/v1alpha1",
		To: "scheduling.k8s.io/v1", Migrated: 1})

	r = build().migrate(Options{Release: 33})
	require.Contains(t, r.out[kept].value, `"apiVersion":"resource.k8s.io/v1beta1"`)
	require.Equal(t, r.in[claim], r.out[claim])
}

// TestReleaseRefuses checks the objects that no release's form can hold.
func TestReleaseRefuses(t *testing.T) {
	const claim, group = "/registry/resourceclaims/ns/a", "/registry/podgroups/ns/a"
	c := newCluster(t).put(claim, at(claimJSON, "v1alpha2")).
		put(group, `{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1beta1",`+
			`"metadata":{"name":"a","namespace":"ns"}}`)
	r := c.migrate(Options{Release: 34})
	r.refusedFor("error dead-version "+claim, "warning not-in-release "+group)
	require.Contains(t, r.reason(codeVersionDead.Name), "Kubernetes 1.30 is the last that decodes this version")
	require.Contains(t, r.reason(codeNotInRelease.Name), "Kubernetes 1.34 has no PodGroup.scheduling.k8s.io")
	r = c.migrate(Options{Release: 34}, codeVersionDead.Name)
	require.Empty(t, r.changed())
	require.Contains(t, r.BuiltinKinds, transform.KindCount{Kind: "PodGroup", From: "scheduling.k8s.io/v1beta1",
		Skipped: 1})
	r = c.migrate(Options{Release: 34, RemoveUnserved: true}, codeVersionDead.Name)
	require.Contains(t, r.out, claim)
	require.NotContains(t, r.out, group)
	require.Contains(t, r.reason(codeNotInRelease.Name), "Kubernetes 1.34 has no PodGroup.scheduling.k8s.io: deleted")
	require.Contains(t, r.BuiltinKinds, transform.KindCount{Kind: "PodGroup", From: "scheduling.k8s.io/v1beta1",
		Deleted: 1})

	c = newCluster(t).put("/registry/resourceclaims/ns/a", strings.Replace(at(claimJSON, "v1beta1"), `"spec"`,
		`"hunter2":1,"spec"`, 1))
	r = c.migrate(Options{Release: native.LinkedRelease})
	r.refusedFor("error dead-version " + claim)
	require.Contains(t, r.reason(codeVersionDead.Name), "hunter2: the kind has no such field")
}

// TestReleaseKeeps checks that the objects with which a server serves other objects stay.
func TestReleaseKeeps(t *testing.T) {
	service := `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/VERSION","metadata":{"name":"NAME"},` +
		`"spec":{"group":"apps","version":"v1"}}` + "\n"
	const dir = "/registry/apiregistration.k8s.io/apiservices/"
	c := newCluster(t, definition{versions: "v1*", stored: `["v1"]`}).
		put(dir+"v1.apps", at(service, "v1")).put(dir+"v1.old", at(service, "v1beta1"))
	for _, release := range []int{native.OldestRelease, native.LinkedRelease} {
		r := c.migrate(Options{Release: release, RemoveUnserved: true})
		require.Empty(t, r.changed())
		require.Empty(t, r.problems())
	}
}

// TestReleaseHelm checks manifests of Helm releases that name versions that a release of Kubernetes
// does not serve.
func TestReleaseHelm(t *testing.T) {
	const manifest = "# all of it\n---\n# Source: a.yaml\napiVersion: policy/v1beta1 # <old>\n" +
		"kind: PodDisruptionBudget\n---" +
		"\napiVersion: v1\nkind: Service\n---\nkind: \"PodSecurityPolicy\"\napiVersion: 'policy/v1beta1'\n" +
		"---\napiVersion: \"extensions/v1beta1\"\r\nkind: Ingress\r\nspec:\n  apiVersion: extensions/v1beta1\n" +
		"---\napiVersion: example.com/v1alpha1\nkind: Widget\n---\napiVersion: autoscaling/v2beta2\n" +
		"kind: HorizontalPodAutoscaler\n"
	const key, helmType = "/registry/secrets/ns/sh.helm.release.v1.r.v1", "helm.sh/release.v1"
	meta := metav1.ObjectMeta{Name: "sh.helm.release.v1.r.v1", Namespace: "ns",
		Labels: map[string]string{"name": "r", "owner": "helm", "status": "deployed"}}
	asJSON, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": meta,
		"data": map[string][]byte{"release": []byte(helm(t, manifest))}, "type": helmType})
	require.NoError(t, err)
	d := definition{versions: "v1alpha1- v1*"}
	for name, c := range map[string]*cluster{
		"protobuf": newCluster(t, d).native(key, "v1", "Secret",
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"release": []byte(helm(t, manifest))},
				Type: helmType}),
		"JSON": newCluster(t, d).put(key, string(asJSON)),
	} {
		t.Run(name, func(t *testing.T) {
			r := c.migrate(Options{Release: 36})
			require.Empty(t, r.changed())
			require.Contains(t, r.reason(codeHelmRelease.Name), "autoscaling/v2beta2 HorizontalPodAutoscaler, "+
				"example.com/v1alpha1 Widget, extensions/v1beta1 Ingress, policy/v1beta1 PodDisruptionBudget, "+
				"policy/v1beta1 PodSecurityPolicy")

			r = c.migrate(Options{Release: 36, Helm: true})
			require.Equal(t, []string{key}, r.changed())
			require.Contains(t, r.reason(codeHelmRelease.Name), "not served: policy/v1beta1 PodSecurityPolicy;")
			changed := strings.NewReplacer("policy/v1beta1 #", "policy/v1 #", `"extensions/v1beta1"`, `"networking.k8s.io/v1"`,
				"example.com/v1alpha1", "example.com/v1", "autoscaling/v2beta2", "autoscaling/v2").Replace(manifest)
			require.Equal(t, changed, manifestOf(t, r.out[key].value))

			r = c.migrate(Options{Release: 36, Helm: true, RemoveUnserved: true})
			require.Empty(t, r.Problems)
			const removed = "---\nkind: \"PodSecurityPolicy\"\napiVersion: 'policy/v1beta1'\n"
			require.Equal(t, strings.Replace(changed, removed, "", 1),
				manifestOf(t, r.out[key].value))
			require.Equal(t, []HelmRelease{{key, "r", []string{
				"autoscaling/v2beta2 HorizontalPodAutoscaler: autoscaling/v2",
				"example.com/v1alpha1 Widget: example.com/v1",
				"extensions/v1beta1 Ingress: networking.k8s.io/v1", "policy/v1beta1 PodDisruptionBudget: policy/v1",
				"policy/v1beta1 PodSecurityPolicy: removed"}}}, r.HelmReleases)

			r = c.migrate(Options{Helm: true})
			require.Equal(t, []string{"example.com/v1alpha1 Widget: example.com/v1"}, r.HelmReleases[0].Changes)
		})
	}
}

func manifestOf(t testing.TB, value string) string {
	t.Helper()
	v, err := encoding.Parse([]byte(value))
	require.NoError(t, err)
	release, err := objects.ReadHelm(v)
	require.NoError(t, err)
	return release.Manifest
}

// TestReleaseOwners checks owner references to versions that a release does not serve.
func TestReleaseOwners(t *testing.T) {
	const key = "/registry/configmaps/ns/a"
	value := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","ownerReferences":[` +
		`{"apiVersion":"extensions/v1beta1","kind":"ReplicaSet","name":"a","uid":"1"},` +
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"b","uid":"2"},` +
		`{"apiVersion":"other.example.com/v1","kind":"ReplicaSet","name":"c","uid":"3"},` +
		`{"apiVersion":"policy/v1beta1","kind":"PodSecurityPolicy","name":"d","uid":"4"}]}}` + "\n"
	r := newCluster(t).put(key, value).migrate(Options{Release: 29})
	require.Equal(t, strings.Replace(value, "extensions/v1beta1", "apps/v1", 1), r.out[key].value)
	require.Equal(t, []string{"warning owner-version " + key}, r.problems())
}

// TestReleaseFields checks fields that the release does not know, at an unchanged version: those
// that are set refuse the run, and --allow drops them.
func TestReleaseFields(t *testing.T) {
	const key, packed, node = "/registry/leases/ns/a", "/registry/leases/ns/b", "/registry/csinodes/a"
	lease := func(strategy *coordinationv1.CoordinatedLeaseStrategy) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("h"), Strategy: strategy}}
	}
	const with, without = `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"ns",` +
		`"name":"a"},"spec":{"preferredHolder":"p","holderIdentity":"h","strategy":"s"}}` + "\n",
		`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"ns",` +
			`"name":"a"},"spec":{"holderIdentity":"h"}}` + "\n"
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c := newCluster(t).put(key, with).
		native(packed, "coordination.k8s.io/v1", "Lease", lease(new(coordinationv1.CoordinatedLeaseStrategy))).
		native(node, "storage.k8s.io/v1", "CSINode", csi)
	require.Empty(t, c.migrate(Options{Release: native.LinkedRelease}).changed())

	r := c.migrate(Options{Release: 30})
	r.refusedFor("error pruned-field "+key, "error pruned-field "+packed)
	require.Equal(t, "coordination.k8s.io/v1 Lease of Kubernetes 1.30 cannot hold spec.preferredHolder, "+
		"spec.strategy",
		r.Problems[0].Reason)

	r = c.migrate(Options{Release: 30}, codePrunedField.Name)
	require.Equal(t, []string{node, key, packed}, r.changed())
	require.Equal(t, without, r.out[key].value)
	require.Equal(t, protobufOf(t, "coordination.k8s.io/v1", "Lease", lease(nil), 0), r.out[packed].value)
	const status = 2 // bytes, at the end
	require.Equal(t, protobufOf(t, "storage.k8s.io/v1", "CSINode", csi, status), r.out[node].value)
	require.Contains(t, r.BuiltinKinds, transform.KindCount{Kind: "Lease", From: "coordination.k8s.io/v1",
		To: "coordination.k8s.io/v1", Migrated: 2})
}

// TestReleaseDefaults checks that an object gets the defaults of the release, at an unchanged
// version, also with another change of the run.
func TestReleaseDefaults(t *testing.T) {
	const driver, secret = "/registry/csidrivers/a", "/registry/secrets/ns/sh.helm.release.v1.r.v1"
	c := newCluster(t).put(driver, `{"kind":"CSIDriver","apiVersion":"storage.k8s.io/v1","metadata":{"name":"a"},`+
		`"spec":{"attachRequired":true,"podInfoOnMount":false,"volumeLifecycleModes":["Persistent"],`+
		`"storageCapacity":false,"fsGroupPolicy":"File","requiresRepublish":false,"seLinuxMount":false}}`+"\n").
		put("/registry/namespaces/ns", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns"}}`).
		put("/registry/persistentvolumeclaims/ns/a", `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{`+
			`"name":"a","namespace":"ns"}}`).
		put(secret, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"sh.helm.release.v1.r.v1","namespace":"ns",`+
			`"labels":{"owner":"helm","status":"deployed"}},"data":{"release":"`+base64.StdEncoding.EncodeToString(
			[]byte(helm(t, "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n")))+`"}}`)
	r := c.migrate(Options{Release: native.LinkedRelease, Helm: true})
	require.Contains(t, r.out[driver].value, `"preventPodSchedulingIfMissing":false`)
	require.Contains(t, r.out["/registry/namespaces/ns"].value, `"labels":{"kubernetes.io/metadata.name":"ns"}`)
	require.Contains(t, r.out["/registry/persistentvolumeclaims/ns/a"].value, `"status":{"phase":"Pending"}`)
	require.Contains(t, r.out[secret].value, `"type":"Opaque"`)
	require.Contains(t, manifestOf(t, r.out[secret].value), "policy/v1\n")

	r = c.migrate(Options{Release: 36})
	require.Equal(t, r.in[driver], r.out[driver])
}

// TestReleaseManagers checks managedFields at versions that the release does not serve: an update
// drops them.
func TestReleaseManagers(t *testing.T) {
	const key = "/registry/configmaps/ns/a"
	entry := func(manager, apiVersion string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: apiVersion,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:z":{},"f:a":{}}`)}}
	}
	object := func(entries ...metav1.ManagedFieldsEntry) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", ManagedFields: entries}}
	}
	c := newCluster(t).native(key, "v1", "ConfigMap", object(entry("a", "v1beta3"), entry("b", "v1")))
	r := c.migrate(Options{Release: 36})
	require.Equal(t, protobufOf(t, "v1", "ConfigMap", object(entry("b", "v1")), 0), r.out[key].value)
	require.Equal(t, []string{"warning managed-fields-lost " + key}, r.problems())
	require.Contains(t, r.Problems[0].Reason, `"a" at v1beta3`)

	r = c.migrate(Options{Release: 36, KeepManagedFields: true})
	require.Equal(t, r.in[key], r.out[key])
	require.Equal(t, []string{"warning managed-fields-lost " + key}, r.problems())
}

// TestReleaseUnread checks an object that Kubernetes cannot convert, and one at a version that this
// build does not know.
func TestReleaseUnread(t *testing.T) {
	const daemon, claim = "/registry/daemonsets/ns/a", "/registry/resourceclaims/ns/a"
	r := newCluster(t).put(claim, at(claimJSON, "v1alpha2")).
		put(daemon, `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"ns",`+
			`"annotations":{"deprecated.daemonset.template.generation":"hunter2"}}}`).migrate(Options{Release: 30})
	r.refusedFor("error undecodable "+daemon, "warning unknown-kind "+claim)
	require.Contains(t, r.reason("undecodable"), "apps/v1 DaemonSet: an API server cannot read it")
	require.NotContains(t, r.reason("undecodable"), "hunter2")
	require.Contains(t, r.reason("unknown-kind"), "resource.k8s.io/v1alpha2 ResourceClaim: this build does not know")
}
