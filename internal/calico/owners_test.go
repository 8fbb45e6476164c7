package calico

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// Owners of the recorded cluster in these tests: UID as stored, UID as seen.
const (
	// Tier security
	tierStored, tierSeen = "eb3f6a84-8e70-43ce-a662-3113296b095f", "d7fc5621-710e-4373-a646-8cc894d690fa"
	// NetworkPolicy team-a/legacy-np, stored default.legacy-np
	npStored, npSeen = "6970d262-fcbf-42e4-8077-002d40dda450", "960e4b46-3ffd-4227-80ee-00b402bb250a"
	// IPAMConfig default
	configStored, configSeen = "65e8cc34-1320-482e-8a01-c05bd0c027db", "a617332c-c804-4874-8a80-03da0b03e4db"
	namespaceA               = "cdcdd8a8-81fe-4bdb-8932-f9e3a68beff8"
)

func ref(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, apiVersion, kind, name, uid)
}

// ends returns the expected reference.
func ends(kind, name, uid string) encoding.OwnerReference {
	return encoding.OwnerReference{APIVersion: apiVersionV3, Kind: kind, Name: name, UID: uid}
}

// TestOwnersEnd tests a reference in each form written by releases, in an object of each encoding
// and in each layer of a Calico record.
func TestOwnersEnd(t *testing.T) {
	wanted := map[string]encoding.OwnerReference{}
	tests := []struct {
		name, ref string
		want      encoding.OwnerReference
	}{
		{"v3.28 and later, inside the annotation", ref(apiVersionV1, "Tier", "security", tierStored),
			ends("Tier", "security", tierSeen)},
		{"v3.27.4 and before, inside: v3 with the stored UID", ref(apiVersionV3, "Tier", "security", tierStored),
			ends("Tier", "security", tierSeen)},
		{"v3.27.5, and what clients write: v3 with the seen UID", ref(apiVersionV3, "Tier", "security", tierSeen),
			ends("Tier", "security", tierSeen)},
		{"v1 with the seen UID", ref(apiVersionV1, "Tier", "security", tierSeen), ends("Tier", "security", tierSeen)},
		{"the stored name of a policy", ref(apiVersionV1, "NetworkPolicy", "default.legacy-np", npStored),
			ends("NetworkPolicy", "legacy-np", npSeen)},
		{"a kind that is renamed", ref(apiVersionV1, "IPAMConfig", "default", configStored),
			ends("IPAMConfiguration", "default", configSeen)},
		{"a kind that is renamed, half translated", ref(apiVersionV3, "IPAMConfig", "default", configSeen),
			ends("IPAMConfiguration", "default", configSeen)},
		{"another version of the group", ref("projectcalico.org/v3alpha1", "Tier", "security", tierSeen),
			ends("Tier", "security", tierSeen)},
		{"an upper-case UID", ref(apiVersionV1, "Tier", "security", strings.ToUpper(tierStored)),
			ends("Tier", "security", tierSeen)},
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

// ownedBy adds an object of each sort with one owner reference to the input and returns their keys
// after the migration.
func ownedBy(in *input, i int, ref string) []string {
	n := fmt.Sprintf("%02d", i)
	inner := v1{kind: "NetworkSet", namespace: "team-a", name: "inner" + n,
		uid: "aaaaaa" + n + "-0000-4000-8000-000000000000", inner: `{"ownerReferences":[` + ref + `]}`}
	outer := v1{kind: "NetworkSet", namespace: "team-a", name: "outer" + n,
		uid: "bbbbbb" + n + "-0000-4000-8000-000000000000", inner: "-", meta: `"ownerReferences":[` + ref + `],`}
	in.record(inner).record(outer)
	var native metav1.OwnerReference
	require.NoError(in.t, json.Unmarshal([]byte(ref), &native))
	configMap := "/registry/configmaps/team-a/native" + n
	in.native(configMap, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "native" + n,
		Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{native}}})
	widget := "/registry/example.com/widgets/team-a/foreign" + n
	foreign := `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"name":"foreign` + n +
		`","namespace":"team-a","ownerReferences":[` + ref + `]}}`
	in.put(widget, []byte(foreign))
	obj, _, err := encoding.DecodeObject([]byte(foreign))
	require.NoError(in.t, err)
	value, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(in.t, err)
	in.put(widget+".cbor", value)
	return []string{inner.v3(), outer.v3(), configMap, widget, widget + ".cbor"}
}

