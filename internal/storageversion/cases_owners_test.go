package storageversion

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagemigration "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// ownedBy returns an owner reference to a widget.
func ownedBy(apiVersion string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: "Widget", Name: "a", UID: "u-a", Controller: &yes}
}

func owners(t testing.TB, value string) (out []string) {
	t.Helper()
	m, err := encoding.ReadMeta([]byte(value))
	require.NoError(t, err)
	for _, ref := range m.OwnerReferences {
		out = append(out, ref.APIVersion)
	}
	return out
}

// TestOwners checks that references to a removed or unserved version change to the preferred served
// version, in objects of any format, and no other reference changes.
func TestOwners(t *testing.T) {
	d := definition{versions: "v1alpha1- v1beta1 v1*", stored: `["v1alpha1","v1"]`}
	ref := func(apiVersion, kind string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"blockOwnerDeletion":true,"kind":%q,"name":"a","uid":"u-a"}`,
			apiVersion, kind)
	}
	owned := resource{version: "v1", name: "owned", late: `"labels":{"a":"b"},`}
	inJSON := strings.Replace(owned.json(t), `"uid"`, `"ownerReferences":[`+ref("example.com/v1alpha1", "Widget")+","+
		ref("example.com/v1beta1", "Widget")+","+ref("example.com/v0", "Gadget")+","+ref("v1", "Pod")+`],"uid"`, 1)
	obj, _, err := encoding.DecodeObject([]byte(strings.ReplaceAll(inJSON, `"owned"`, `"cbor"`)))
	require.NoError(t, err)
	inCBOR, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{ownedBy("example.com/v0"), ownedBy("example.com/v1"),
			ownedBy("apps/v1")}}}
	fine := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{ownedBy("example.com/v1beta1")}}}
	foreign := `{"apiVersion":"other.org/v1","kind":"Thing","metadata":{"name":"t","ownerReferences":[` +
		ref("example.com/v1alpha1", "Widget") + `]}}` + "\n"
	c := newCluster(t, d).put(owned.key(), inJSON).put(widgetsDir+"ns/cbor",
		string(inCBOR)).put("/registry/other.org/things/t", foreign).
		native("/registry/pods/ns/p", "v1", "Pod", pod).native("/registry/pods/ns/q", "v1", "Pod", fine)
	r := c.migrate(Options{})
	require.Equal(t, []string{widgetsKey, widgetsDir + "ns/cbor", owned.key(), "/registry/other.org/things/t",
		"/registry/pods/ns/p"}, r.changed())
	require.Equal(t, strings.Replace(inJSON, "example.com/v1alpha1", "example.com/v1", 1), r.out[owned.key()].value)
	require.Equal(t, []string{"example.com/v1", "example.com/v1beta1", "example.com/v0", "v1"},
		owners(t, r.out[widgetsDir+"ns/cbor"].value))
	require.Equal(t, strings.Replace(foreign, "v1alpha1", "v1", 1), r.out["/registry/other.org/things/t"].value)
	pod.OwnerReferences[0].APIVersion = "example.com/v1"
	require.Equal(t, protobufOf(t, "v1", "Pod", pod, 0), r.out["/registry/pods/ns/p"].value)
	require.Len(t, r.References, 4)
	require.Contains(t, r.References, transform.Reference{Key: "/registry/pods/ns/p", OwnerKind: "Widget",
		OwnerName: "a", From: "example.com/v0/u-a", To: "example.com/v1/u-a"})
	require.Equal(t, []string{"warning orphan /registry/other.org/things/t"}, r.problems())
	require.Equal(t, transform.Unchanged, migrate(t, transform.Options{In: r.path}, Options{}).Outcome)
}

// TestOwnersNoneServed checks that without a served version the reference stays, with a report.
func TestOwnersNoneServed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{ownedBy("example.com/v1")}}}
	r := newCluster(t, definition{versions: "v1*-"}).native("/registry/pods/ns/p", "v1", "Pod", pod).migrate(Options{})
	require.Empty(t, r.changed())
	require.Equal(t, "its owner Widget a is named at example.com/v1, and no version of that kind is served",
		r.reason(codeOwnerVersion.Name))
}

// TestOwnersUnreadable checks that an unreadable later reference is the only finding.
func TestOwnersUnreadable(t *testing.T) {
	value :=
		`{"apiVersion":"other.org/v1","kind":"Thing","metadata":{"name":"t",` +
			`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget","name":"a","uid":"u-a"},{"uid":1}]}}`
	r := newCluster(t, definition{versions: "v1*-"}).put("/registry/odd", value).migrate(Options{},
		finding.Undecodable.Name)
	require.Empty(t, r.changed())
	require.Equal(t, []string{"error undecodable /registry/odd"}, r.problems())
}

// TestOwnersStaleObject checks that an object with a removed version and an owner at a removed
// version is rewritten once, with both changes.
func TestOwnersStaleObject(t *testing.T) {
	o := resource{version: "v1alpha1", name: "b"}
	value := strings.Replace(o.json(t), `"uid"`,
		`"ownerReferences":[{"apiVersion":"example.com/v1alpha1","kind":"Widget","name":"a","uid":"u-a"}],"uid"`, 1)
	path := newCluster(t, definition{versions: "v1alpha1- v1*", stored: `["v1alpha1","v1"]`}).put(o.key(),
		value).build()
	r := migrate(t, transform.Options{In: path}, Options{})
	require.Equal(t, strings.ReplaceAll(value, "v1alpha1", "v1"), r.out[o.key()].value)
	require.Equal(t, r.Input.Revision+2, r.Output.Revision)
	require.Len(t, r.References, 1)
}

// TestNoObjects checks that values that are not API objects are not searched for owners, but other
// values are.
func TestNoObjects(t *testing.T) {
	lease := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Name: ""}} //nolint:staticcheck // kube-apiserver stores one
	ranges := &corev1.RangeAllocation{Range: "10.0.0.0/16", Data: []byte{1}}
	r := newCluster(t, twoVersions()).
		native("/registry/masterleases/10.0.0.1", "v1", "Endpoints", lease).
		native("/registry/ranges/serviceips", "v1", "RangeAllocation", ranges).
		put("/registry/odd/thing", "text").put("/elsewhere", "text").put("/registryother/x", "text").
		migrate(Options{}, finding.Undecodable.Name)
	require.Equal(t, []string{widgetsKey}, r.changed())
	require.Equal(t, []string{"error undecodable /registry/odd/thing"}, r.problems(),
		"keys that are no resources have no finding (case 22)")
}

