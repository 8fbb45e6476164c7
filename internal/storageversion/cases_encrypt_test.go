package storageversion

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/transform"
)

// open decrypts a value of the output and requires the prefix by.
func (r result) open(with *encryption.Transformers, resource, key, by string) string {
	r.t.Helper()
	require.True(r.t, strings.HasPrefix(r.out[key].value, by), "%.40s", r.out[key].value)
	plain, stale, err := with.Decrypt(context.Background(), gvr.ParseGroupResource(resource), []byte(key),
		[]byte(r.out[key].value))
	require.NoError(r.t, err)
	require.False(r.t, stale, key)
	return string(plain)
}

// TestEncrypted checks that encrypted objects are migrated with the configuration, and encrypted by
// its first provider, under their own key; unchanged values keep their bytes, even from another
// provider.
func TestEncrypted(t *testing.T) {
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			old, now := secrettest.Load(t, widgetsCRD+": secretbox=o"),
				secrettest.Load(t, widgetsCRD+": "+provider+"=n secretbox=o identity")
			stale, current, plain := resource{version: "v1alpha1", name: "a"}, resource{version: "v1", name: "b"},
				resource{version: "v1alpha1", name: "c"}
			c := newCluster(t, twoVersions())
			c.put(stale.key(), secrettest.Encrypt(t, old, widgetsCRD, stale.key(), stale.json(t)))
			c.put(current.key(), secrettest.Encrypt(t, old, widgetsCRD, current.key(), current.json(t)))
			r := migrate(t, transform.Options{In: c.add(plain).build(), Encryption: now}, Options{})
			require.Equal(t, []string{widgetsKey, stale.key(), plain.key()}, r.changed())
			for _, o := range []resource{stale, plain} {
				require.Equal(t, o.at("v1").json(t), r.open(now, widgetsCRD, o.key(), "k8s:enc:"+provider+":v1:n:"))
			}
			require.Empty(t, r.Problems)
		})
	}
}

// TestEncryptedClosed checks that an undecryptable object is named with the reason and keeps the
// list unchanged; no value is quoted.
func TestEncryptedClosed(t *testing.T) {
	right := secrettest.Load(t, widgetsCRD+": aesgcm=a")
	o := resource{version: "v1alpha1", name: "a", spec: `{"text":"hunter2"}`}
	encrypted := secrettest.Encrypt(t, right, widgetsCRD, o.key(), o.json(t))
	tests := []struct {
		name, key, value string
		with             *encryption.Transformers
		reason           string
	}{
		{"no configuration", o.key(), encrypted, nil, "no encryption configuration"},
		{"no such provider", o.key(), encrypted, secrettest.Load(t, widgetsCRD+": aescbc=a identity"), "aesgcm"},
		{"not this resource", o.key(), encrypted, secrettest.Load(t, "secrets: aesgcm=a"), "aesgcm"},
		{"no such key", o.key(), encrypted, secrettest.Load(t, widgetsCRD+": aesgcm=b"), "aesgcm:v1:a"},
		{"moved", widgetsDir + "ns/moved", encrypted, right, "aesgcm:v1:a"},
		{"truncated", o.key(), encrypted[:len(encrypted)-20], right, "aesgcm:v1:a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := transform.Options{In: newCluster(t, twoVersions()).put(tt.key, tt.value).build()}
			if tt.with != nil {
				files.Encryption = tt.with
			}
			r := migrate(t, files, Options{})
			r.refusedFor("error encrypted "+tt.key, "warning stored-versions-kept "+widgetsKey)
			require.Contains(t, r.reason(finding.Encrypted.Name), tt.reason)
			require.NotContains(t, r.reason(finding.Encrypted.Name), "hunter2")
			require.Equal(t, map[string]int{"": 1}, r.resources(widgetsCRD).Found)
			files.Allow = []string{finding.Encrypted.Name}
			r = migrate(t, files, Options{})
			require.Empty(t, r.changed())
			require.Equal(t, []string{"v1alpha1", "v1"}, r.storedVersions(widgetsKey))
		})
	}
}

