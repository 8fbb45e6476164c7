package calico

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// Objects of the recorded cluster that own in these tests: UID as stored, UID as seen.
const (
	tierStored, tierSeen     = "eb3f6a84-8e70-43ce-a662-3113296b095f", "d7fc5621-710e-4373-a646-8cc894d690fa" // Tier security
	npStored, npSeen         = "6970d262-fcbf-42e4-8077-002d40dda450", "960e4b46-3ffd-4227-80ee-00b402bb250a" // NetworkPolicy team-a/legacy-np, stored default.legacy-np
	configStored, configSeen = "65e8cc34-1320-482e-8a01-c05bd0c027db", "a617332c-c804-4874-8a80-03da0b03e4db" // IPAMConfig default
	namespaceA               = "cdcdd8a8-81fe-4bdb-8932-f9e3a68beff8"
)

func ref(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, apiVersion, kind, name, uid)
}

// ends is what a reference must end as.
func ends(kind, name, uid string) encoding.OwnerReference {
	return encoding.OwnerReference{APIVersion: apiVersionV3, Kind: kind, Name: name, UID: uid}
}

// TestOwnersEnd gives an object of each kind of encoding, and a Calico record in each of its two layers, a reference in each
// form that releases have written, and looks where it ends.
func TestOwnersEnd(t *testing.T) {
	wanted := map[string]encoding.OwnerReference{}
	tests := []struct {
		name, ref string
		want      encoding.OwnerReference
	}{
		{"v3.28 and later, inside the annotation", ref(apiVersionV1, "Tier", "security", tierStored), ends("Tier", "security", tierSeen)},
		{"v3.27.4 and before, inside: v3 with the stored UID", ref(apiVersionV3, "Tier", "security", tierStored), ends("Tier", "security", tierSeen)},
		{"v3.27.5, and what clients write: v3 with the seen UID", ref(apiVersionV3, "Tier", "security", tierSeen), ends("Tier", "security", tierSeen)},
		{"v1 with the seen UID", ref(apiVersionV1, "Tier", "security", tierSeen), ends("Tier", "security", tierSeen)},
		{"the stored name of a policy", ref(apiVersionV1, "NetworkPolicy", "default.legacy-np", npStored), ends("NetworkPolicy", "legacy-np", npSeen)},
		{"a kind that is renamed", ref(apiVersionV1, "IPAMConfig", "default", configStored), ends("IPAMConfiguration", "default", configSeen)},
		{"a kind that is renamed, half translated", ref(apiVersionV3, "IPAMConfig", "default", configSeen), ends("IPAMConfiguration", "default", configSeen)},
		{"another version of the group", ref("projectcalico.org/v3alpha1", "Tier", "security", tierSeen), ends("Tier", "security", tierSeen)},
		{"an upper-case UID", ref(apiVersionV1, "Tier", "security", strings.ToUpper(tierStored)), ends("Tier", "security", tierSeen)},
	}
	in := newInput(t)
	for i, tt := range tests {
		for _, key := range ownedBy(in, i, tt.ref) {
			wanted[key] = tt.want
		}
	}
	got := planOn(t, in.write(), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Len(t, wanted, 5*len(tests))
	for key, want := range wanted {
		meta, err := encoding.ReadMeta([]byte(got.out[key]))
		require.NoError(t, err, key)
		require.Equal(t, []encoding.OwnerReference{want}, meta.OwnerReferences, key)
	}
}

// ownedBy puts an object of each sort with one owner reference into the input and returns the keys they will have.
func ownedBy(in *input, i int, ref string) []string {
	n := fmt.Sprintf("%02d", i)
	inner := v1{kind: "NetworkSet", namespace: "team-a", name: "inner" + n, uid: "aaaaaa" + n + "-0000-4000-8000-000000000000", inner: `{"ownerReferences":[` + ref + `]}`}
	outer := v1{kind: "NetworkSet", namespace: "team-a", name: "outer" + n, uid: "bbbbbb" + n + "-0000-4000-8000-000000000000", inner: "-", meta: `"ownerReferences":[` + ref + `],`}
	in.record(inner).record(outer)
	var native metav1.OwnerReference
	require.NoError(in.t, json.Unmarshal([]byte(ref), &native))
	configMap := "/registry/configmaps/team-a/native" + n
	in.native(configMap, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native" + n, Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{native}}})
	widget := "/registry/example.com/widgets/team-a/foreign" + n
	foreign := `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"foreign` + n + `","namespace":"team-a","ownerReferences":[` + ref + `]}}`
	in.put(widget, []byte(foreign))
	obj, _, err := encoding.DecodeObject([]byte(foreign))
	require.NoError(in.t, err)
	value, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(in.t, err)
	in.put(widget+".cbor", value)
	return []string{inner.v3(), outer.v3(), configMap, widget, widget + ".cbor"}
}

// TestOwnersFollowNewUIDs: with new UIDs, every reference to a Calico object is another.
func TestOwnersFollowNewUIDs(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{NewUIDs: true}))
	require.NoError(t, got.err, "%v", got.Problems)
	written := map[string]string{} // seen to written
	for _, u := range got.UIDs {
		require.NotEqual(t, u.Seen, u.Written)
		written[u.Seen] = u.Written
	}
	require.Len(t, written, 63)
	for key, value := range got.out {
		for seen := range written {
			require.NotContains(t, value, seen, "%s still names a UID that is gone", key)
		}
	}
	everyOwnerIsThere(t, got)
}