// helm packs a release as Helm does.
func helm(t testing.TB, manifest string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": "r", "manifest": manifest})
	require.NoError(t, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// TestHelm checks that releases whose manifest names removed versions are reported, in Secrets and
// in ConfigMaps, and never changed.
func TestHelm(t *testing.T) {
	names := "---\n# Source: a.yaml\napiVersion: example.com/v1alpha1\nkind: Widget\nmetadata: {name: " +
		"a}\n---\napiVersion: v1\nkind: Service\n---\nnot: [yaml\n"
	plain := base64.StdEncoding.EncodeToString([]byte(`{"manifest":"apiVersion: example.com/v0\nkind: Widget\n"}`))
	tests := []struct {
		name, status, release, reason string // empty for none
	}{
		{"names it", "deployed", helm(t, names),
			`Helm release r names versions that are not served: example.com/v1alpha1 Widget; change them with ` +
				`--helm, or run "helm mapkubeapis" before its next upgrade`},
		{"failed", "failed", helm(t, names), "example.com/v1alpha1 Widget"},
		{"not compressed", "deployed", plain, "example.com/v0 Widget"},
		{"superseded", "superseded", helm(t, names), ""},
		{"uninstalled", "uninstalled", helm(t, names), ""},
		{"names what is served", "deployed", helm(t, strings.ReplaceAll(names, "v1alpha1", "v1")), ""},
		{"another kind", "deployed", helm(t, strings.ReplaceAll(names, "Widget", "Gadget")), ""},
		{"empty", "deployed", "", ""},
		{"not base64", "deployed", "%%%", "not base64"},
		{"not JSON", "deployed", base64.StdEncoding.EncodeToString([]byte("{")), "not JSON"},
		{"half a gzip", "deployed", helm(t, names)[:40], "gzip: unexpected EOF"},
		{"quoted", "deployed", helm(t, "apiVersion: \"example.com/v0\" # old\r\nkind: 'Widget'\r\nspec:\n  "+
			"apiVersion: example.com/v1\n"), "example.com/v0 Widget"},
		{"of what it embeds", "deployed", helm(t, "apiVersion: v1\nkind: List\nspec:\n  apiVersion: example.com/v0\n "+
			" kind: Widget\n"), ""},
		{"without end", "deployed", helm(t, strings.Repeat("- a\n", 3<<20)+
			"---\napiVersion: example.com/v0\nkind: Widget\n"), "example.com/v0 Widget"},
		{"bomb", "deployed", helm(t, strings.Repeat("a", 70<<20)), "longer than 16777216 bytes"},
	}
	d := definition{versions: "v1alpha1- v1*"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Name: "sh.helm.release.v1.r.v1", Namespace: "ns",
				Labels: map[string]string{"name": "r", "owner": "helm", "status": tt.status}}
			secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"release": []byte(tt.release)},
				Type: "helm.sh/release.v1"}
			config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"release": tt.release}}
			asJSON, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta,
				"data": map[string]string{"release": tt.release}})
			require.NoError(t, err)
			for _, c := range []*cluster{
				newCluster(t, d).native("/registry/secrets/ns/sh.helm.release.v1.r.v1", "v1", "Secret", secret),
				newCluster(t, d).native("/registry/configmaps/ns/sh.helm.release.v1.r.v1", "v1", "ConfigMap", config),
				newCluster(t, d).put("/registry/configmaps/ns/sh.helm.release.v1.r.v1", string(asJSON)),
			} {
				r := c.migrate(Options{})
				require.Empty(t, r.changed())
				if tt.reason == "" {
					require.Empty(t, r.Problems)
					continue
				}
				require.Contains(t, r.reason(codeHelmRelease.Name), tt.reason)
			}
		})
	}
}

