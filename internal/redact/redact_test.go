package redact_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj, _, err := encoding.DecodeObject(data)
	require.NoError(t, err)
	return obj
}

func TestObject(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"secret": {
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {a: aHVudGVyMg==, b: "", c: "%"}, stringData: {d: ` +
				`hunter2}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {a: <redacted 7 bytes>, b: <redacted 0 bytes>, c: ` +
				`<redacted 1 bytes>}, stringData: {d: <redacted 7 bytes>}}`},
		"secret of wrong types": {`{apiVersion: v1, kind: Secret, data: {a: [hunter2], b: 7}, stringData: hunter2}`,
			`{apiVersion: v1, kind: Secret, data: {a: <redacted>, b: <redacted>}, stringData: <redacted>}`},
		"secret in another object": {
			`{apiVersion: example.com/v1, kind: Bundle, spec: {list: [{apiVersion: v1, kind: Secret, data: {a: ` +
				`aHVudGVyMg==}}]}}`,
			`{apiVersion: example.com/v1, kind: Bundle, spec: {list: [{apiVersion: v1, kind: Secret, data: {a: ` +
				`<redacted 7 bytes>}}]}}`},
		"last applied": {
			`{kind: Pod, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", a: b}}}`,
			`{kind: Pod, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: <redacted 2 ` +
				`bytes>, a: b}}}`},
		"env": {
			`{spec: {env: [{name: DB_PASSWORD, value: hunter2}, {name: PASSWORD_FILE, value: hunter2}, {name: TOKEN, ` +
				`value: /a/b}, {name: GITHUB_TOKEN, valueFrom: {secretKeyRef: {name: a, key: token}}}, {name: A, ` +
				`value: b}]}}`,
			`{spec: {env: [{name: DB_PASSWORD, value: <redacted 7 bytes>}, {name: PASSWORD_FILE, value: hunter2}, ` +
				`{name: TOKEN, value: /a/b}, {name: GITHUB_TOKEN, valueFrom: {secretKeyRef: {name: a, key: token}}}, ` +
				`{name: A, value: b}]}}`},
		"flags": {
			`{spec: {args: [--token=hunter2, --token-file=/a, --admin-password, hunter2, --token=/a/b, ` +
				`--secret-name=x]}}`,
			`{spec: {args: [<redacted 15 bytes>, --token-file=/a, --admin-password, <redacted 7 bytes>, ` +
				`--token=/a/b, --secret-name=x]}}`},
		"config map": {
			`{kind: ConfigMap, apiVersion: v1, data: {password: x, admin.password: q, a: "-----BEGIN RSA PRIVATE ` +
				`KEY-----", b: "-----BEGIN CERTIFICATE-----", tokens: z}}`,
			`{kind: ConfigMap, apiVersion: v1, data: {password: <redacted 1 bytes>, admin.password: <redacted 1 ` +
				`bytes>, a: <redacted 31 bytes>, b: "-----BEGIN CERTIFICATE-----", tokens: <redacted 1 bytes>}}`},
		"helm in a config map": {
			`{kind: ConfigMap, apiVersion: v1, metadata: {labels: {OWNER: TILLER}}, data: {release: H4sI}}`,
			`{kind: ConfigMap, apiVersion: v1, metadata: {labels: {OWNER: TILLER}}, data: {release: <redacted 4 ` +
				`bytes>}}`},
		"fields of custom resources": {
			`{spec: {clientSecret: a, api_key: b, token: c, apiTokenSecretRef: {name: d}, ` +
				`automountServiceAccountToken: true, secretName: e, tokenPath: f, password: ""}}`,
			`{spec: {clientSecret: <redacted 1 bytes>, api_key: <redacted 1 bytes>, token: <redacted 1 bytes>, ` +
				`apiTokenSecretRef: {name: d}, automountServiceAccountToken: true, secretName: e, tokenPath: f, ` +
				`password: ""}}`},
		"texts": {
			`{a: ["x eyJhbGciOiJSUzI1.eyJpc3MiOiJr.AbC y", "postgres://me:pw@host/db", "https://host:80/a@b", ` +
				`"kubeadm join --token abcdef.0123456789abcdef h"]}`,
			`{a: [<redacted 37 bytes>, <redacted 24 bytes>, "https://host:80/a@b", <redacted 46 bytes>]}`},
		"kubeconfig": {
			`{data: {x: "apiVersion: v1\nkind: Config\nclusters: []\nusers: [{user: {token: a}}]\n", w: "kind: ` +
				`Config\nusers: []\n"}}`,
			`{data: {x: <redacted 69 bytes>, w: "kind: Config\nusers: []\n"}}`},
		"manifest of a secret": {
			`{data: {x: "apiVersion: v1\nkind: Secret\ndata: {}\n", w: "{\"kind\":\"Secret\",\"data\":{}}", z: ` +
				`"kind: SecretStore\n"}}`,
			`{data: {x: <redacted 37 bytes>, w: <redacted 27 bytes>, z: "kind: SecretStore\n"}}`},
		"nothing to hide": {
			`{apiVersion: v1, kind: Pod, metadata: {name: secret}, spec: {volumes: [{secret: {secretName: a}}], ` +
				`serviceAccountName: token}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: secret}, spec: {volumes: [{secret: {secretName: a}}], ` +
				`serviceAccountName: token}}`},
	} {
		obj := parse(t, c.before)
		changed := redact.NewShared().Object([]byte("/registry/example.com/things/ns/a"), obj)
		require.Equal(t, parse(t, c.after), obj, name)
		require.Equal(t, c.before != c.after, changed, name)
		require.False(t, redact.NewShared().Object([]byte("/registry/example.com/things/ns/a"), obj),
			"a second pass: %s", name)
	}
}