// TestWouldBePlaintext checks that an encrypted object that the configuration would store as
// plaintext is refused, or stays unchanged.
func TestWouldBePlaintext(t *testing.T) {
	with := secrettest.Load(t, widgetsCRD+": identity aescbc=a")
	o, plain := resource{version: "v1alpha1", name: "a"}, resource{version: "v1alpha1", name: "b"}
	encrypted := secrettest.Encrypt(t, secrettest.Load(t, widgetsCRD+": aescbc=a"), widgetsCRD, o.key(), o.json(t))
	files := transform.Options{In: newCluster(t, twoVersions()).put(o.key(), encrypted).add(plain).build(),
		Encryption: with}
	r := migrate(t, files, Options{})
	r.refusedFor("error would-be-plaintext "+o.key(), "warning stored-versions-kept "+widgetsKey)
	require.Contains(t, r.reason(transform.CodeWouldBePlaintext.Name),
		"widgets.example.com would be stored in the clear")
	files.Allow = []string{transform.CodeWouldBePlaintext.Name}
	r = migrate(t, files, Options{})
	require.Equal(t, []string{plain.key()}, r.changed())
	require.Equal(t, []string{"v1alpha1", "v1"}, r.storedVersions(widgetsKey))
	require.Equal(t, []int{1, 1}, []int{r.resources(widgetsCRD).Rewritten, r.resources(widgetsCRD).Refused})

	require.Equal(t, []string{"error would-be-plaintext " + o.key()},
		migrate(t, transform.Options{In: files.In, Encryption: with},
			Options{Rewrap: true, Exclude: []string{widgetsCRD}}).problems()[:1])
}

// TestEncryptedDefinition checks that an encrypted CustomResourceDefinition stays encrypted; if the
// configuration would store plaintext, the report has the unchanged list.
func TestEncryptedDefinition(t *testing.T) {
	const definitionsResource = "customresourcedefinitions.apiextensions.k8s.io"
	with := secrettest.Load(t, definitionsResource+": aesgcm=a")
	encrypted := secrettest.Encrypt(t, with, definitionsResource, widgetsKey, twoVersions().json(t))
	o := resource{version: "v1alpha1", name: "a"}
	path := newCluster(t).put(widgetsKey, encrypted).add(o).build()
	r := migrate(t, transform.Options{In: path, Encryption: with}, Options{})
	require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
	require.Equal(t, strings.Replace(twoVersions().json(t), `["v1alpha1","v1"]`, `["v1"]`, 1),
		r.open(with, definitionsResource, widgetsKey, "k8s:enc:aesgcm"))

	with = secrettest.Load(t, definitionsResource+": identity aesgcm=a")
	r = migrate(t, transform.Options{In: path, Encryption: with,
		Allow: []string{transform.CodeWouldBePlaintext.Name}}, Options{})
	require.Equal(t, []string{o.key()}, r.changed())
	require.Equal(t, StoredVersions{Before: []string{"v1alpha1", "v1"}, After: []string{"v1alpha1", "v1"},
		Kept: "it would be stored in the clear"}, r.resources(widgetsCRD).StoredVersions)

	// if the storage version cannot change, its objects must not change either
	fresh := resource{version: "v1", name: "b"}
	path = newCluster(t).put(widgetsKey, encrypted).add(fresh).build()
	r = migrate(t, transform.Options{In: path, Encryption: with,
		Allow: []string{transform.CodeWouldBePlaintext.Name}}, Options{To: "v1alpha1"})
	require.Empty(t, r.changed())
	require.Equal(t, []string{"error would-be-plaintext " + widgetsKey}, r.problems())
}

// secretObject is a Secret as a server stores it.
func secretObject(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u"},
		Data: map[string][]byte{"password": []byte("hunter2")}, Type: "Opaque"}
}