// TestMigrator checks that an unfinished migration of the cluster is mentioned, and a finished one
// is not.
func TestMigrator(t *testing.T) {
	migration := func(name string, condition storagemigration.MigrationConditionType,
		status metav1.ConditionStatus) *storagemigration.StorageVersionMigration {
		return &storagemigration.StorageVersionMigration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: storagemigration.StorageVersionMigrationStatus{
				Conditions: []metav1.Condition{{Type: string(condition), Status: status}}},
		}
	}
	const dir = "/registry/storageversionmigrations/"
	c := newCluster(t, twoVersions())
	for name, m := range map[string]*storagemigration.StorageVersionMigration{
		"running": migration("running", storagemigration.MigrationRunning, metav1.ConditionTrue),
		"done":    migration("done", storagemigration.MigrationSucceeded, metav1.ConditionTrue),
		"stopped": migration("stopped", storagemigration.MigrationRunning, metav1.ConditionFalse),
	} {
		c.native(dir+name, "storagemigration.k8s.io/v1beta1", "StorageVersionMigration", m)
	}
	asJSON, err := json.Marshal(migration("json", storagemigration.MigrationRunning, metav1.ConditionTrue))
	require.NoError(t, err)
	c.put(dir+"json", strings.Replace(string(asJSON), "{",
		`{"apiVersion":"storagemigration.k8s.io/v1beta1","kind":"StorageVersionMigration",`, 1))
	c.put(dir+"odd",
		`{"apiVersion":"storagemigration.k8s.io/v1beta1","kind":"StorageVersionMigration","metadata":{"name":"odd"},`+
			`"status":{"conditions":7}}`)
	r := c.migrate(Options{}, finding.Undecodable.Name)
	require.Equal(t, []string{widgetsKey}, r.changed())
	require.Equal(t, []string{"error undecodable " + dir + "odd", "warning migrator-pending " + dir + "json",
		"warning migrator-pending " + dir + "running"}, r.problems())
}
