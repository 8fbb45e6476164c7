package calico

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// In each of the first tests the live controller was seen to wedge or to lose data.

// Live: wedges forever on the name, with the datastore locked.
func TestEdgeHandleWithUpperCase(t *testing.T) {
	r := v1{kind: "IPAMHandle", name: "k8s-pod-network.abc", inner: "{}",
		spec: `{"handleID":"k8s-pod-network.ABC","block":{"10.0.0.0/26":1},"deleted":false}`}
	got := migrateRecords(t, Options{}, r)
	obj := got.written(t, r.v3())
	require.Equal(t, "k8s-pod-network.abc", at(obj, "metadata", "name"))
	require.Equal(t, "k8s-pod-network.ABC", at(obj, "spec", "handleID"))
}

// Live: one of the two is silently lost; a race decides which one.
func TestEdgeTwoRecordsWithOneName(t *testing.T) {
	stays := v1{kind: "GlobalNetworkPolicy", name: "dup", inner: `{"name":"dup"}`, spec: `{"tier":"default","order":1}`}
	loses := v1{kind: "GlobalNetworkPolicy", name: "default.dup", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"name":"dup"}`, spec: `{"tier":"default","order":2}`}
	got := migrateRecords(t, Options{}, stays, loses)
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeNameCollision.Name, loses.key()),
		`its v3 name is "dup", and so is that of `+stays.key()+", which has another spec")

	const native = "/registry/configmaps/team-a/native"
	in := newInput(t).record(stays).record(loses)
	in.native(native, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native",
		Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersionV3, Kind: "GlobalNetworkPolicy", Name: "dup", UID: types.UID(loses.uid)}}}})
	got = planOn(t, in.write(), New(Options{}), codeNameCollision.Name)
	obj := got.written(t, stays.v3())
	require.EqualValues(t, 1, at(obj, "spec", "order"), "the record stored under the v3 name is the one that counts")
	require.Equal(t, clientUID, at(obj, "metadata", "uid"))
	meta, err := encoding.ReadMeta([]byte(got.out[native]))
	require.NoError(t, err)
	require.Equal(t, []encoding.OwnerReference{ends("GlobalNetworkPolicy", "dup", clientUID)}, meta.OwnerReferences,
		"the one that stands for both")
	keepsV1(t, got, loses.key(), 1)
	require.Equal(t, 1, got.count("GlobalNetworkPolicy").Skipped)

	loses.spec = `{"order":1,"types":["Ingress"]}`
	require.Contains(t, migrateRecords(t, Options{}, stays, loses).reason(t, codeNameCollision.Name, loses.key()),
		"which has the same spec", "tier and types go without saying")
}

// Live: wedges during the copy, retried forever, locked.
func TestEdgeStoredObjectAgainstTheRules(t *testing.T) {
	r := v1{kind: "IPPool", name: "bad-pool", inner: "{}",
		spec: `{"cidr":"10.99.0.5/16","ipipMode":"Always","vxlanMode":"Always"}`}
	got := migrateRecords(t, Options{}, r)
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeInvalid.Name, r.key()), "ipipMode and vxlanMode cannot both be enabled")
}

// A reason quotes only the beginning of a long wrong value.
func TestEdgeLongValue(t *testing.T) {
	long := strings.Repeat("ü", 20_000)
	r := v1{kind: "IPPool", name: "long", inner: "{}", spec: `{"cidr":"` + long + `"}`}
	deleted := v1{kind: "BlockAffinity", name: "long", uid: "22345678-9abc-4def-8123-456789abcdef", inner: "{}",
		spec: `{"deleted":"` + long + `"}`}
	got := migrateRecords(t, Options{}, r, deleted)
	for _, key := range []string{r.key(), deleted.key()} {
		reason := got.reason(t, codeInvalid.Name, key)
		require.Less(t, len(reason), 5000)
		require.True(t, utf8.ValidString(reason))
		require.Contains(t, reason, "...")
	}
}

// Live: silently dropped. Ours: dropped like on a server, and reported.
func TestEdgeUnknownFieldsAndNulls(t *testing.T) {
	r := v1{kind: "GlobalNetworkSet", name: "junk", inner: "{}",
		spec: `{"nets":["192.0.2.0/24"],"oldField":1,"allowedEgressDomains":null}`, rest: `,"topLevel":true`}
	got := migrateRecords(t, Options{}, r)
	obj := got.written(t, r.v3())
	require.Equal(t, map[string]any{"nets": []any{"192.0.2.0/24"}}, obj["spec"])
	require.NotContains(t, obj, "topLevel")
	require.True(t, got.has(finding.Warning, codePrunedField.Name, r.key()))
	reason := got.reason(t, codePrunedField.Name, r.key())
	require.Contains(t, reason, "spec.oldField")
	require.Contains(t, reason, "topLevel")
}

// Live: created again, without finalizers.
func TestEdgeTerminating(t *testing.T) {
	const deleting = `"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0,`
	held := v1{kind: "GlobalNetworkPolicy", name: "held", inner: `{"name":"held","finalizers":["example.com/inner"]}`,
		meta: deleting + `"finalizers":["example.com/outer","example.com/inner"],`}
	loose := v1{kind: "GlobalNetworkPolicy", name: "loose", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"name":"loose"}`, meta: deleting}
	got := migrateRecords(t, Options{}, held, loose)
	obj := got.written(t, held.v3())
	require.Equal(t, "2026-02-02T00:00:00Z", at(obj, "metadata", "deletionTimestamp"))
	require.EqualValues(t, 0, at(obj, "metadata", "deletionGracePeriodSeconds"))
	require.Equal(t, []any{"example.com/inner", "example.com/outer"}, at(obj, "metadata", "finalizers"))

	in := newInput(t).record(loose)
	const native = "/registry/configmaps/team-a/native"
	in.native(native, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native",
		Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersionV1, Kind: "GlobalNetworkPolicy", Name: "loose", UID: types.UID(loose.uid)}}}})
	require.Contains(t, planOn(t, in.write(), New(Options{})).reason(t, codeDanglingOwner.Name, native),
		"it is being deleted")

	require.NotContains(t, got.out, loose.v3())
	require.NotContains(t, got.out, loose.key(), "nothing to keep v1 for: a server would have deleted it")
	require.True(t, got.has(finding.Warning, codeTerminating.Name, loose.key()))
	require.Equal(t, 1, got.count("GlobalNetworkPolicy").Skipped)
}

// Live: keeps the prefix too. A record without annotation was not written by a client of Calico.
func TestEdgeNoAnnotationOnPrefixedPolicy(t *testing.T) {
	r := v1{kind: "NetworkPolicy", namespace: "team-b", name: "default.bare", inner: "-", spec: `{"selector":"all()"}`}
	obj := migrateRecords(t, Options{}, r).written(t, r.v3())
	require.Equal(t, "default.bare", at(obj, "metadata", "name"))
	require.Equal(t, "default", at(obj, "spec", "tier"))
	require.Equal(t, map[string]any{tierLabel: "default"}, at(obj, "metadata", "labels"))
	require.Equal(t, []any{"Ingress"}, at(obj, "spec", "types"))
}

// Live: status is dropped by the create.
func TestEdgeStatusStays(t *testing.T) {
	r := v1{kind: "Tier", name: "with-status", inner: "{}",
		rest: `,"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ok","message":"m",` +
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}`}
	obj := migrateRecords(t, Options{}, r).written(t, r.v3())
	require.Equal(t, "Ready", at(obj, "status", "conditions").([]any)[0].(map[string]any)["type"])
	require.EqualValues(t, 1000000, at(obj, "spec", "order"))
	require.Equal(t, "Deny", at(obj, "spec", "defaultAction"))
}

