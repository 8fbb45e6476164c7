package calico

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// thereUID is the UID of a v3 object from before the migration.
const thereUID = "99999999-9999-4999-8999-999999999999"

func there(kind, name, meta, spec string) []byte {
	return []byte(`{"apiVersion":"projectcalico.org/v3","kind":"` + kind + `","metadata":{` + meta +
		`"creationTimestamp":"2026-03-03T00:00:00Z","generation":4,"name":"` +
		name + `","uid":"` + thereUID + `"},"spec":` + spec + "}\n")
}

const secure = recordsV3 + "tiers/security"

func TestEqualV3ObjectStays(t *testing.T) {
	in := newInput(t)
	object := there("Tier", "security", `"labels":{"other":"label"},`, `{"order":200.0,"defaultAction":"Pass"}`)
	in.put(secure, object)
	got := planOn(t, in.write(), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Equal(t, string(object), got.out[secure])
	require.Equal(t, transform.KindCount{Kind: "Tier", From: apiVersionV1, To: apiVersionV3, Migrated: 4, Unchanged: 1},
		got.count("Tier"))
	require.Contains(t, got.reason(t, codeMetadataDiffers.Name, secure), "its spec is that of "+recordsV1+
		"tiers/security, but not its uid, creationTimestamp, labels, annotations, status: it stays as it is")

	// Objects owned by the v1 tier are now owned by the v3 object.
	policy := got.written(t, recordsV3+"globalnetworkpolicies/security.block-bad")
	require.Equal(t, thereUID, at(policy, "metadata", "ownerReferences").([]any)[0].(map[string]any)["uid"])
	require.Contains(t, got.out["/registry/networkpolicies/team-b/owned-by-tier"], thereUID)
	require.NotContains(t, got.out["/registry/networkpolicies/team-b/owned-by-tier"],
		"d7fc5621-710e-4373-a646-8cc894d690fa")
}

func TestConflict(t *testing.T) {
	in := newInput(t)
	object := there("Tier", "security", `"finalizers":["projectcalico.org/tier-controller"],`,
		`{"order":42,"defaultAction":"Deny"}`)
	in.put(secure, object)
	path, key := in.write(), recordsV1+"tiers/security"
	const reason = "a v3 object of its name is there and differs: spec.defaultAction, spec.order"

	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Equal(t, reason, got.reason(t, codeConflict.Name, key))
	require.Equal(t, 1, got.count("Tier").Conflicts)

	got = planOn(t, path, New(Options{}), codeConflict.Name)
	keepsV1(t, got, key, 1)
	require.Equal(t, string(object), got.out[secure])
	require.Contains(t, strings.Join(got.Steps, "\n"),
		"migrate the input again with --conflicts keep-v3 or --conflicts take-v1")

	got = planOn(t, path, New(Options{Conflicts: KeepV3}))
	require.NoError(t, got.err)
	require.Equal(t, string(object), got.out[secure])
	require.NotContains(t, got.out, key, "settled: v1 goes")
	require.True(t, got.has(finding.Warning, codeConflict.Name, key))
	require.Equal(t, transform.KindCount{Kind: "Tier", From: apiVersionV1, To: apiVersionV3, Migrated: 4, Skipped: 1,
		Conflicts: 1}, got.count("Tier"))

	got = planOn(t, path, New(Options{Conflicts: TakeV1}))
	taken := got.written(t, secure)
	require.NotContains(t, got.out, key)
	require.True(t, got.has(finding.Warning, codeConflict.Name, key))
	require.Equal(t, map[string]any{"order": float64(200), "defaultAction": "Pass"}, taken["spec"])
	require.Equal(t, thereUID, at(taken, "metadata", "uid"), "an update keeps the UID")
	require.EqualValues(t, 5, at(taken, "metadata", "generation"))
	require.Equal(t, map[string]any{"team": "sec"}, at(taken, "metadata", "labels"))
	require.Equal(t, []any{"projectcalico.org/tier-controller"}, at(taken, "metadata", "finalizers"),
		"what holds the v3 object holds it on")
	require.NotNil(t, taken["status"])
	require.Contains(t, got.out["/registry/networkpolicies/team-b/owned-by-tier"], thereUID)
}

// TestMetadataOfWhatIsThere: each difference outside the spec is reported, and metadata found only
// in the v3 object outlives take-v1.
func TestMetadataOfWhatIsThere(t *testing.T) {
	set := v1{kind: "GlobalNetworkSet", name: "met", inner: "{}",
		meta: `"finalizers":["example.com/f"],"deletionTimestamp":"2026-02-02T00:00:00Z",`,
		spec: `{"nets":["192.0.2.0/24"]}`}
	owned := v1{kind: "GlobalNetworkSet", name: "owned", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV1, "Tier", "security", tierStored) + `]}`}
	pool := v1{kind: "IPPool", name: "pool", uid: "32345678-9abc-4def-8123-456789abcdef", inner: "{}",
		spec: `{"cidr":"10.99.0.0/16"}`}
	in := newInput(t).record(set).record(owned).record(pool)
	in.put(set.v3(), there("GlobalNetworkSet", "met", "", set.spec))
	in.put(owned.v3(), there("GlobalNetworkSet", "owned", "", `{}`))
	object := strings.Replace(string(there("IPPool", "pool", "", `{"cidr":"10.99.0.0/16","natOutgoing":true}`)),
		`}}`+"\n", `},"status":{"conditions":[]}}`+"\n", 1)
	in.put(pool.v3(), []byte(object))
	got := planOn(t, in.write(), New(Options{Conflicts: TakeV1}))
	require.Contains(t, got.reason(t, codeMetadataDiffers.Name, set.v3()),
		"not its uid, creationTimestamp, finalizers, deletionTimestamp: it stays")
	require.Contains(t, got.reason(t, codeMetadataDiffers.Name, owned.v3()),
		"not its uid, creationTimestamp, ownerReferences: it stays")
	taken := got.written(t, pool.v3())
	require.NotContains(t, taken["spec"], "natOutgoing")
	require.NotNil(t, taken["status"])
}