// TestOwnersOfOneUID: the stored UID of one record is the UID clients saw for another record; the
// kind decides.
func TestOwnersOfOneUID(t *testing.T) {
	one := v1{kind: "GlobalNetworkSet", name: "one", inner: "{}"}
	other := v1{kind: "BGPPeer", name: "other", uid: clientUID, inner: "{}",
		spec: `{"peerIP":"192.0.2.1","asNumber":64512}`}
	ofOne := v1{kind: "GlobalNetworkSet", name: "of-one", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV3, "GlobalNetworkSet", "one", storedUID) + `]}`}
	ofOther := v1{kind: "GlobalNetworkSet", name: "of-other", uid: "32345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV3, "BGPPeer", "other", storedUID) + `]}`}
	got := migrateRecords(t, Options{}, one, other, ofOne, ofOther)
	owner := func(r v1) any { return at(got.written(t, r.v3()), "metadata", "ownerReferences").([]any)[0] }
	require.Equal(t, map[string]any{"apiVersion": apiVersionV3, "kind": "GlobalNetworkSet", "name": "one",
		"uid": clientUID}, owner(ofOne))
	require.Equal(t, map[string]any{"apiVersion": apiVersionV3, "kind": "BGPPeer", "name": "other", "uid": storedUID},
		owner(ofOther))
}

// TestOwnerNamedTwice: annotation and record name one owner by different UIDs; the result has one
// owner.
func TestOwnerNamedTwice(t *testing.T) {
	r := v1{kind: "GlobalNetworkSet", name: "twice", inner: `{"ownerReferences":[` + ref(apiVersionV3, "Tier",
		"security", tierSeen) + `]}`,
		meta: `"ownerReferences":[` + ref(apiVersionV1, "Tier", "security", tierStored) + `],`}
	obj := migrateRecords(t, Options{}, r).written(t, r.v3())
	require.Equal(t, []any{map[string]any{"apiVersion": apiVersionV3, "kind": "Tier", "name": "security",
		"uid": tierSeen}}, at(obj, "metadata", "ownerReferences"))
}

// TestOwnersFollowNewUIDs: with new UIDs, every reference to a Calico object changes.
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

// TestManagedFieldsFollowOwners: a v3 client still owns its fields. If a field is an owner
// reference, its path has the owner's final UID.
func TestManagedFieldsFollowOwners(t *testing.T) {
	fields := func(uid string) string {
		return `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"` + uid + `\"}":{}}},"f:spec":{"f:nets":{}}}`
	}
	entry := func(version, uid string) string {
		return `{"manager":"kubectl","operation":"Apply","apiVersion":"` + version +
			`","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":` + fields(uid) + `}`
	}
	// the form written by clients, and before v3.27.5 also the stored form
	for _, inner := range []string{tierSeen, tierStored} {
		r := v1{kind: "GlobalNetworkSet", name: "owned", spec: `{"nets":["192.0.2.0/24"]}`,
			meta: `"managedFields":[` + entry(apiVersionV1, tierStored) + `],`,
			inner: `{"ownerReferences":[` + ref(apiVersionV1, "Tier", "security", tierStored) + `],"managedFields":[` +
				entry(apiVersionV3, inner) + `]}`}
		for _, o := range []Options{{}, {NewUIDs: true}} {
			got := migrateRecords(t, o, r)
			obj := got.written(t, r.v3())
			owner := at(obj, "metadata", "ownerReferences").([]any)[0].(map[string]any)["uid"].(string)
			require.Equal(t, o.NewUIDs, owner != tierSeen)
			managed := at(obj, "metadata", "managedFields").([]any)
			require.Len(t, managed, 1)
			require.Equal(t, parseObject(t, entry(apiVersionV3, owner)), managed[0])
		}
	}
}

// TestGarbageCollectorFindsEveryOwner: a garbage collector looks up owners by kind and name and
// compares the UID. After the live migration it deleted four objects of this cluster.
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

func TestReferencesAreReported(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, got.err)
	require.Contains(t, got.References, transform.Reference{
		Key: "/registry/configmaps/team-a/owned-by-v1-raw", OwnerKind: "GlobalNetworkSet", OwnerName: "threat-feed",
		From: "crd.projectcalico.org/v1/aafbff75-509d-49d1-bcdc-e4869a084d0a",
		To:   "projectcalico.org/v3/55dfffae-0ab9-498b-bc3b-27615910b250",
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
		{"projectcalico.org/v3", false, true}, {"crd.projectcalico.org/v1", true, true},
		{"crd.projectcalico.org/v2", true, true},
		{"projectcalico.org", false, false}, {"notprojectcalico.org/v3", false, false},
		{"operator.tigera.io/v1", false, false},
		{"migration.projectcalico.org/v1", false, false}, {"policy.networking.k8s.io/v1alpha2", false, false},
		{"v1", false, false}, {"apps/v1", false, false}, {"a/b/c", false, false},
	} {
		ofV1, ok := isCalico(tt.apiVersion)
		require.Equal(t, tt.ok, ok, tt.apiVersion)
		require.Equal(t, tt.ofV1, ofV1, tt.apiVersion)
	}
}
