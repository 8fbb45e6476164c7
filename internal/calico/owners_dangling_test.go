package calico

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// TestDanglingOwnersOfRecords: a reference in an annotation was harmless; as a real owner reference
// it may cause the deletion of the object.
func TestDanglingOwnersOfRecords(t *testing.T) {
	const fatal, warned, fine = finding.Error, finding.Warning, ""
	namespace := ref("v1", "Namespace", "team-a", namespaceA)
	nobody := "77777777-7777-4777-8777-777777777777"
	tests := []struct {
		name, kind, namespace, refs string
		level                       finding.Level
		reason                      string
	}{
		{"a Calico object that is not there", "GlobalNetworkSet", "", ref(apiVersionV1, "Tier", "security", nobody),
			fatal, "no Calico object has its UID"},
		{"a namespaced Calico owner of a cluster-scoped object", "GlobalNetworkSet", "",
			ref(apiVersionV1, "NetworkPolicy", "legacy-np", npStored), fatal,
			"it is in namespace team-a, but what it owns is cluster-scoped"},
		{"a Calico owner in another namespace", "NetworkSet", "team-b", ref(apiVersionV1, "NetworkPolicy", "legacy-np",
			npStored), fatal, "it is in namespace team-a, an owner must be"},
		{"a namespace", "GlobalNetworkSet", "", namespace, fine, ""},
		{"a namespace that is gone", "GlobalNetworkSet", "", ref("v1", "Namespace", "gone", namespaceA), fatal,
			"it does not exist"},
		{"a namespace of the same name", "GlobalNetworkSet", "", ref("v1", "Namespace", "team-a", storedUID), fatal,
			"the one that exists has another uid, " + namespaceA},
		{"a secret", "NetworkSet", "team-a", ref("v1", "Secret", "owned-by-ippool",
			"bfbdc367-78e1-433e-aec7-309aec88792c"), fine, ""},
		{"a secret of another namespace", "NetworkSet", "team-b",
			ref("v1", "Secret", "owned-by-ippool", "bfbdc367-78e1-433e-aec7-309aec88792c"), fatal, "it does not exist"},
		{"a secret that owns something cluster-scoped", "GlobalNetworkSet", "",
			ref("v1", "Secret", "owned-by-ippool", "bfbdc367-78e1-433e-aec7-309aec88792c"), fatal, "it is namespaced"},
		{"a foreign object", "NetworkSet", "team-a", ref("example.com/v1alpha1", "Widget", "owner-widget",
			"9a6e8370-8c11-48b1-8acf-2a0d43fd3e59"), fine, ""},
		{"a foreign object that is gone", "NetworkSet", "team-a", ref("example.com/v1alpha1", "Widget", "gone",
			"9a6e8370-8c11-48b1-8acf-2a0d43fd3e59"), fatal, "it does not exist"},
		{"a kind nobody knows: no garbage collector deletes for it", "NetworkSet", "team-a",
			ref("nobody.example.com/v1", "Thing", "x", "u"), fine, ""},
		{"one of two is there", "GlobalNetworkSet", "", ref(apiVersionV1, "Tier", "security", nobody) + "," + namespace,
			warned, "the garbage collector will drop a reference"},
		{"the other of two is there", "GlobalNetworkSet", "", ref(apiVersionV1, "Tier", "security", tierStored) + "," +
			ref("v1", "Namespace", "gone", "u"), warned, "it does not exist"},
	}
	in := newInput(t)
	owned := make([]v1, len(tests))
	for i, tt := range tests {
		n := fmt.Sprintf("%02d", i)
		owned[i] = v1{kind: tt.kind, namespace: tt.namespace, name: "owned" + n,
			uid: "aaaaaa" + n + "-0000-4000-8000-000000000000", inner: `{"ownerReferences":[` + tt.refs + `]}`}
		in.record(owned[i])
	}
	path := in.write()
	refused := planOn(t, path, New(Options{}))
	require.ErrorIs(t, refused.err, transform.ErrRefused)
	got := planOn(t, path, New(Options{}), codeDanglingOwner.Name)
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
				require.False(t, got.has(fatal, codeDanglingOwner.Name, key) ||
					got.has(warned, codeDanglingOwner.Name, key))
				return
			}
			require.True(t, refused.has(tt.level, codeDanglingOwner.Name, key), "%v", refused.Problems)
			require.Contains(t, refused.reason(t, codeDanglingOwner.Name, key), tt.reason)
		})
	}
}

