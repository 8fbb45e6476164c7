package encryption

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every error names the file and the field, and no error quotes a key.
func TestConfigErrorsNameFieldsAndHideKeys(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
	key := secret("k")
	for name, tc := range map[string]struct{ text, want string }{
		"empty": {"", `kind: "", want EncryptionConfiguration`},
		"no kind": {"apiVersion: apiserver.config.k8s.io/v1\nresources: [{providers: [{aescbc: {keys: [{secret: " +
			key + "}]}}]}]",
			`kind: ""`},
		"other kind": {"apiVersion: v1\nkind: Secret\ndata: {a: " + key + "}",
			`kind: "Secret", want EncryptionConfiguration`},
		"other config": {"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration",
			`kind: "AuthenticationConfiguration"`},
		"version": {"apiVersion: apiserver.config.k8s.io/v9\nkind: EncryptionConfiguration",
			`apiVersion: "(26 letters)", want apiserver.config.k8s.io/v1`},
		"a key alone": {key, "string, want an EncryptionConfiguration"},
		"a list":      {"[" + key + "]", "array, want an EncryptionConfiguration"},
		"key as kind": {"kind: " + key, `kind: "(44 letters)"`},
		"no YAML":     {"- resources: [secrets\n  providers: " + key + "\n", "line "},
		"binary":      {"\x00\x01" + key, "not YAML"},
		"YAML that begins as JSON": {"{kind: EncryptionConfiguration, a: " + key + "}",
			"it begins as JSON, and is none"},
		"field twice": {"- resources: [secrets]\n  resources: [" + key + "]\n",
			"line 5: not YAML, or a field given twice"},
		"nothing in": {"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n",
			"resources: at least one resources is required"},
		"unknown field": {rule("secrets", "aescbc: {keys: [{name: a, secrett: "+key+"}]}"),
			"resources[0].providers[0].aescbc.keys[0].secrett: unknown field"},
		"key as field": {rule("secrets", "aescbc: {keys: [{name: a, "+key+"}]}"),
			"resources[0].providers[0].aescbc.keys[0].(44 letters): unknown field"},
		"no base64": {rule("secrets", "aescbc: {keys: [{name: a, secret: '!"+key+"'}]}"),
			"resources[0].providers[0].aescbc.keys[0].secret: secrets must be base64 encoded"},
		"length": {rule("secrets", "secretbox: {keys: [{name: a, secret: "+key[:24]+"}]}"),
			"resources[0].providers[0].secretbox.keys[0].secret: secret is not of the expected length, got 18, " +
				"expected one of [32]"},
		"no secret": {rule("secrets", "aesgcm: {keys: [{name: a}]}"),
			"resources[0].providers[0].aesgcm.keys[0].secret: secret is a mandatory field for a key"},
		"a number": {rule("secrets", "aesgcm: {keys: [{name: a, secret: 1234567890123456789}]}"),
			"keys.secret: number, want string"},
		"a string": {rule("secrets", "aesgcm: {keys: "+key+"}"),
			"keys: string, want slice"},
		"two providers": {"- resources: [secrets]\n  providers:\n  - " + keyed("aescbc", "a", "k") + "\n    " +
			keyed("aesgcm", "b", "k") + "\n",
			"resources[0].providers[0]: more than one provider specified"},
		"no provider": {rule("secrets", "{}"),
			"resources[0].providers[0]: provider does not contain any"},
		"masked": {rule("'*.*'", "identity: {}") + rule("secrets", keyed("aescbc", "a", "k")),
			`resource "secrets" is masked by earlier rule "*.*"`},
		"events": {rule("events.events.k8s.io", "identity: {}"),
			`resources[0].resources[0]: "events.events.k8s.io": '*.events.k8s.io' objects are stored`},
		"KMS v1": {rule("secrets", "kms: {apiVersion: v1, name: vault, endpoint: 'unix:///a'}"),
			`resources[0].providers[0].kms: provider "vault" is for KMS v1, and only KMS v2 is supported`},
		"KMS unversioned": {rule("secrets", "identity: {}", "kms: {name: vault, endpoint: 'unix:///a'}"),
			`resources[0].providers[1].kms: provider "vault" is for KMS v1`},
		"KMS over TCP": {rule("secrets", plugged("vault", "http://a")),
			`resources[0].providers[0].kms.endpoint: "http://a": unsupported scheme "http"`},
		"KMS timeout": {rule("secrets", "kms: {apiVersion: v2, name: vault, endpoint: 'unix:///a', timeout: "+key+"}"),
			"kms.timeout: not a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(tc.text, "- ") {
				tc.text = head + tc.text
			}
			path := file(t, tc.text)
			_, err := Load(context.Background(), path)
			require.ErrorContains(t, err, "encryption configuration "+path+": ")
			require.ErrorContains(t, err, tc.want)
			for _, hidden := range []string{key[:16], "kkkk", "1234567890", "Object 'Kind'"} {
				require.NotContains(t, err.Error(), hidden)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	_, err := Load(context.Background(), missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)
}

// JSON, the names of Kubernetes 1.7 and a pipe readable only once load like a YAML file.
func TestLoadReadsWhatTheServerReads(t *testing.T) {
	asJSON := `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[` +
		`{"resources":["secrets"],"providers":[{"aescbc":{"keys":[{"name":"a","secret":"` + secret("a") + `"}]}}]}]}`
	legacy := "apiVersion: v1\nkind: EncryptionConfig\nresources:\n" + rule("secrets", keyed("aescbc", "a", "a"))
	for _, text := range []string{asJSON, legacy} {
		stored := encrypt(t, load(t, file(t, text)), secrets, "/registry/secrets/a/a", "{}")
		require.True(t, strings.HasPrefix(string(stored), "k8s:enc:aescbc:v1:a:"))

		r, w, err := os.Pipe()
		require.NoError(t, err)
		_, err = w.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		piped := load(t, pathOf(r))
		require.NoError(t, r.Close())
		decrypts(t, piped, secrets, "/registry/secrets/a/a", stored, "{}", false)
	}
}

// The rule for a resource is the server's choice: the resource itself, then its group, then all.
// Several rules for one resource are joined.
func TestRulesAreChosenAsTheServerChooses(t *testing.T) {
	by := load(t, configuration(t,
		rule("secrets, widgets.demo.example.com", keyed("aescbc", "exact", "a")),
		rule("secrets", "identity: {}"),
		rule("events", "identity: {}"),
		rule("'*.apps'", keyed("aesgcm", "group", "b")),
		rule("'*.'", keyed("secretbox", "core", "c")),
		rule("'*.*'", keyed("aescbc", "all", "d")),
	))
	for resource, want := range map[string]string{
		"secrets": "exact", "widgets.demo.example.com": "exact", "gadgets.demo.example.com": "all",
		"deployments.apps": "group", "deployments.extensions": "group", "configmaps": "core",
		"ingresses.extensions": "all", "customresourcedefinitions.apiextensions.k8s.io": "all",
		"apiservices.apiregistration.k8s.io": "all",
		"events":                             "", "events.events.k8s.io": "",
	} {
		gr := parse(resource)
		stored := encrypt(t, by, gr, "/registry/x", "{}")
		described, encrypted := describe(stored)
		require.Equal(t, want != "", encrypted, resource)
		require.Equal(t, want, described.key, resource)
		require.Equal(t, want != "", by.Encrypts(gr), resource)
		decrypts(t, by, gr, "/registry/x", stored, "{}", false)
	}
}