// TestGarbageCollectorFindsEveryOwner: it looks owners up by kind and name and compares the UID. After the live migration it
// deleted four objects of this cluster.
func TestGarbageCollectorFindsEveryOwner(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	everyOwnerIsThere(t, got)
}

func everyOwnerIsThere(t *testing.T, got result) {
	t.Helper()
	found := 0
	for key, value := range got.out {
		meta, err := encoding.ReadMeta([]byte(value))
		if err != nil {
			continue
		}
		for _, ref := range meta.OwnerReferences {
			if _, ok := isCalico(ref.APIVersion); !ok {
				continue
			}
			found++
			require.Equal(t, apiVersionV3, ref.APIVersion, key)
			owner := recordsV3 + ownerPath(t, meta.Namespace, ref)
			require.Contains(t, got.out, owner, key)
			require.Equal(t, uidOfJSON(t, got.out[owner]), ref.UID, key)
		}
	}
	require.Equal(t, 12, found)
}

func ownerPath(t testing.TB, namespace string, ref encoding.OwnerReference) string {
	t.Helper()
	for _, k := range kinds() {
		if k.Kind == ref.Kind && k.Namespaced {
			return k.Plural + "/" + namespace + "/" + ref.Name
		} else if k.Kind == ref.Kind {
			return k.Plural + "/" + ref.Name
		}
	}
	t.Fatalf("no kind %s", ref.Kind)
	return ""
}