// TestRewrap checks that every value is encrypted by the first provider and its first key, the
// content is the same, and a second run changes nothing.
func TestRewrap(t *testing.T) {
	old := secrettest.Load(t, "secrets,"+widgetsCRD+": aescbc=o")
	now := secrettest.Load(t, "secrets,"+widgetsCRD+": aesgcm=no aescbc=o identity", "configmaps: identity secretbox=o")
	secret := "/registry/secrets/ns/"
	native := protobufOf(t, "v1", "Secret", secretObject("s"), 0)
	newest := secret + "newest"
	c := newCluster(t, twoVersions()).
		put(secret+"encrypted", secrettest.Encrypt(t, old, "secrets", secret+"encrypted", native)).
		put(secret+"plain", native).
		put(newest, secrettest.Encrypt(t, now, "secrets", newest, native)).
		native("/registry/configmaps/ns/c", "v1", "ConfigMap", &corev1.ConfigMap{}).
		native("/registry/pods/ns/p", "v1", "Pod", &corev1.Pod{})
	stale, current := resource{version: "v1alpha1", name: "a"}, resource{version: "v1", name: "b"}
	c.put(stale.key(), secrettest.Encrypt(t, old, widgetsCRD, stale.key(), stale.json(t)))
	c.put(current.key(), secrettest.Encrypt(t, old, widgetsCRD, current.key(), current.json(t)))
	path := c.build()
	r := migrate(t, transform.Options{In: path, Encryption: now}, Options{Rewrap: true})
	require.Equal(t, []string{widgetsKey, stale.key(), current.key(), secret + "encrypted", secret + "plain"},
		r.changed())
	for _, name := range []string{"encrypted", "plain"} {
		require.Equal(t, native, r.open(now, "secrets", secret+name, "k8s:enc:aesgcm:v1:n:"))
	}
	require.Equal(t, current.json(t), r.open(now, widgetsCRD, current.key(), "k8s:enc:aesgcm:v1:n:"))
	require.Equal(t, stale.at("v1").json(t), r.open(now, widgetsCRD, stale.key(), "k8s:enc:aesgcm:v1:n:"))
	require.Equal(t, []int{1, 1}, []int{r.resources(widgetsCRD).Rewritten, r.resources(widgetsCRD).Unchanged},
		"only what is re-encoded counts as that")

	again := migrate(t, transform.Options{In: r.path, Encryption: now}, Options{Rewrap: true})
	require.Equal(t, transform.Unchanged, again.Outcome)
	require.Equal(t, again.Input.SHA256, again.Output.SHA256)

	all := []string{widgetsCRD}
	only := migrate(t, transform.Options{In: path, Encryption: now}, Options{Rewrap: true, Exclude: all})
	require.Equal(t, []string{stale.key(), current.key(), secret + "encrypted", secret + "plain"}, only.changed())
	require.Equal(t, stale.json(t), only.open(now, widgetsCRD, stale.key(), "k8s:enc:aesgcm:v1:n:"),
		"its version stays")
}

// TestRewrapClosed checks that a key rotation with an undecryptable value is refused, with the key
// of the value.
func TestRewrapClosed(t *testing.T) {
	with := secrettest.Load(t, "secrets: aescbc=n identity")
	lost := secrettest.Encrypt(t, secrettest.Load(t, "secrets: aescbc=o"), "secrets", "/registry/secrets/ns/a",
		protobufOf(t, "v1", "Secret", secretObject("s"), 0))
	path := newCluster(t).put("/registry/namespaces/default", namespaceJSON).put("/registry/secrets/ns/a",
		lost).native("/registry/secrets/ns/b", "v1", "Secret", secretObject("b")).build()
	r := migrate(t, transform.Options{In: path, Encryption: with}, Options{Rewrap: true})
	r.refusedFor("error encrypted /registry/secrets/ns/a")
	require.Contains(t, r.reason(finding.Encrypted.Name), "aescbc:v1:o")
	require.Equal(t, 1, strings.Count(r.reason(finding.Encrypted.Name), "aescbc:v1:o"),
		r.reason(finding.Encrypted.Name))
	r = migrate(t, transform.Options{In: path, Encryption: with, Allow: []string{finding.Encrypted.Name}},
		Options{Rewrap: true})
	require.Equal(t, []string{"/registry/secrets/ns/b"}, r.changed())
}

