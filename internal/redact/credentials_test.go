package redact_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// TestCredentials checks that an object among Secrets is redacted even with a damaged kind, and
// that OpenShift's OAuth clients and tokens are credentials too.
func TestCredentials(t *testing.T) {
	const secret = "/registry/secrets/default/a"
	for key, values := range map[string][]string{
		secret: {
			`{apiVersion: v1, kind: Secreu, metadata: {name: a, annotations: {x: hunter2}}, data: {p: hunter2}, ` +
				`stringData: {q: hunter2}, type: Opaque}`,
			`{apiVersion: v9, kind: Secret, metadata: {name: a}, data: {p: hunter2}, daua: {p: hunter2}}`,
			`{metadata: {name: a}, data: {p: hunter2}}`,
			`{apiVersion: v1, kind: secret, metadata: {name: a}, data: hunter2}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {p: hunter2}, binaryData: {q: hunter2}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {p: [hunter2]}, type: {x: hunter2}}`,
		},
		"/openshift.io/oauth/clients/c": {
			`{apiVersion: oauth.openshift.io/v1, kind: OAuthClient, metadata: {name: c}, secret: hunter2, ` +
				`additionalSecrets: [hunter2]}`},
		"/openshift.io/oauth/accesstokens/c": {
			`{apiVersion: oauth.openshift.io/v1, kind: OAuthAccessToken, metadata: {name: c}, authorizeToken: ` +
				`hunter2, refreshToken: hunter2}`},
	} {
		for _, value := range values {
			obj := parse(t, value)
			require.True(t, redact.NewShared().Object([]byte(key), obj), value)
			text, err := json.Marshal(obj)
			require.NoError(t, err)
			require.NotContains(t, string(text), "hunter2", value)
			require.Contains(t, string(text), `"name":"`, "what it is called stays")
			require.False(t, redact.NewShared().Object([]byte(key), obj), "a second pass: %s", value)
		}
	}
	for _, raw := range []string{"hunter2", "k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x40hunter2", "{", ""} {
		require.True(t, redact.NewShared().Value([]byte(secret), []byte(raw)), "%q", raw)
	}
	require.False(t, redact.NewShared().Value([]byte(secret), []byte("k8s:enc:aescbc:v1:key1:xxxxxxxx")),
		"as it is stored")
}

func TestShapes(t *testing.T) {
	const key = "/registry/configmaps/ns/a"
	for value, hidden := range map[string]bool{
		`{apiVersion: v1, kind: ConfigMap, data: {DB_PASS: hunter2}}`: true,
		// -----BEGIN RSA PRIVATE KEY-----
		`{apiVersion: v1, kind: ConfigMap, binaryData: {k: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ==}}`: true,
		`{apiVersion: v1, kind: ConfigMap, data: {t: "K10ab01cd23ef45ab01cd23ef45::server:hunter2"}}`:      true,
		`{apiVersion: v1, kind: ConfigMap, data: {f: "user=x\nDB_PASSWORD=hunter2\n"}}`:                    true,
		`{apiVersion: v1, kind: ConfigMap, data: {f: "a:\n  password: hunter2\n"}}`:                        true,
		`{apiVersion: v1, kind: ConfigMap, data: {f: "Authorization: Bearer hunter2"}}`:                    true,
		`{spec: {env: [{name: MYSQL_PWD, value: $P4ss}, {name: X, value: y}]}}`:                            true,
		`{spec: {token: {a: hunter2}, volumes: []}}`:                                                       true,
		`{spec: {tokens: [hunter2]}}`:                                                  true,
		`{apiVersion: v1, kind: SecretList, items: [{data: {a: aHVudGVyMg==}}]}`:       true,
		`{spec: {command: ["sh", "-c", "curl -H 'Authorization: Bearer hunter2' x"]}}`: true,
		`{spec: {command: ["sh", "-c", "x --password hunter2"]}}`:                      true,
		`{spec: {command: ["sh", "-c", "x --token-file /a/b --secret-name c"], volumes: [{projected: {sources: ` +
			`[{serviceAccountToken: {path: token}}]}}]}}`: false,
		`{spec: {env: [{name: PGPASSWORD, value: ` +
			`/P4ss}]}}`: true,
		`{spec: {env: [{name: PGPASSWORD, value: $(OTHER)}, {name: TOKEN, value: ` +
			`/var/run/secrets/token}]}}`: false,
		`{apiVersion: v1, kind: ConfigMap, data: {f: "passwordFile: /etc/x\nsecret_name: y\n", g: "password:\n  ` +
			`from: x"}}`: false,
	} {
		require.Equal(t, hidden, redact.NewShared().Object([]byte(key), parse(t, value)), value)
	}
}

// TestTokenPrefixes checks that text after a token prefix is hidden even if truncated, and that
// placeholders and words are shown.
func TestTokenPrefixes(t *testing.T) {
	for value, hidden := range map[string]bool{
		"AGE-SECRET-KEY-1QQ": true, "ghp_hunter2": true, "AKIAQ7HUNTER2": true, "x=glpat-hunter2;": true,
		"xoxb-1-ab":      true,
		"github_pat_11A": true, "sk-ant-api03-x": true, "hvs.CAES": true, "npm_x7hunter": true, "AIzaSyAx7": true,
		"eyJhbGciOi.eyJzdWI": true,
		"ghp_":               false, "ghp_xxxx": false, "AKIAIOSFODNN7EXAMPLE": false, "npm_config_cache": false,
		"pypi-mirror": false, "sk-proj-team": false,
		"maghp_hunter2": false, "hvs.Group": true, "glpat-doc: see docs": true, "ghp_abcdefgh": true,
		"npm_lifecycle": false, "xapp-onboarder": false, "sk_live_demo_page": false, "sk_live_Demo_page": false,
		"ghp_abcdefghijklmnop": true, "glpat-aB": true,
	} {
		require.Equal(t, hidden, redact.NewShared().Text(value) != value, value)
	}
}