// TestDanglingOwnersOfRecords: a reference that sat in an annotation was harmless; as a real one, it may cost the object.
func TestDanglingOwnersOfRecords(t *testing.T) {
	const fatal, warned, fine = transform.LevelError, transform.LevelWarning, ""
	namespace := ref("v1", "Namespace", "team-a", namespaceA)
	nobody := "77777777-7777-4777-8777-777777777777"
	tests := []struct{ name, kind, namespace, refs, level, reason string }{
		{"a Calico object that is not there", "GlobalNetworkSet", "", ref(apiVersionV1, "Tier", "security", nobody), fatal, "no Calico object has its UID"},
		{"a namespaced Calico owner of a cluster-scoped object", "GlobalNetworkSet", "", ref(apiVersionV1, "NetworkPolicy", "legacy-np", npStored), fatal,
			"it is in namespace team-a, but what it owns is cluster-scoped"},
		{"a Calico owner in another namespace", "NetworkSet", "team-b", ref(apiVersionV1, "NetworkPolicy", "legacy-np", npStored), fatal, "it is in namespace team-a, an owner must be"},
		{"a namespace", "GlobalNetworkSet", "", namespace, fine, ""},
		{"a namespace that is gone", "GlobalNetworkSet", "", ref("v1", "Namespace", "gone", namespaceA), fatal, "it does not exist"},
		{"a namespace of the same name", "GlobalNetworkSet", "", ref("v1", "Namespace", "team-a", storedUID), fatal, "the one that exists has another uid, " + namespaceA},
		{"a secret", "NetworkSet", "team-a", ref("v1", "Secret", "owned-by-ippool", "bfbdc367-78e1-433e-aec7-309aec88792c"), fine, ""},
		{"a secret of another namespace", "NetworkSet", "team-b", ref("v1", "Secret", "owned-by-ippool", "bfbdc367-78e1-433e-aec7-309aec88792c"), fatal, "it does not exist"},
		{"a secret that owns something cluster-scoped", "GlobalNetworkSet", "", ref("v1", "Secret", "owned-by-ippool", "bfbdc367-78e1-433e-aec7-309aec88792c"), fatal, "it is namespaced"},
		{"a foreign object", "NetworkSet", "team-a", ref("example.com/v1alpha1", "Widget", "owner-widget", "9a6e8370-8c11-48b1-8acf-2a0d43fd3e59"), fine, ""},
		{"a foreign object that is gone", "NetworkSet", "team-a", ref("example.com/v1alpha1", "Widget", "gone", "9a6e8370-8c11-48b1-8acf-2a0d43fd3e59"), fatal, "it does not exist"},
		{"a kind nobody knows: no garbage collector deletes for it", "NetworkSet", "team-a", ref("nobody.example.com/v1", "Thing", "x", "u"), fine, ""},
		{"one of two is there", "GlobalNetworkSet", "", ref(apiVersionV1, "Tier", "security", nobody) + "," + namespace, warned, "the garbage collector will drop a reference"},
		{"the other of two is there", "GlobalNetworkSet", "", ref(apiVersionV1, "Tier", "security", tierStored) + "," + ref("v1", "Namespace", "gone", "u"), warned, "it does not exist"},
	}
	in := newInput(t)
	owned := make([]v1, len(tests))
	for i, tt := range tests {
		n := fmt.Sprintf("%02d", i)
		owned[i] = v1{kind: tt.kind, namespace: tt.namespace, name: "owned" + n, uid: "aaaaaa" + n + "-0000-4000-8000-000000000000", inner: `{"ownerReferences":[` + tt.refs + `]}`}
		in.record(owned[i])
	}
	path := in.write()
	refused := planOn(t, path, New(Options{}))
	require.ErrorIs(t, refused.err, transform.ErrRefused)
	got := planOn(t, path, New(Options{}), codeDanglingOwner)
	require.NoError(t, got.err)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			key := owned[i].key()
			if tt.level == fatal {
				require.NotContains(t, got.out, owned[i].v3())
			} else {
				got.written(t, owned[i].v3())
			}
			if tt.level == fine {
				require.False(t, got.has(fatal, codeDanglingOwner, key) || got.has(warned, codeDanglingOwner, key))
				return
			}
			require.True(t, refused.has(tt.level, codeDanglingOwner, key), "%v", refused.Problems)
			require.Contains(t, refused.reason(t, codeDanglingOwner, key), tt.reason)
		})
	}
}

