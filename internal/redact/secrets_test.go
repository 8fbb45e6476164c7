package redact_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
)

// TestSecretsHide checks that texts derived from an object show none of its secrets: whole, in
// part, in other case, encoded in base64 or decoded.
func TestSecretsHide(t *testing.T) {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	obj := parse(
		t, `{kind: Pod, spec: {containers: [{image: "registry/web:v1", env: [{name: DB_PASSWORD, value: Hunter2-MARK-x7}, {name: MODE, value: "true"},
		{name: QUOTED_PASSWORD, value: 'p"4\x"9!kL"Q2z\7'},
		{name: CFG, value: `+std(`{"password": "other5-MARK-y8"}`)+`}]}]}}`)
	before := text(t, obj)
	secrets := redact.NewShared().Quoted()
	secrets.Add([]byte(corpusKey), obj)
	require.Equal(t, before, text(t, obj))
	secrets.Add([]byte(corpusKey), parse(t, `{apiVersion: v1, kind: Secret, data: {env: `+
		std("GREETING=line9-MARK\nHOST=db.example.com\n"+strings.Repeat("A=b\n", 50))+`}}`))
	for made, hidden := range map[string]string{
		"the line is line9-MARK":                "the line is <redacted 10 bytes>",
		"got Hunter2-MARK-x7, not x":            "got <redacted 15 bytes>, not x",
		"hunter2-mark-x7":                       "<redacted 15 bytes>",
		"it begins with Hunter2-M":              "it begins with <redacted 9 bytes>",
		"as base64: " + std("Hunter2-MARK-x7"):  "as base64: <redacted 20 bytes>",
		`"p\"4\\x\"9!kL\"Q2z\\7": no IP`:        `"<redacted 21 bytes>": no IP`,
		"decoded: other5-MARK-y8":               "decoded: <redacted 14 bytes>",
		"image registry/web:v1 has no digest":   "image registry/web:v1 has no digest",
		"true is not allowed":                   "true is not allowed",
		"also by its shape: postgres://a:b@c/d": "<redacted 37 bytes>",
	} {
		require.Equal(t, hidden, secrets.Hide(made))
	}
}

// TestSecretsEverywhere checks that a secret hidden in one place of an object is hidden in all: in
// texts, packed, in sets of managedFields. Names and other texts stay.
func TestSecretsEverywhere(t *testing.T) {
	const value = "Hunter2-MARK-x7"
	std := base64.StdEncoding.EncodeToString([]byte(value))
	for name, shown := range map[string]string{
		"a note": "use " + value + " here", "base64": std, "twice": base64.StdEncoding.EncodeToString([]byte(std)),
		"gzip": base64.StdEncoding.EncodeToString([]byte(gzipped(t, "use "+value+" here"))),
	} {
		obj := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"greeting": std},
			"metadata": map[string]any{
				"name": "a", "annotations": map[string]any{"note": shown, "other": "use it here"},
				"labels": map[string]any{"for-" + value: "a", "x": value},
				"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:list": map[string]any{`v:"` +
					value + `"`: map[string]any{}}}}},
			}}
		require.True(t, redact.NewShared().Object([]byte(corpusKey), obj), name)
		require.NotContains(t, secrettest.Unpack(text(t, obj), 4), "MARK", name)
		require.Contains(t, text(t, obj), "use it here")
		require.False(t, redact.NewShared().Object([]byte(corpusKey), obj), "a second pass: %s", name)
	}
	for args, use := range map[string]string{
		"[--password=" + value + "]": value, "[mysql, -p" + value + "]": value, "[curl, -u, me:" + value + "]": value,
		"[redis-cli -a " + value + " ping]":           value,
		`['{"password":"Hunter2-\\MARK-x7", "cut o']`: `Hunter2-\MARK-x7`,
	} {
		obj := parse(t, "{spec: {args: "+args+", note: use "+use+" here}}")
		require.True(t, redact.NewShared().Object([]byte(corpusKey), obj))
		require.NotContains(t, text(t, obj), "MARK", args)
	}
}