// TestOwnersOfOthers tests objects that are not Calico's.
func TestOwnersOfOthers(t *testing.T) {
	tier := metav1.OwnerReference{APIVersion: apiVersionV1, Kind: "Tier", Name: "security", UID: tierStored}
	gone := metav1.OwnerReference{APIVersion: apiVersionV3, Kind: "Tier", Name: "gone", UID: storedUID}
	goneV1 := metav1.OwnerReference{APIVersion: apiVersionV1, Kind: "Tier", Name: "gone", UID: storedUID}
	profile := metav1.OwnerReference{APIVersion: apiVersionV3, Kind: "Profile", Name: "kns.x", UID: storedUID}
	tests := []struct {
		name  string
		refs  []metav1.OwnerReference
		level finding.Level
		ends  int // references to a v3 record at the end
	}{
		{"dangling: the garbage collector deletes it", []metav1.OwnerReference{gone}, finding.Error, 0},
		{"of v1 and dangling: nobody looks for it", []metav1.OwnerReference{goneV1}, finding.Warning, 0},
		{"of a kind that is not stored: nobody looks for it", []metav1.OwnerReference{profile}, finding.Warning, 0},
		{"one of two", []metav1.OwnerReference{gone, tier}, finding.Warning, 1},
		{"no UUID", []metav1.OwnerReference{{APIVersion: apiVersionV3, Kind: "Tier", Name: "security", UID: "x"}},
			finding.Error, 0},
	}
	in := newInput(t)
	key := func(i int) string { return fmt.Sprintf("/registry/configmaps/team-a/native%d", i) }
	for i, tt := range tests {
		in.native(key(i), "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("native",
			i), Namespace: "team-a", OwnerReferences: tt.refs}})
	}
	got := planOn(t, in.write(), New(Options{}), codeDanglingOwner.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, got.has(tt.level, codeDanglingOwner.Name, key(i)), "%v", got.Problems)
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

// TestValuesThatCannotBeSeen: unreadable values are refused, even without a visible reference.
func TestValuesThatCannotBeSeen(t *testing.T) {
	const secret, broken, other = "/registry/secrets/team-a/encrypted", "/registry/example.com/widgets/team-a/broken",
		"/registry/example.com/widgets/team-a/other"
	in := newInput(t)
	in.put(secret, []byte("k8s:enc:aescbc:v1:k2:xxxxxxxxxxxxxxxx"))
	in.put(broken, []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"projectcalico.org/v3"`))
	in.put(other, []byte(`no object, and it names no group`))
	path := in.write()
	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.True(t, got.has(finding.Error, finding.Encrypted.Name, secret))
	require.True(t, got.has(finding.Error, finding.Undecodable.Name, broken))
	require.True(t, got.has(finding.Error, finding.Undecodable.Name, other))

	got = planOn(t, path, New(Options{}), finding.Encrypted.Name, finding.Undecodable.Name)
	require.NoError(t, got.err)
	for _, key := range []string{secret, broken, other} {
		require.Equal(t, got.in[key], got.out[key])
	}
	require.NotContains(t, got.out, recordsV1+"tiers/default", "they are no v1 records: v1 goes")
}

// TestOwnerUnreadable: the UID of an unreadable owner is unknown, so the owner is not reported
// missing. An owner that stays a v1 record is reported.
func TestOwnerUnreadable(t *testing.T) {
	const native, cm = "/registry/configmaps/team-a/owned", "/registry/configmaps/team-a/owner"
	owned := func(ref string) v1 {
		return v1{kind: "NetworkSet", namespace: "team-a", name: "owned", inner: `{"ownerReferences":[` + ref + `]}`}
	}
	byTier := func(in *input) *input {
		in.native(native, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned",
			Namespace: "team-a",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersionV3, Kind: "Tier", Name: "unread",
				UID: clientUID}}}})
		return in
	}

	in := newInput(t).record(owned(ref("v1", "ConfigMap", "owner", namespaceA)))
	in.put(cm, []byte("k8s\x00\xff"))
	got := planOn(t, in.write(), New(Options{}), finding.Undecodable.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, owned("").key()),
		`the garbage collector cannot look for it: owner v1 ConfigMap "owner"`)
	got.written(t, owned("").v3())

	in = byTier(newInput(t))
	in.put(recordsV3+"tiers/unread", []byte("{"))
	got = planOn(t, in.write(), New(Options{}), finding.Undecodable.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, native), "the v3 object of that name cannot be read")

	in = byTier(newInput(t))
	in.put(recordsV1+"tiers/unread", []byte("{"))
	got = planOn(t, in.write(), New(Options{}), finding.Undecodable.Name)
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, native), "the garbage collector would delete it: ")
	require.Contains(t, got.reason(t, codeDanglingOwner.Name, native),
		"the v1 record of that name cannot be read, and is not migrated")
}