func TestUnreadableV3Object(t *testing.T) {
	in := newInput(t)
	in.put(secure, []byte("k8s:enc:aescbc:v1:k2:xxxxxxxxxxxxxxxx"))
	path := in.write()
	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.True(t, got.has(finding.Error, finding.Encrypted.Name, secure))
	require.True(t, got.has(finding.Error, codeConflict.Name, recordsV1+"tiers/security"))

	got = planOn(t, path, New(Options{Conflicts: TakeV1}), finding.Encrypted.Name, codeConflict.Name)
	keepsV1(t, got, recordsV1+"tiers/security", 1)
	require.Equal(t, got.in[secure], got.out[secure])
}

// TestV3ObjectWithABadNumber: only the metadata of the object can be decoded.
func TestV3ObjectWithABadNumber(t *testing.T) {
	in := newInput(t)
	in.put(secure, there("Tier", "security", "", `{"order":1e999}`))
	got := planOn(t, in.write(), New(Options{Conflicts: TakeV1}), finding.Undecodable.Name, codeConflict.Name)
	keepsV1(t, got, recordsV1+"tiers/security", 1)
	require.True(t, got.has(finding.Error, finding.Undecodable.Name, secure))
	require.True(t, got.has(finding.Error, codeConflict.Name, recordsV1+"tiers/security"))
	require.Equal(t, got.in[secure], got.out[secure])
}