// TestOwnerLeftAlone: what relies on a record that is then left alone would be collected with it.
func TestOwnerLeftAlone(t *testing.T) {
	const ownerUID, ownerSeen = "32345678-9abc-4def-8123-456789abcdef", "4c2c6a1e-593d-4df7-81c4-a2e691d5b3f7"
	bad := v1{kind: "GlobalNetworkSet", name: "bad", uid: ownerUID, inner: "{}", spec: `{"nets":5}`}
	policy := v1{kind: "GlobalNetworkPolicy", name: "owned", inner: `{"name":"owned","ownerReferences":[` + ref(apiVersionV1, "GlobalNetworkSet", "bad", ownerUID) + `]}`}
	second := v1{kind: "GlobalNetworkPolicy", name: "again", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"name":"again","ownerReferences":[` + ref(apiVersionV1, "GlobalNetworkPolicy", "owned", storedUID) + `]}`}
	in := newInput(t).record(bad).record(policy).record(second)
	const native, raw = "/registry/configmaps/team-a/native", "/registry/configmaps/team-a/raw"
	owned := func(name, apiVersion, uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: "GlobalNetworkSet", Name: "bad", UID: types.UID(uid)},
		}}}
	}
	in.native(native, "v1", "ConfigMap", owned("native", apiVersionV3, ownerSeen))
	in.native(raw, "v1", "ConfigMap", owned("raw", apiVersionV1, ownerUID))
	got := planOn(t, in.write(), New(Options{}), codeInvalid, codeDanglingOwner)
	require.NoError(t, got.err)
	for _, r := range []v1{bad, policy, second} {
		require.NotContains(t, got.out, r.v3())
		require.Equal(t, got.in[r.key()], got.out[r.key()])
	}
	require.Contains(t, got.reason(t, codeDanglingOwner, policy.key()), `owner GlobalNetworkSet "bad": it is not migrated`)
	require.Contains(t, got.reason(t, codeDanglingOwner, second.key()), `owner GlobalNetworkPolicy "owned": it is not migrated`)
	require.True(t, got.has(transform.LevelError, codeDanglingOwner, native))
	require.False(t, got.has(transform.LevelError, codeDanglingOwner, raw), "its owner, the v1 record, stays")
	require.Equal(t, got.in[native], got.out[native])
	require.Equal(t, got.in[raw], got.out[raw])
	require.Equal(t, 2, got.count("GlobalNetworkPolicy").Skipped)
	require.Equal(t, 6, got.count("GlobalNetworkPolicy").Migrated)
}

// TestOwnersNobodyLooksFor: what the garbage collector cannot look for costs no object its life; what it looks for in vain is
// dropped where another owner is there, so that it must be in the group that is left.
func TestOwnersNobodyLooksFor(t *testing.T) {
	const nobody = "77777777-7777-4777-8777-777777777777"
	namespace := ref("v1", "Namespace", "team-a", namespaceA)
	unknown := v1{kind: "GlobalNetworkSet", name: "unknown", inner: `{"ownerReferences":[` + ref(apiVersionV3, "Profile", "kns.x", nobody) + `]}`}
	part := v1{kind: "NetworkSet", namespace: "team-a", name: "part", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV1, "IPAMConfig", "gone", storedUID) + "," + namespace + `]}`}
	unknown.uid = "32345678-9abc-4def-8123-456789abcdef"
	got := migrateRecords(t, Options{}, unknown, part)
	got.written(t, unknown.v3())
	require.True(t, got.has(transform.LevelWarning, codeDanglingOwner, unknown.key()))
	require.Contains(t, got.reason(t, codeDanglingOwner, unknown.key()), "cannot look for it: owner projectcalico.org/v3 Profile")
	require.Contains(t, got.reason(t, codeDanglingOwner, part.key()), `will drop a reference: owner crd.projectcalico.org/v1 IPAMConfig "gone" (uid `+storedUID+`): no Calico object`)
	owners := at(got.written(t, part.v3()), "metadata", "ownerReferences").([]any)
	require.Equal(t, map[string]any{"apiVersion": apiVersionV3, "kind": "IPAMConfiguration", "name": "gone", "uid": clientUID}, owners[0], "as clients saw it")
	require.Len(t, owners, 2)
}

// TestOwnerThatCannotBeRead: a record that is refused for what it is, is an owner that stays.
func TestOwnerThatCannotBeRead(t *testing.T) {
	const native, raw, other = "/registry/configmaps/team-a/native", "/registry/configmaps/team-a/raw", "/registry/configmaps/team-a/other"
	bad := v1{kind: "GlobalNetworkPolicy", name: "default.bad", inner: `{"name":`}
	dead := v1{kind: "GlobalNetworkSet", name: "dead", inner: "{}", uid: "12345678-9abc-4def-8123-456789abcdef"}
	in := newInput(t).record(bad).record(dead)
	owned := func(key, apiVersion, uid string) {
		name := key[strings.LastIndexByte(key, '/')+1:]
		in.native(key, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: "GlobalNetworkPolicy", Name: "default.bad", UID: types.UID(uid)},
		}}})
	}
	owned(native, apiVersionV3, clientUID)
	owned(raw, apiVersionV1, storedUID)
	owned(other, apiVersionV1, "77777777-7777-4777-8777-777777777777")
	got := planOn(t, in.write(), New(Options{}), codeBadMetadata, codeBadUID, codeDanglingOwner)
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.reason(t, codeDanglingOwner, native), "it is not migrated")
	require.False(t, got.has(transform.LevelWarning, codeDanglingOwner, raw), "the v1 record it names stays")
	require.True(t, got.has(transform.LevelWarning, codeDanglingOwner, other))
	require.Contains(t, got.reason(t, codeBadUID, dead.key()), bad.key()+" has the same")
	for _, key := range []string{native, raw, other, bad.key(), dead.key()} {
		require.Equal(t, got.in[key], got.out[key])
	}
	require.Equal(t, 1, got.count("GlobalNetworkPolicy").Skipped)
	keepsV1(t, got, bad.key(), 2)
}

// TestClusterInformationLeftAlone: it is written last, and judged before what it owns is.
func TestClusterInformationLeftAlone(t *testing.T) {
	const stored, seen = "d8ccfe16-09c4-4b5e-8a3f-4b6e4d5f9a01", "1b337f68-9023-4b7a-8afc-d276b2fa5980"
	const native = "/registry/configmaps/team-a/native"
	key := recordsV1 + "clusterinformations/default"
	owned := v1{kind: "GlobalNetworkSet", name: "owned", inner: `{"ownerReferences":[` + ref(apiVersionV1, "ClusterInformation", "default", stored) + `]}`}
	in := newInput(t).record(owned)
	in.edit(key, func(obj map[string]any) { set(obj, "metadata.uid", stored) })
	in.native(native, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native", Namespace: "team-a",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersionV3, Kind: "ClusterInformation", Name: "default", UID: seen}}}})
	got := planOn(t, in.write(), New(Options{}))
	require.Equal(t, seen, at(got.written(t, recordsV3+"clusterinformations/default"), "metadata", "uid"))
	got.written(t, owned.v3())

	in.edit(key, func(obj map[string]any) { set(obj, "spec.calicoVersion", 3.32) })
	path := in.write()
	got = planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.True(t, got.has(transform.LevelError, codeDanglingOwner, native), "%v", got.Problems)
	require.Contains(t, got.reason(t, codeDanglingOwner, owned.key()), `owner ClusterInformation "default": it is not migrated`)
	got = planOn(t, path, New(Options{}), codeInvalid, codeDanglingOwner)
	require.NoError(t, got.err, "%v", got.Problems)
	require.NotContains(t, got.out, recordsV3+"clusterinformations/default")
	require.NotContains(t, got.out, owned.v3())
	require.Contains(t, got.out[key], `"datastoreReady":false`)
}

// TestOwnersOfOthers: objects that are not Calico's.
func TestOwnersOfOthers(t *testing.T) {
	tier := metav1.OwnerReference{APIVersion: apiVersionV1, Kind: "Tier", Name: "security", UID: tierStored}
	gone := metav1.OwnerReference{APIVersion: apiVersionV3, Kind: "Tier", Name: "gone", UID: storedUID}
	goneV1 := metav1.OwnerReference{APIVersion: apiVersionV1, Kind: "Tier", Name: "gone", UID: storedUID}
	profile := metav1.OwnerReference{APIVersion: apiVersionV3, Kind: "Profile", Name: "kns.x", UID: storedUID}
	tests := []struct {
		name  string
		refs  []metav1.OwnerReference
		level string
		ends  int // references that end at a v3 record
	}{
		{"dangling: the garbage collector deletes it", []metav1.OwnerReference{gone}, transform.LevelError, 0},
		{"of v1 and dangling: nobody looks for it", []metav1.OwnerReference{goneV1}, transform.LevelWarning, 0},
		{"of a kind that is not stored: nobody looks for it", []metav1.OwnerReference{profile}, transform.LevelWarning, 0},
		{"one of two", []metav1.OwnerReference{gone, tier}, transform.LevelWarning, 1},
		{"no UUID", []metav1.OwnerReference{{APIVersion: apiVersionV3, Kind: "Tier", Name: "security", UID: "x"}}, transform.LevelError, 0},
	}
	in := newInput(t)
	key := func(i int) string { return fmt.Sprintf("/registry/configmaps/team-a/native%d", i) }
	for i, tt := range tests {
		in.native(key(i), "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("native", i), Namespace: "team-a", OwnerReferences: tt.refs}})
	}
	got := planOn(t, in.write(), New(Options{}), codeDanglingOwner)
	require.NoError(t, got.err, "%v", got.Problems)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, got.has(tt.level, codeDanglingOwner, key(i)), "%v", got.Problems)
			meta, err := encoding.ReadMeta([]byte(got.out[key(i)]))
			require.NoError(t, err)
			ended := 0
			for _, r := range meta.OwnerReferences {
				if r == ends("Tier", "security", tierSeen) {
					ended++
				}
			}
			require.Equal(t, tt.ends, ended)
		})
	}
}

// TestValuesThatCannotBeSeen: whether they hold references nobody can tell.
func TestValuesThatCannotBeSeen(t *testing.T) {
	const secret, broken, other = "/registry/secrets/team-a/encrypted", "/registry/example.com/widgets/team-a/broken", "/registry/example.com/widgets/team-a/other"
	in := newInput(t)
	in.put(secret, []byte("k8s:enc:aescbc:v1:k2:xxxxxxxxxxxxxxxx"))
	in.put(broken, []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"projectcalico.org/v3"`))
	in.put(other, []byte(`not an object, and it names no group`))
	path := in.write()
	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.True(t, got.has(transform.LevelError, codeEncrypted, secret))
	require.True(t, got.has(transform.LevelError, codeUndecodable, broken))
	require.False(t, got.has(transform.LevelError, codeUndecodable, other))

	got = planOn(t, path, New(Options{}), codeEncrypted, codeUndecodable)
	require.NoError(t, got.err)
	for _, key := range []string{secret, broken, other} {
		require.Equal(t, got.in[key], got.out[key])
	}
	require.NotContains(t, got.out, recordsV1+"tiers/default", "they are no v1 records: v1 goes")
}

