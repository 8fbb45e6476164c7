package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// TestPartsOfSecrets checks that every value of a Secret is hidden in other places too, regardless
// of its name, except words, hosts, names and certificates.
func TestPartsOfSecrets(t *testing.T) {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const certificate = "-----BEGIN CERTIFICATE-----\nMIIBMARKpublic0123\n-----END CERTIFICATE-----\n"
	for name, value := range map[string]string{
		".env":   "# settings\nGREETING=" + packedSecret + "\nHOST=db.example.com\n",
		"quoted": "export GREETING=\"" + packedSecret + "\"\n",
		"ini":    "[default]\ngreeting = " + packedSecret + "\nregion = eu-central-1\n",
		"netrc":  "machine db.example.com\n  login me\n  account " + packedSecret + "\n",
		"line":   "one-token-9A-x\n" + packedSecret + "\n",
		"JSON": `{"installed": {"greeting": "` + packedSecret +
			`", "namespace": "kube-system", "hosts": ["db.example.com"]}}`,
		"YAML":         "greetings:\n- of: me\n  is: " + packedSecret + "\nnamespace: kube-system\n",
		"comment":      "a: b\n# greeting: " + packedSecret + "\n",
		"YAML in JSON": `{"config": "a: b\ngreeting: ` + packedSecret + `\n"}`,
		"htpasswd":     "admin:" + packedSecret + "\nother:$apr1$abcdefgh$0123456789abcdefghijkl\n",
		"basic":        "me:" + packedSecret,
		"basic base64": std("me:" + packedSecret),
		"XML":          "<settings><greeting>" + packedSecret + "</greeting></settings>",
		"beside PEM":   certificate + "GREETING=" + packedSecret + "\n",
	} {
		for _, secret := range []map[string]any{
			parse(t, `{apiVersion: v1, kind: Secret, data: {x: `+std(value)+`}}`),
			{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"x": value}},
		} {
			require.Contains(t, found(redact.SecretsIn([]byte(corpusKey), secret, redact.Thorough)), packedSecret, name)
		}
		secret := parse(t, `{apiVersion: v1, kind: Secret, metadata: {annotations: {note: use `+packedSecret+
			`}}, data: {x: `+std(value)+`}}`)
		require.True(t, redact.NewShared().Object([]byte(corpusKey), secret), name)
		require.NotContains(t, text(t, secret), "MARK", name)
	}

	const shown = certificate + `
apiVersion: v1
host: db.example.com
url: https://api.example.com:8443/v1/users
image: registry.example.com:5000/shop/web:v1.2.3-20240101@sha256:0123456789abcdef
namespace: payments-production-2
class: com.mysql.cj.jdbc.Driver2
schedule: "*/5 0-12 * * *"
policy: RequiredDuringSchedulingIgnoredDuringExecution
since: 2024-01-01T12:34:56Z
cidr: 10.0.0.0/16
address: fd00:10:96::1/112
mail: me2@example.com
type: application/vnd.oci.image.v1+json
text: This is version 2 of the settings, for us
template: '{{ .Values.abc123 }}'
path: /etc/ssl/certs/abc-2.pem
variable: KUBERNETES_SERVICE_HOST
`
	shared := redact.NewShared()
	for _, text := range []string{shown, strings.ReplaceAll(shown, ": ", "="),
		strings.ReplaceAll(shown, "\n", "\n  ")} {
		for _, secret := range redact.SecretsIn([]byte(corpusKey),
			parse(t, `{apiVersion: v1, kind: Secret, data: {x: `+std(text)+`}}`), redact.Thorough) {
			shared.Add(secret)
		}
	}
	shared.Settle(nil)
	for line := range strings.Lines(shown) {
		require.False(t, shared.Holds(line), line)
		_, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		require.False(t, shared.Replace(map[string]any{"x": std(value), "y": value},
			func(redact.Part, any) any { return "" }), line)
	}
}