// TestAfterLiveMigration: the live controller's result equals ours, except for the blocks from
// which the controller lost releasedAt.
func TestAfterLiveMigration(t *testing.T) {
	path := recorded(t, "after.db")
	got := planOn(t, path, New(Options{Conflicts: KeepV3, KeepV1: true}), codeHalfDoneMigration.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	var conflicts []string
	for _, p := range got.Problems {
		if p.Code.Name == codeConflict.Name {
			conflicts = append(conflicts, strings.TrimPrefix(p.Key, recordsV1))
			require.Regexp(t, `differs: spec\.attributes\[\d+\]\.releasedAt`, p.Reason)
		}
	}
	require.Equal(t, []string{"ipamblocks/192-168-174-128-26", "ipamblocks/fd00-10-244-6d15-74ba-80e-4835-8080-122"},
		conflicts)
	for key, value := range got.in {
		if strings.HasPrefix(key, recordsV3) && !strings.Contains(key, "raw-no-annotation") {
			require.Equal(t, value, got.out[key], key)
		}
	}
	raw := got.written(t, recordsV3+"globalnetworksets/raw-no-annotation")
	require.Equal(t, uidOfJSON(t, got.out[secure]), at(raw, "metadata",
		"ownerReferences").([]any)[0].(map[string]any)["uid"],
		"the reference the live controller left dangling")

	got = planOn(t, path, New(Options{Conflicts: TakeV1}), codeHalfDoneMigration.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.out[recordsV3+"ipamblocks/192-168-174-128-26"], "releasedAt")
	require.Contains(t, got.out["/registry/configmaps/team-a/owned-by-gnp"],
		uidOfJSON(t, got.out[recordsV3+"globalnetworkpolicies/allow-dns"]),
		"owners follow the UID that the live controller gave")
}

func uidOfJSON(t testing.TB, value string) string {
	t.Helper()
	var obj struct{ Metadata struct{ UID string } }
	require.NoError(t, json.Unmarshal([]byte(value), &obj))
	return obj.Metadata.UID
}

// TestLockedV3ClusterInformation: a ClusterInformation left locked by the live controller is
// unlocked.
func TestLockedV3ClusterInformation(t *testing.T) {
	const key = recordsV3 + "clusterinformations/default"
	in := newInput(t)
	in.put(key, there("ClusterInformation", "default", "",
		`{"calicoVersion":"v3.32.0","clusterGUID":"94fbc50fe48f4b559921cd52323724a1","clusterType":"k8s,bgp,kdd,kdd",`+
			`"datastoreReady":false}`))
	got := planOn(t, in.write(), New(Options{}), codeHalfDoneMigration.Name)
	obj := got.written(t, key)
	require.Equal(t, true, at(obj, "spec", "datastoreReady"))
	require.EqualValues(t, 5, at(obj, "metadata", "generation"))
	require.Equal(t, thereUID, at(obj, "metadata", "uid"))
	require.Equal(t, 1, got.count("ClusterInformation").Unchanged)
}

// TestConflictingClusterInformation: the v3 datastore ends ready with either winner.
func TestConflictingClusterInformation(t *testing.T) {
	const key, old = recordsV3 + "clusterinformations/default", recordsV1 + "clusterinformations/default"
	in := newInput(t)
	in.put(key, there("ClusterInformation", "default", "", `{"calicoVersion":"v3.33.0","datastoreReady":false}`))
	path := in.write()
	for name, tc := range map[string]struct {
		options Options
		allow   []string
		version string
	}{
		"skipped":  {Options{}, []string{codeConflict.Name}, "v3.33.0"},
		"v3 stays": {Options{Conflicts: KeepV3}, nil, "v3.33.0"},
		"v1 taken": {Options{Conflicts: TakeV1}, nil, "v3.32.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := planOn(t, path, New(tc.options), tc.allow...)
			obj := got.written(t, key)
			require.Equal(t, tc.version, at(obj, "spec", "calicoVersion"))
			require.Equal(t, true, at(obj, "spec", "datastoreReady"))
			require.EqualValues(t, 5, at(obj, "metadata", "generation"))
			require.Equal(t, thereUID, at(obj, "metadata", "uid"))
		})
	}

	in.put(old, []byte("k8s:enc:aescbc:v1:k2:xxxxxxxxxxxxxxxx"))
	got := planOn(t, in.write(), New(Options{}), finding.Encrypted.Name)
	require.Contains(t, got.out[key], `"datastoreReady":true`, "also where the v1 record cannot be read")
}