// Live: labels and annotations of blocks and handles are lost.
func TestEdgeBlocksAndHandlesKeepMetadata(t *testing.T) {
	block := v1{kind: "IPAMBlock", name: "10-9-0-0-30", inner: `{"annotations":{"a":"1"}}`,
		meta: `"labels":{"l":"1"},"finalizers":["example.com/f"],`,
		spec: `{"cidr":"10.9.0.0/30","allocations":[0,null,null,null],"unallocated":[1,2,3],` +
			`"attributes":[{"handle_id":"h\r","releasedAt":"2026-01-01T00:00:00Z"}],"strictAffinity":true,` +
			`"sequenceNumber":1795202899322387071,"deleted":false}`}
	got := migrateRecords(t, Options{}, block)
	obj := got.written(t, block.v3())
	require.Equal(t, map[string]any{"l": "1"}, at(obj, "metadata", "labels"))
	require.Equal(t, map[string]any{"a": "1"}, at(obj, "metadata", "annotations"))
	require.Equal(t, []any{"example.com/f"}, at(obj, "metadata", "finalizers"))
	require.Equal(t, true, at(obj, "spec", "strictAffinity"))
	require.Contains(t, got.out[block.v3()], `"sequenceNumber":1795202899322387071`)
	require.Contains(t, got.out[block.v3()], `{"handle_id":"h\r","releasedAt":"2026-01-01T00:00:00Z"}`)
}