// TestRewrapAllowed checks that a skipped object is encrypted with the new key: without its old key
// the object would be lost.
func TestRewrapAllowed(t *testing.T) {
	old, now := secrettest.Load(t, widgetsCRD+": aescbc=o"), secrettest.Load(t, widgetsCRD+": aescbc=no")
	o := resource{version: "v1old", name: "a"}
	encrypted := secrettest.Encrypt(t, old, widgetsCRD, o.key(), o.json(t))
	path := newCluster(t, twoVersions()).put(o.key(), encrypted).build()
	r := migrate(t, transform.Options{In: path, Encryption: now, Allow: []string{codeUnlistedVersion.Name}},
		Options{Rewrap: true})
	require.Contains(t, r.changed(), o.key())
	require.Equal(t, o.json(t), r.open(now, widgetsCRD, o.key(), "k8s:enc:aescbc:v1:n:"))
	require.Equal(t, encoding.FormatEncrypted, encoding.Detect([]byte(r.out[o.key()].value)))
}

// TestRewrapStrays checks that an encrypted value outside the prefixes of the API servers is
// reported.
func TestRewrapStrays(t *testing.T) {
	with := secrettest.Load(t, "secrets: aescbc=n")
	lost := secrettest.Encrypt(t, with, "secrets", "/other/secrets/ns/a",
		protobufOf(t, "v1", "Secret", secretObject("a"), 0))
	path := newCluster(t).put("/registry/namespaces/default", namespaceJSON).put("/other/secrets/ns/a",
		lost).native("/other/secrets/ns/b", "v1", "Secret", secretObject("b")).build()
	r := migrate(t, transform.Options{In: path, Encryption: with}, Options{Rewrap: true})
	r.refusedFor("error unknown-key /other/secrets/ns/a")
	require.Contains(t, r.reason(codeUnknownKey.Name), "--prefix")
	r = migrate(t, transform.Options{In: path, Encryption: with, Prefixes: []string{"/other"}}, Options{Rewrap: true})
	require.Equal(t, []string{"/other/secrets/ns/b"}, r.changed())
	require.Empty(t, r.Problems)
}

// TestRewrapNested checks that an encrypted value of another API server below the prefix is
// rewrapped, or reported if its prefix is not chosen.
func TestRewrapNested(t *testing.T) {
	const nested = "/registry/tenants.io/one"
	const outer, inner, crd = "/registry/secrets/ns/a", nested + "/secrets/ns/a",
		nested + "/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
	old, now := secrettest.Load(t, "secrets: aescbc=o"), secrettest.Load(t, "secrets: aescbc=no")
	plain := protobufOf(t, "v1", "Secret", secretObject("a"), 0)
	c := newCluster(t).put("/registry/namespaces/default", namespaceJSON).put(crd, twoVersions().json(t))
	for _, key := range []string{outer, inner} {
		c.put(key, secrettest.Encrypt(t, old, "secrets", key, plain))
	}
	path := c.build()
	for _, prefixes := range [][]string{nil, {"/registry", nested}} {
		r := migrate(t, transform.Options{In: path, Encryption: now, Prefixes: prefixes}, Options{Rewrap: true})
		require.Equal(t, []string{outer, crd, inner}, r.changed())
		require.Equal(t, plain, r.open(now, "secrets", inner, "k8s:enc:aescbc:v1:n:"))
	}
	for prefix, left := range map[string]string{"/registry": inner, nested: outer} {
		r := migrate(t, transform.Options{In: path, Encryption: now, Prefixes: []string{prefix}}, Options{Rewrap: true})
		r.refusedFor("error unknown-key " + left)
	}
}