func TestText(t *testing.T) {
	require.Equal(t, "hello", redact.NewShared().Text("hello"))
	require.Equal(t, "<redacted 24 bytes>", redact.NewShared().Text("postgres://me:pw@host/db"))
	require.Equal(t, "<redacted 24 bytes>", redact.NewShared().Text("<redacted 24 bytes>"))
}

func TestValue(t *testing.T) {
	stored := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("../../encoding/testdata", name))
		require.NoError(t, err)
		return data
	}
	require.True(t, redact.NewShared().Value([]byte("/bootstrap/abc"), []byte("anything")))
	secret := stored("k8s/core.v1.Secret.pb")
	require.True(t, redact.NewShared().Value([]byte("k"), secret))
	require.True(t, redact.NewShared().Value([]byte("k"), secret[:len(secret)-4]), "one that does not decode")
	daemons := stored("k8s/apps.v1.DaemonSet.pb")
	require.False(t, redact.NewShared().Value([]byte("k"), daemons))
	require.True(t, redact.NewShared().Value([]byte("k"), daemons[:len(daemons)-8]), "protobuf that does not decode")
	require.False(t, redact.NewShared().Value([]byte("k"),
		[]byte("k8s:enc:aescbc:v1:key1:-----BEGIN RSA PRIVATE KEY-----")))
	require.True(t, redact.NewShared().Value([]byte("k"), []byte("-----BEGIN RSA PRIVATE KEY-----")))
	require.False(t, redact.NewShared().Value([]byte("compact_rev_key"), []byte("12345")))
}

// FuzzObject checks that no byte of a Secret is left, and that a second pass changes nothing.
func FuzzObject(f *testing.F) {
	for _, name := range []string{"core.v1.Secret.pb", "core.v1.ConfigMap.pb", "core.v1.Pod.pb",
		"core.v1.ConfigMap.json"} {
		data, err := os.ReadFile(filepath.Join("../../encoding/testdata/k8s", name))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","data":{"a":["aHVudGVyMg=="]},"stringData":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := native.Decode(data)
		if err != nil {
			return
		}
		redact.NewShared().Object([]byte("/registry/example.com/things/ns/a"), obj)
		require.False(t, redact.NewShared().Object([]byte("/registry/example.com/things/ns/a"), obj))
		if obj["kind"] != "Secret" || obj["apiVersion"] != "v1" {
			return
		}
		for _, field := range []string{"data", "stringData"} {
			text, err := json.Marshal(obj[field])
			require.NoError(t, err)
			entries, _ := obj[field].(map[string]any)
			for _, entry := range entries {
				require.True(t, strings.HasPrefix(entry.(string), "<redacted"), "%s", text)
			}
		}
	})
}
