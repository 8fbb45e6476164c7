package calico

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// These tests check the dependents of skipped records.

// TestOwnerSkipped: a garbage collector would delete the dependents of a skipped record.
func TestOwnerSkipped(t *testing.T) {
	const ownerUID, ownerSeen = "32345678-9abc-4def-8123-456789abcdef", "4c2c6a1e-593d-4df7-81c4-a2e691d5b3f7"
	bad := v1{kind: "GlobalNetworkSet", name: "bad", uid: ownerUID, inner: "{}", spec: `{"nets":5}`}
	policy := v1{kind: "GlobalNetworkPolicy", name: "owned",
		inner: `{"name":"owned","ownerReferences":[` + ref(apiVersionV1, "GlobalNetworkSet", "bad", ownerUID) + `]}`}
	second := v1{kind: "GlobalNetworkPolicy", name: "again", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"name":"again","ownerReferences":[` + ref(apiVersionV1, "GlobalNetworkPolicy", "owned", storedUID) +
			`]}`}
	in := newInput(t).record(bad).record(policy).record(second)
	const native, raw = "/registry/configmaps/team-a/native", "/registry/configmaps/team-a/raw"
	owned := func(name, apiVersion, uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: apiVersion, Kind: "GlobalNetworkSet", Name: "bad", UID: types.UID(uid)},
			}}}
	}
	in.native(native, "v1", "ConfigMap", owned("native", apiVersionV3, ownerSeen))
	in.native(raw, "v1", "ConfigMap", owned("raw", apiVersionV1, ownerUID))
	got := planOn(t, in.write(), New(Options{}), codeInvalid.Name, codeDanglingOwner.Name)
	require.NoError(t, got.err)
	for _, r := range []v1{bad, policy, second} {
		require.NotContains(t, got.out, r.v3())
		require.Equal(t, got.in[r.key()], got.out[r.key()])
	}
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, policy.key()),
		`owner GlobalNetworkSet "bad": it is not migrated`)
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, second.key()),
		`owner GlobalNetworkPolicy "owned": it is not migrated`)
	require.True(t, got.has(finding.Error, codeDanglingOwner.Name, native))
	require.False(t, got.has(finding.Error, codeDanglingOwner.Name, raw), "its owner, the v1 record, stays")
	require.Equal(t, got.in[native], got.out[native])
	require.Equal(t, got.in[raw], got.out[raw])
	require.Equal(t, 2, got.count("GlobalNetworkPolicy").Skipped)
	require.Equal(t, 6, got.count("GlobalNetworkPolicy").Migrated)
}

// TestOwnersNobodyLooksFor: an owner that the garbage collector cannot look up costs no object. A
// missing owner is dropped if another owner exists, so the missing owner must be in the remaining
// group.
func TestOwnersNobodyLooksFor(t *testing.T) {
	const nobody = "77777777-7777-4777-8777-777777777777"
	namespace := ref("v1", "Namespace", "team-a", namespaceA)
	unknown := v1{kind: "GlobalNetworkSet", name: "unknown",
		inner: `{"ownerReferences":[` + ref(apiVersionV3, "Profile", "kns.x", nobody) + `]}`}
	both := v1{kind: "GlobalNetworkSet", name: "both", uid: "42345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV3, "Profile", "kns.x", nobody) + "," + ref(apiVersionV1, "Tier",
			"gone", storedUID) + `]}`}
	part := v1{kind: "NetworkSet", namespace: "team-a", name: "part", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV1, "IPAMConfig", "gone", storedUID) + "," + namespace + `]}`}
	unknown.uid = "32345678-9abc-4def-8123-456789abcdef"
	got := migrateRecords(t, Options{}, unknown, both, part)
	got.written(t, unknown.v3())
	got.written(t, both.v3())
	require.True(t, got.has(finding.Warning, codeDanglingOwner.Name, unknown.key()))
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, unknown.key()),
		"cannot look for it: owner projectcalico.org/v3 Profile")
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, part.key()),
		`will drop a reference: owner crd.projectcalico.org/v1 IPAMConfig "gone" (uid `+storedUID+`): no Calico object`)
	owners := at(got.written(t, part.v3()), "metadata", "ownerReferences").([]any)
	require.Equal(t, map[string]any{"apiVersion": apiVersionV3, "kind": "IPAMConfiguration", "name": "gone",
		"uid": clientUID}, owners[0], "as clients saw it")
	require.Len(t, owners, 2)
}

// TestOwnerThatCannotBeRead: a record refused because of its content remains an owner.
func TestOwnerThatCannotBeRead(t *testing.T) {
	const native, raw, other = "/registry/configmaps/team-a/native", "/registry/configmaps/team-a/raw",
		"/registry/configmaps/team-a/other"
	bad := v1{kind: "GlobalNetworkPolicy", name: "default.bad", inner: `{"name":`}
	dead := v1{kind: "GlobalNetworkSet", name: "dead", inner: "{}", uid: "12345678-9abc-4def-8123-456789abcdef"}
	in := newInput(t).record(bad).record(dead)
	owned := func(key, apiVersion, uid string) {
		name := key[strings.LastIndexByte(key, '/')+1:]
		in.native(key, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name,
			Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: apiVersion, Kind: "GlobalNetworkPolicy", Name: "default.bad", UID: types.UID(uid)},
			}}})
	}
	owned(native, apiVersionV3, clientUID)
	owned(raw, apiVersionV1, storedUID)
	owned(other, apiVersionV1, "77777777-7777-4777-8777-777777777777")
	got := planOn(t, in.write(), New(Options{}), codeBadMetadata.Name, codeBadUID.Name, codeDanglingOwner.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, native), "it is not migrated")
	require.False(t, got.has(finding.Warning, codeDanglingOwner.Name, raw), "the v1 record it names stays")
	require.True(t, got.has(finding.Warning, codeDanglingOwner.Name, other))
	require.Contains(t, got.reason(t, codeBadUID.Name, dead.key()), bad.key()+" has the same")
	for _, key := range []string{native, raw, other, bad.key(), dead.key()} {
		require.Equal(t, got.in[key], got.out[key])
	}
	require.Equal(t, 1, got.count("GlobalNetworkPolicy").Skipped)
	keepsV1(t, got, bad.key(), 2)
}

// TestClusterInformationSkipped: ClusterInformation is written last, and checked before its
// dependents.
func TestClusterInformationSkipped(t *testing.T) {
	const stored, seen = "d8ccfe16-09c4-4b5e-8a3f-4b6e4d5f9a01", "1b337f68-9023-4b7a-8afc-d276b2fa5980"
	const native = "/registry/configmaps/team-a/native"
	key := recordsV1 + "clusterinformations/default"
	owned := v1{kind: "GlobalNetworkSet", name: "owned", inner: `{"ownerReferences":[` +
		ref(apiVersionV1, "ClusterInformation", "default", stored) + `]}`}
	in := newInput(t).record(owned)
	in.edit(key, func(obj map[string]any) { set(obj, "metadata.uid", stored) })
	in.native(native, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native",
		Namespace: "team-a",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersionV3, Kind: "ClusterInformation",
			Name: "default", UID: seen}}}})
	got := planOn(t, in.write(), New(Options{}))
	require.Equal(t, seen, at(got.written(t, recordsV3+"clusterinformations/default"), "metadata", "uid"))
	got.written(t, owned.v3())

	in.edit(key, func(obj map[string]any) { set(obj, "spec.calicoVersion", 3.32) })
	path := in.write()
	got = planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.True(t, got.has(finding.Error, codeDanglingOwner.Name, native), "%v", got.Problems)
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, owned.key()),
		`owner ClusterInformation "default": it is not migrated`)
	got = planOn(t, path, New(Options{}), codeInvalid.Name, codeDanglingOwner.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.NotContains(t, got.out, recordsV3+"clusterinformations/default")
	require.NotContains(t, got.out, owned.v3())
	require.Contains(t, got.out[key], `"datastoreReady":false`)
}

// TestTakenBack: if an owner is skipped, all changes staged for its dependents are undone, along a
// chain of owners. A replaced v3 object is restored, and ClusterInformation, which comes last, is
// not written.
func TestTakenBack(t *testing.T) {
	const ownerUID = "32345678-9abc-4def-8123-456789abcdef"
	owned := func(kind, name, uid string) string {
		return `{"ownerReferences":[` + ref(apiVersionV1, kind, name, uid) + `]}`
	}
	bad := v1{kind: "GlobalNetworkSet", name: "bad", uid: ownerUID, inner: "{}", spec: `{"nets":5}`}
	tier := v1{kind: "Tier", name: "chained", inner: owned("GlobalNetworkSet", "bad", ownerUID),
		spec: `{"order":5,"defaultAction":"Deny"}`}
	in := newInput(t).record(bad).record(tier)
	object := there("Tier", "chained", `"ownerReferences":[`+ref(apiVersionV1, "Tier", "security", tierStored)+`],`,
		`{"order":6,"defaultAction":"Deny"}`)
	in.put(tier.v3(), object)
	info := v1{kind: "ClusterInformation", name: "default", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: owned("Tier", "chained", storedUID), spec: `{"calicoVersion":"v3.32.0","datastoreReady":true}`}
	in.record(info)
	got := planOn(t, in.write(), New(Options{Conflicts: TakeV1}), codeInvalid.Name, codeDanglingOwner.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.Equal(t, strings.Replace(string(object), ref(apiVersionV1, "Tier", "security", tierStored),
		ref(apiVersionV3, "Tier", "security", tierSeen), 1), got.out[tier.v3()],
		"as it was, and with its own owners where they are now")
	require.True(t, got.has(finding.Error, codeDanglingOwner.Name, tier.key()))
	for _, r := range got.References {
		require.False(t, r.Key == tier.v3() && r.OwnerName == "bad", "of what was taken back")
	}
	got.written(t, info.v3()) // its owner, the v3 tier, exists after all

	in.del(tier.v3())
	got = planOn(t, in.write(), New(Options{}), codeInvalid.Name, codeDanglingOwner.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.NotContains(t, got.out, tier.v3())
	require.NotContains(t, got.out, info.v3())
	require.True(t, got.has(finding.Error, codeDanglingOwner.Name, info.key()))
}