// TestManagedFields checks that value keys of managedFields show no secret, found by name or known
// from elsewhere in the object. With replaces only the secret.
func TestManagedFields(t *testing.T) {
	object := func(field, key string) map[string]any {
		fields := map[string]any{field: map[string]any{key: map[string]any{}, ".": map[string]any{}}}
		return map[string]any{"apiVersion": "v1", "kind": "Secret",
			"data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte("GREETING=" + packedSecret))},
			"metadata": map[string]any{"name": "a",
				"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:spec": fields}}}}}
	}
	gone := func(redact.Part, any) any { return "gone" }
	for key, edited := range map[string]string{
		`v:{"name":"x","password":"Tr0ub-MARK"}`: `v:{"name":"x","password":"gone"}`,
		`k:{"name":"x","password":"Tr0ub-MARK"}`: `k:{"name":"x","password":"gone"}`,
		`v:{"name":"DB_PASSWORD","value":"Tr0ub-MARK"}`: `v:{"name":"DB_PASSWORD",` +
			`"value":"gone"}`,
		`v:"--password=Tr0ub-MARK"`:                                                    `v:"--password=gone"`,
		`v:{"greeting":"` + packedSecret + `","x":1}`:                                  `v:{"greeting":"gone","x":1}`,
		`v:"` + base64.StdEncoding.EncodeToString([]byte(packedSecret)) + `"`:          `v:"gone"`,
		`k:{"name":"` + base64.StdEncoding.EncodeToString([]byte(packedSecret)) + `"}`: `gone`,
	} {
		hidden := object("f:users", key)
		redact.NewShared().Object([]byte(corpusKey), hidden)
		require.NotContains(t, secrettest.Unpack(text(t, hidden), 3), "MARK", key)
		replaced := object("f:users", key)
		redact.With([]byte(corpusKey), replaced, gone)
		require.Equal(t, object("f:users", edited)["metadata"], replaced["metadata"], key)
	}
	hidden := object("f:passwords", `v:"Tr0ub-MARK"`)
	redact.NewShared().Object([]byte(corpusKey), hidden)
	require.NotContains(t, text(t, hidden), "MARK")
	for key, field := range map[string]string{
		`k:{"name":"a-password"}`: "f:secrets", `k:{"containerPort":80,"protocol":"TCP"}`: "f:ports",
		`v:"example.com/secret"`:   "f:finalizers",
		`k:{"name":"DB_PASSWORD"}`: "f:env", `k:{"uid":"0b0e2c4d-8f4c-4a55-9a3a-0d3c61a2a6aa"}`: "f:ownerReferences",
		"v:": "f:odd", `v:{"a`: "f:odd",
	} {
		shown := object(field, key)
		redact.NewShared().Object([]byte(corpusKey), shown)
		require.Equal(t, object(field, key)["metadata"], shown["metadata"], key)
	}
}

// TestSecretsIn checks that a credential in a text of a Secret is a secret by itself.
func TestSecretsIn(t *testing.T) {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, value := range map[string]string{
		"kubeconfig": "apiVersion: v1\nkind: Config\nusers:\n- name: me\n  user:\n    token: " + packedSecret + "\n",
		"docker":     `{"auths":{"registry.example.com":{"username":"me","password":"` + packedSecret + `"}}}`,
		"auth alone": `{"auths":{"registry.example.com":{"auth":"` + std("me:"+packedSecret) + `"}}}`,
		"properties": "db.user=me\ndb.password=" + packedSecret + "\n",
		"both":       "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\npassword: " + packedSecret + "\n",
		"two":        "token=a-first-one-1\npassword=" + packedSecret + "\n",
		"URL":        "postgres://me:" + packedSecret + "@db/shop",
		"flag":       "exec x --password " + packedSecret,
		"packed":     std(gzipped(t, `{"password":"`+packedSecret+`"}`)),
		"JSON":       `{"application.yaml":"spring:\n  password: ` + packedSecret + `\n"}`,
	} {
		secret := parse(t, `{apiVersion: v1, kind: Secret, data: {x: `+std(value)+`}}`)
		require.Contains(t, found(redact.SecretsIn([]byte(corpusKey), secret, redact.Thorough)), packedSecret, name)
		secret = parse(t, `{apiVersion: v1, kind: Secret, metadata: {annotations: {note: use `+packedSecret+
			`}}, data: {x: `+std(value)+`}}`)
		require.True(t, redact.NewShared().Object([]byte(corpusKey), secret), name)
		require.NotContains(t, text(t, secret), "MARK", name)
		other := map[string]any{"data": map[string]any{"x": "use " + packedSecret},
			"spec": map[string]any{"config": value}}
		require.True(t, redact.NewShared().Object([]byte(corpusKey), other), name)
		require.NotContains(t, text(t, other), "MARK", name)
	}
	many := map[string]any{"data": "use Alike_0001-9"}
	for i := range 100 {
		many[fmt.Sprint(i)] = map[string]any{"password": fmt.Sprintf("Alike_00%02d-9", i)}
	}
	require.True(t, redact.NewShared().Object([]byte(corpusKey), many))
	require.NotContains(t, text(t, many), "Alike")
}

// TestSecretsInApplied checks that text next to a secret in the last-applied annotation is shown.
func TestSecretsInApplied(t *testing.T) {
	s := redact.NewShared().Quoted()
	s.Add([]byte(corpusKey), parse(t, `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration:
  '{"spec":{"image":"registry.example.com/shop/web:v1.2.3","password":"Tr0ub4dor-MARK"}}'}}}`))
	require.Equal(t, "image registry.example.com/shop/web:v1.2.3, <redacted 14 bytes>",
		s.Hide("image registry.example.com/shop/web:v1.2.3, Tr0ub4dor-MARK"))
}

// found returns the texts of secrets.
func found(secrets []redact.Secret) (texts []string) {
	for _, s := range secrets {
		texts = append(texts, s.Text)
	}
	return texts
}