func TestReferencesAreReported(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, got.err)
	require.Contains(t, got.References, transform.Reference{
		Key: "/registry/configmaps/team-a/owned-by-v1-raw", OwnerKind: "GlobalNetworkSet", OwnerName: "threat-feed",
		From: "crd.projectcalico.org/v1/aafbff75-509d-49d1-bcdc-e4869a084d0a", To: "projectcalico.org/v3/55dfffae-0ab9-498b-bc3b-27615910b250",
	})
	require.Contains(t, got.References, transform.Reference{
		Key: recordsV3 + "globalnetworksets/raw-no-annotation", OwnerKind: "Tier", OwnerName: "security",
		From: "crd.projectcalico.org/v1/" + tierStored, To: "projectcalico.org/v3/" + tierSeen,
	})
	require.Len(t, got.References, 7)
}

func TestIsCalico(t *testing.T) {
	for _, tt := range []struct {
		apiVersion string
		ofV1, ok   bool
	}{
		{"projectcalico.org/v3", false, true}, {"crd.projectcalico.org/v1", true, true}, {"crd.projectcalico.org/v2", true, true},
		{"projectcalico.org", false, false}, {"notprojectcalico.org/v3", false, false}, {"operator.tigera.io/v1", false, false},
		{"migration.projectcalico.org/v1", false, false}, {"policy.networking.k8s.io/v1alpha2", false, false}, {"v1", false, false}, {"apps/v1", false, false}, {"a/b/c", false, false},
	} {
		ofV1, ok := isCalico(tt.apiVersion)
		require.Equal(t, tt.ok, ok, tt.apiVersion)
		require.Equal(t, tt.ofV1, ofV1, tt.apiVersion)
	}
}
