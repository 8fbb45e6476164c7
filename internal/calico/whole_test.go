package calico

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// These tests run the whole migration on variants of the recorded cluster.

// v3Records returns the v3 records of an output, by key.
func (r result) v3Records() map[string]string {
	out := maps.Clone(r.out)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, recordsV3) })
	return out
}

// TestManifestOfCRDs: a cluster without v3 CRDs, given those of its release, gets the same records
// as a cluster with them.
func TestManifestOfCRDs(t *testing.T) {
	whole := planOn(t, recorded(t, "before.db"), New(Options{}))
	in := newInput(t)
	for _, kd := range kinds() {
		in.del(crdDir + kd.Plural + "." + groupV3)
	}
	path := in.write()
	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Len(t, slices.DeleteFunc(got.problems(),
		func(p string) bool { return !strings.HasPrefix(p, "error crd-missing "+crdDir) }), 22)

	got = planOn(t, path, New(Options{V3CRDs: manifestOf(t, recorded(t, "before.db"), "")}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Equal(t, whole.v3Records(), got.v3Records())
	require.Equal(t, 63+22, got.Changes.Created)
	for _, kd := range kinds() {
		require.Contains(t, got.out, crdDir+kd.Plural+"."+groupV3)
	}
}

// TestPreflightRefuses: one run lists the obstacles to the whole migration and the problems of
// records.
func TestPreflightRefuses(t *testing.T) {
	in := manifestInstall(t, cniTemplate)
	old := in.daemonSet(daemonSet("kube-system", "calico-node",
		podTemplate("calico-node", "calico-node", "calico/node:v3.31.0")))
	in.edit(recordsV1+"tiers/default", func(obj map[string]any) { set(obj, "spec.order", 7) })
	role := in.role("calico-node", oldRules, serviceAccount("kube-system", "calico-node"))
	in.put(migrationKey, migrationObject(t, migrationName, map[string]any{"phase": "Migrating"}))
	in.record(v1{kind: "GlobalNetworkSet", name: "bad", inner: ""})
	got := planOn(t, in.write(), New(Options{SetAPIGroup: true}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	for _, problem := range []string{
		"error calico-too-old " + old, "error tier-drift " + recordsV1 + "tiers/default", "error rbac-missing " + role,
		"error half-done-migration " + migrationKey, "error bad-metadata " + recordsV1 + "globalnetworksets/bad",
	} {
		require.Contains(t, got.problems(), problem)
	}
}

// TestManifestInstall tests the components, an owner reference in them, and RBAC of a manifest
// install.
func TestManifestInstall(t *testing.T) {
	in := manifestInstall(t, cniTemplate)
	in.role("calico-node", newRules, serviceAccount("kube-system", "calico-node"))
	owned := daemonSet("kube-system", "calico-node", podTemplate("calico-node", "init-install-cni",
		"calico/cni:v3.32.0", "calico-node", "calico/node:v3.32.0"),
		metav1.OwnerReference{APIVersion: apiVersionV1, Kind: "Tier", Name: "security", UID: tierStored})
	in.daemonSet(owned)
	path := in.write()
	got := planOn(t, path, New(Options{SetAPIGroup: true}))
	require.NoError(t, got.err, "%v", got.Problems)
	for _, key := range manifestWorkloads {
		w := workload(t, got.out[key])
		requireGroup(t, w)
		if strings.HasSuffix(key, "/calico-node") {
			require.Equal(t, []encoding.OwnerReference{ends("Tier", "security", tierSeen)}, w.meta.OwnerReferences,
				"both changes are there")
			require.EqualValues(t, 5, w.meta.Generation)
		}
	}
	require.Contains(t, got.out["/registry/configmaps/kube-system/calico-config"],
		`"calico_api_group" :  "projectcalico.org/v3"`)
	require.NotContains(t, got.out, "/registry/apiregistration.k8s.io/apiservices/v3.projectcalico.org")
	require.False(t, got.has(finding.Warning, codeRBACUnknown.Name, ""))

	again := planOn(t, path, New(Options{}))
	require.NoError(t, again.err)
	for _, key := range manifestWorkloads[1:] {
		require.Equal(t, again.in[key], again.out[key])
	}
	require.Contains(t, strings.Join(again.Steps, "\n"),
		"before its pods start, set CALICO_API_GROUP=projectcalico.org/v3 on every container and initContainer of "+
			"DaemonSet kube-system/calico-node\n")
}

// TestOperatorInstall: the operator's workloads stay unchanged, and the steps begin with the
// operator.
func TestOperatorInstall(t *testing.T) {
	in := newInput(t)
	owner := metav1.OwnerReference{APIVersion: "operator.tigera.io/v1", Kind: "Installation", Name: "default", UID: "1"}
	node := in.daemonSet(daemonSet("calico-system", "calico-node",
		podTemplate("calico-node", "calico-node", "quay.io/calico/node:v3.32.0"), owner))
	operator := in.deployment(deployment("tigera-operator", "tigera-operator",
		podTemplate("tigera-operator", "tigera-operator", "quay.io/tigera/operator:v1.42.0")))
	in.role("calico-node", newRules, serviceAccount("calico-system", "calico-node"))
	for _, o := range []Options{{SetAPIGroup: true}, {SetAPIGroup: true, KeepV1: true}} {
		got := planOn(t, in.write(), New(o))
		require.NoError(t, got.err, "%v", got.Problems)
		require.Equal(t, got.in[node], got.out[node])
		require.Equal(t, got.in[operator], got.out[operator])
		require.Contains(t, got.byHand()[0], "restart Deployment tigera-operator/tigera-operator first, in v3 mode")
	}
}

// TestAffinities: an affinity keeps its type and labels, as in the live migration. calico-node adds
// labels to the affinities of its own node when it starts.
func TestAffinities(t *testing.T) {
	tests := []struct {
		name, spec string
		want       map[string]any // of the spec
	}{
		{"true", `{"cidr":"10.9.0.0/26","node":"node-a","state":"pendingDeletion","deleted":"True"}`,
			map[string]any{"deleted": true}},
		{"one", `{"cidr":"10.9.0.64/26","node":"node-a","state":"confirmed","deleted":"1","type":""}`,
			map[string]any{"deleted": true, "type": ""}},
		{"empty", `{"cidr":"fd00:9::/122","node":"node-a","state":"","deleted":"","type":"host"}`,
			map[string]any{"deleted": false, "state": "", "type": "host"}},
		{"absent", `{"cidr":"10.9.0.128/26","node":"node-a","state":"pending","type":"virtual"}`,
			map[string]any{"deleted": false, "type": "virtual"}},
		{"none", `{"cidr":"10.9.0.192/26","node":"node-a","state":"pending","deleted":"false"}`,
			map[string]any{"deleted": false, "type": nil}},
	}
	in := newInput(t)
	records := make([]v1, len(tests))
	for i, tt := range tests {
		records[i] = v1{kind: "BlockAffinity", name: "node-a-" + tt.name,
			uid:   fmt.Sprintf("aaaaaa%02d-0000-4000-8000-000000000000", i),
			inner: `{"labels":{"mine":"kept","projectcalico.org/affinity-type":""}}`, spec: tt.spec}
		in.record(records[i])
	}
	got := planOn(t, in.write(), New(Options{}))
	for i, tt := range tests {
		obj := got.written(t, records[i].v3())
		for name, want := range tt.want {
			require.Equal(t, want, at(obj, "spec", name), tt.name)
		}
		require.Equal(t, map[string]any{"mine": "kept", labelAffinityType: ""}, at(obj, "metadata", "labels"), tt.name)
	}
}

// TestInnerMetadata: UID, namespace and version in the annotation are ignored, but a name counts,
// for every kind.
func TestInnerMetadata(t *testing.T) {
	r := v1{kind: "NetworkSet", namespace: "team-a", name: "stored",
		inner: `{"name":"seen","namespace":"team-b","uid":"99999999-9999-4999-8999-999999999999",` +
			`"resourceVersion":"7","generation":9,"selfLink":"/x"}`}
	held := v1{kind: "GlobalNetworkSet", name: "held", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0,` +
			`"finalizers":["example.com/inner"]}`}
	loose := v1{kind: "GlobalNetworkSet", name: "loose", uid: "32345678-9abc-4def-8123-456789abcdef",
		inner: `{"deletionTimestamp":"2026-02-02T00:00:00Z"}`}
	outer := v1{kind: "GlobalNetworkSet", name: "outer", uid: "42345678-9abc-4def-8123-456789abcdef",
		inner: `{"deletionTimestamp":"2026-02-02T00:00:00Z"}`, meta: `"finalizers":["example.com/outer"],`}
	got := migrateRecords(t, Options{}, r, held, loose, outer)
	obj := got.written(t, recordsV3+"networksets/team-a/seen")
	require.Equal(t, map[string]any{"name": "seen", "namespace": "team-a", "uid": clientUID, "generation": float64(1),
		"creationTimestamp": "2026-01-01T00:00:00Z"}, obj["metadata"])
	require.Contains(t, got.Renamed, transform.Rename{Kind: "NetworkSet", Namespace: "team-a",
		From: "stored", To: "seen"})
	require.Equal(t, "2026-02-02T00:00:00Z", at(got.written(t, held.v3()), "metadata", "deletionTimestamp"))
	require.Equal(t, []any{"example.com/outer"}, at(got.written(t, outer.v3()), "metadata", "finalizers"))
	require.NotContains(t, got.out, loose.v3())
	require.True(t, got.has(finding.Warning, codeTerminating.Name, loose.key()))
}

// TestOwnerChain: a Tier owns a policy, and the policy owns a ConfigMap. With new UIDs, each owner
// reference has the new UID of the owner.
func TestOwnerChain(t *testing.T) {
	tier := v1{kind: "Tier", name: "top", uid: "22345678-9abc-4def-8123-456789abcdef", inner: "{}",
		spec: `{"order":5,"defaultAction":"Deny"}`}
	policy := v1{kind: "GlobalNetworkPolicy", name: "default.mid",
		inner: `{"ownerReferences":[` + ref(apiVersionV1, "Tier", "top", tier.uid) + `]}`}
	for _, o := range []Options{{}, {NewUIDs: true}} {
		in := newInput(t).record(tier).record(policy)
		const native = "/registry/configmaps/team-a/bottom"
		in.native(native, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bottom",
			Namespace: "team-a",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersionV3, Kind: "GlobalNetworkPolicy",
				Name: "mid", UID: clientUID}}}})
		got := planOn(t, in.write(), New(o))
		top, mid := got.written(t, tier.v3()), got.written(t, recordsV3+"globalnetworkpolicies/mid")
		require.Equal(t, at(top, "metadata", "uid"), at(mid, "metadata",
			"ownerReferences").([]any)[0].(map[string]any)["uid"])
		bottom, err := encoding.ReadMeta([]byte(got.out[native]))
		require.NoError(t, err)
		require.Equal(t, at(mid, "metadata", "uid"), bottom.OwnerReferences[0].UID)
		require.Equal(t, o.NewUIDs, bottom.OwnerReferences[0].UID != clientUID)
	}
}