// In v1 an absent autoAllocateBlocks is false; the v3 CRD would default it to true.
func TestEdgeIPAMConfigWithoutBooleans(t *testing.T) {
	r := v1{kind: "IPAMConfig", name: "default", inner: "{}", spec: `{"maxBlocksPerHost":20}`}
	obj := migrateRecords(t, Options{}, r).written(t, recordsV3+"ipamconfigurations/default")
	require.Equal(t, "IPAMConfiguration", obj["kind"])
	require.Equal(t, map[string]any{"autoAllocateBlocks": false, "strictAffinity": false,
		"maxBlocksPerHost": float64(20)}, obj["spec"])
}

func TestEdgeNamelessSpec(t *testing.T) {
	key := recordsV1 + "bgpconfigurations/empty"
	in := newInput(t)
	in.put(key, []byte(strings.Replace(string(v1{kind: "BGPConfiguration", name: "empty", inner: "{}"}.json(t)),
		`,"spec":{}`, "", 1)))
	obj := planOn(t, in.write(), New(Options{})).written(t, recordsV3+"bgpconfigurations/empty")
	require.Equal(t, "Info", at(obj, "spec", "logSeverityScreen"), "the spec v3 demands, defaulted")
}

// TestCBOR: a record stored as CBOR stays CBOR.
func TestCBOR(t *testing.T) {
	r := v1{kind: "GlobalNetworkSet", name: "cbor", inner: `{"labels":{"a":"1"}}`, spec: `{"nets":["192.0.2.0/24"]}`}
	obj, _, err := encoding.DecodeObject(r.json(t))
	require.NoError(t, err)
	value, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	in := newInput(t)
	in.put(r.key(), value)
	got := planOn(t, in.write(), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	out, format, err := encoding.DecodeObject([]byte(got.out[r.v3()]))
	require.NoError(t, err)
	require.Equal(t, encoding.FormatCBOR, format)
	require.Equal(t, "1", at(out, "metadata", "labels", "a"))
	require.Equal(t, clientUID, at(out, "metadata", "uid"))
}

// twice copies the whole cluster below another prefix.
func (in *input) twice(prefix string) *input {
	in.edits = append(in.edits, func(ctx context.Context, v *transform.View) error {
		for e, err := range v.Live(ctx, []byte("/registry/")) {
			if err != nil {
				return err
			}
			if key := strings.TrimPrefix(string(e.Key), "/registry"); e.ModRevision != 0 {
				if err := v.Put(ctx, []byte(prefix+key), e.Value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return in
}

// TestPrefixes: another storage prefix is detected, or given by name.
func TestPrefixes(t *testing.T) {
	path := newInput(t).twice("/other/prefix").write()
	got := planOn(t, path, New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.out, recordsV3+"tiers/default")
	require.Contains(t, got.out, "/other/prefix/projectcalico.org/tiers/default")
	require.Equal(t, 10, got.count("Tier").Migrated)

	got = planWith(t, transform.Options{In: path, Prefixes: []string{"/other/prefix", "/other/prefix"}}, New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.out, recordsV1+"tiers/default")
	require.NotContains(t, got.out, recordsV3+"tiers/default")
	require.Contains(t, got.out, "/other/prefix/projectcalico.org/tiers/default")
	require.Equal(t, 5, got.count("Tier").Migrated)

	got = planWith(t, transform.Options{In: path, Prefixes: []string{"/nowhere"}}, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrEmptyPrefix)
}

// TestPrefixBelowAnother: a cluster below the prefix of another is a separate cluster with its own
// owners.
func TestPrefixBelowAnother(t *testing.T) {
	const owner = "7fbfa1a5-7f0b-4f0e-8b53-1c6ee24fb001"
	below := "/registry/tenant"
	in := newInput(t).twice(below)
	in.edit(below+"/crd.projectcalico.org/tiers/security", func(obj map[string]any) { set(obj, "metadata.uid", owner) })
	in.put(below+"/example.com/widgets/team-a/mine",
		[]byte(
			`{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"mine","namespace":"team-a",`+
				`"ownerReferences":[`+
				ref(apiVersionV3, "Tier", "security", owner)+`]}}`))
	for _, key := range []string{"/networkpolicies/team-b/owned-by-tier",
		"/crd.projectcalico.org/globalnetworkpolicies/security.block-bad",
		"/crd.projectcalico.org/globalnetworksets/raw-no-annotation",
		"/crd.projectcalico.org/hostendpoints/both-labels"} {
		in.del(below + key) // owned by the tier with the changed UID
	}
	path := in.write()
	for _, prefixes := range [][]string{nil, {"/registry"}} {
		got := planWith(t, transform.Options{In: path, Prefixes: prefixes}, New(Options{}))
		require.NoError(t, got.err, "%v", got.Problems)
		require.Contains(t, got.out, recordsV3+"tiers/security")
		if prefixes != nil {
			require.Equal(t, got.in[below+"/example.com/widgets/team-a/mine"],
				got.out[below+"/example.com/widgets/team-a/mine"])
			continue
		}
		require.Contains(t, got.out, below+"/projectcalico.org/tiers/security")
		require.NotContains(t, got.out[below+"/example.com/widgets/team-a/mine"], owner,
			"it names the UID that clients saw")
	}
}

// TestAdmission: a policy gets the tier, label and types of the admission policies, in the fields
// of its own kind.
func TestAdmission(t *testing.T) {
	r := v1{kind: "GlobalNetworkPolicy", name: "strange",
		inner: `{"name":"strange","labels":{"projectcalico.org/tier":"stale"}}`,
		spec:  `{"policyTypes":["Egress"],"egress":[{"action":"Allow"}],"types":[]}`}
	got := migrateRecords(t, Options{}, r)
	obj := got.written(t, r.v3())
	require.Equal(t, []any{"Egress"}, at(obj, "spec", "types"), "what the v3 CRD prunes is no reason not to set it")
	require.Equal(t, "default", at(obj, "spec", "tier"))
	require.Equal(t, map[string]any{tierLabel: "default"}, at(obj, "metadata", "labels"))
	require.Contains(t, got.reason(t, codePrunedField.Name, r.key()), "spec.policyTypes")

	r.spec = `{"tier":7}`
	got = migrateRecords(t, Options{}, r)
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeInvalid.Name, r.key()), "spec.tier")
}

// TestTierMissing: a policy without its tier after the migration is migrated and reported; Calico
// creates the built-in tiers.
func TestTierMissing(t *testing.T) {
	lost := v1{kind: "GlobalNetworkPolicy", name: "lost", inner: `{"name":"lost"}`,
		spec: `{"tier":"gone","types":["Ingress"]}`}
	builtin := v1{kind: "NetworkPolicy", namespace: "team-a", name: "low", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"name":"low"}`, spec: `{"tier":"kube-baseline"}`}
	ours := v1{kind: "StagedNetworkPolicy", namespace: "team-a", name: "ours",
		uid: "32345678-9abc-4def-8123-456789abcdef", inner: `{"name":"ours"}`, spec: `{"tier":"v3-only"}`}
	in := newInput(t).record(lost).record(builtin).record(ours)
	in.put(recordsV3+"tiers/v3-only", there("Tier", "v3-only", "", `{"order":7,"defaultAction":"Deny"}`))
	in.del(recordsV1 + "tiers/kube-baseline")
	got := planOn(t, in.write(), New(Options{}))
	got.written(t, lost.v3())
	require.Equal(t, `its tier, "gone", will not exist`, got.reason(t, codeTierMissing.Name, lost.key()))
	missing := func() (keys []string) {
		for _, p := range got.Problems {
			if p.Code.Name == codeTierMissing.Name {
				require.Equal(t, finding.Warning, p.Level)
				keys = append(keys, p.Key)
			}
		}
		return keys
	}
	require.Equal(t, []string{lost.key()}, missing())

	in.edit(recordsV1+"tiers/security", func(obj map[string]any) { set(obj, "spec.order", "high") })
	got = planOn(t, in.write(), New(Options{}), codeInvalid.Name, codeDanglingOwner.Name)
	require.NoError(t, got.err)
	require.Contains(t, missing(), recordsV1+"networkpolicies/team-a/security.np", "its tier is skipped")
}

// TestTierDeleted: a terminating tier held by finalizers accepts no policy, and goes with its last
// finalizer. An existing v3 tier takes precedence over the v1 tier.
func TestTierDeleted(t *testing.T) {
	const held = `"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["a/b"],`
	tier := func(name, uid, meta string) v1 {
		return v1{kind: "Tier", name: name, uid: uid, meta: meta, inner: `{"finalizers":["a/b"]}`,
			spec: `{"order":5,"defaultAction":"Deny"}`}
	}
	policy := func(name, uid, tier string) v1 {
		return v1{kind: "GlobalNetworkPolicy", name: name, uid: uid, inner: `{"name":"` + name + `"}`,
			spec: `{"tier":"` + tier + `","types":["Ingress"]}`}
	}
	dying := policy("in-dying", "22345678-9abc-4def-8123-456789abcdef", "dying")
	v3dying := policy("in-v3-dying", "32345678-9abc-4def-8123-456789abcdef", "v3-dying")
	alive := policy("in-alive", "42345678-9abc-4def-8123-456789abcdef", "alive")
	in := newInput(t).record(dying).record(v3dying).record(alive)
	in.record(tier("dying", "52345678-9abc-4def-8123-456789abcdef", held)).record(tier("alive",
		"62345678-9abc-4def-8123-456789abcdef", held))
	in.put(recordsV3+"tiers/alive", there("Tier", "alive", "", `{"order":5,"defaultAction":"Deny"}`))
	in.put(recordsV3+"tiers/v3-dying", there("Tier", "v3-dying", held, `{"order":7,"defaultAction":"Deny"}`))
	got := planOn(t, in.write(), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Equal(t,
		`its tier, "dying", is being deleted: it accepts no policies any more, and is deleted with its last finalizer`,
		got.reason(t, codeTierMissing.Name, dying.key()))
	require.Contains(t, got.reason(t, codeTierMissing.Name, v3dying.key()), "is being deleted")
	require.False(t, got.has(finding.Warning, codeTierMissing.Name, alive.key()), "the v3 object stays")
	require.Equal(t, "2026-02-02T00:00:00Z", at(got.written(t, recordsV3+"tiers/dying"), "metadata",
		"deletionTimestamp"))
}

func TestUnknownConflictsOption(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{Conflicts: "both"}))
	require.ErrorContains(t, got.err, `conflicts "both": must be keep-v3 or take-v1`)
}

// keepsV1 checks that a run left the v1 group in place, locked, with an unchanged record at key.
func keepsV1(t *testing.T, r result, key string, records int) {
	t.Helper()
	require.NoError(t, r.err, "%v", r.Problems)
	require.Equal(t, r.in[key], r.out[key], "the record stays as it was")
	require.Equal(t, r.in[recordsV1+"tiers/default"], r.out[recordsV1+"tiers/default"])
	require.Contains(t, r.out, "/registry/apiextensions.k8s.io/customresourcedefinitions/tiers.crd.projectcalico.org")
	require.Contains(t, r.out, "/registry/apiregistration.k8s.io/apiservices/v1.crd.projectcalico.org")
	require.Contains(t, r.out[recordsV1+"clusterinformations/default"], `"datastoreReady":false`)
	require.Contains(t, r.out[recordsV1+"clusterinformations/default"], `"generation":2`)
	require.Contains(t, r.out[recordsV3+"clusterinformations/default"], `"datastoreReady":true`)
	require.Contains(t, strings.Join(r.Steps, "\n"),
		fmt.Sprintf("are kept, locked, because some were not migrated (%d)", records))
}

// TestEdgeManyErrors: errors are listed in a fixed order.
func TestEdgeManyErrors(t *testing.T) {
	r := v1{kind: "IPPool", name: "odd", inner: "{}",
		spec: `{"cidr":7,"blockSize":"x","nodeSelector":[],"natOutgoing":{},"ipipMode":1,"vxlanMode":2,"disabled":"x"}`}
	want := "spec.blockSize: spec.cidr: spec.disabled: spec.ipipMode: spec.natOutgoing: spec.nodeSelector: " +
		"spec.vxlanMode:"
	for range 4 {
		reason := migrateRecords(t, Options{}, r).reason(t, codeInvalid.Name, r.key())
		fields := slices.Compact(regexp.MustCompile(`spec\.\w+: `).FindAllString(reason, -1))
		require.Equal(t, want, strings.TrimSpace(strings.Join(fields, "")))
	}
}
