package redact_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect/redact"
)

// Texts made from an object show none of its secrets: whole, in part, in other case, in base64 and
// out of it.
func TestSecretsHide(t *testing.T) {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	obj := parse(t, `{kind: Pod, spec: {containers: [{image: "registry/web:v1", env: [{name: DB_PASSWORD, value: Hunter2-MARK-x7}, {name: MODE, value: "true"},
		{name: CFG, value: `+std(`{"password": "other5-MARK-y8"}`)+`}]}]}}`)
	before := text(t, obj)
	secrets := redact.Secrets{}
	secrets.Add([]byte(corpusKey), obj)
	require.Equal(t, before, text(t, obj))
	for made, hidden := range map[string]string{
		"got Hunter2-MARK-x7, not x":            "got <redacted 15 bytes>, not x",
		"hunter2-mark-x7":                       "<redacted 15 bytes>",
		"it begins with Hunter2-M":              "it begins with <redacted 9 bytes>",
		"as base64: " + std("Hunter2-MARK-x7"):  "as base64: <redacted 20 bytes>",
		"decoded: other5-MARK-y8":               "decoded: <redacted 14 bytes>",
		"image registry/web:v1 has no digest":   "image registry/web:v1 has no digest",
		"true is not allowed":                   "true is not allowed",
		"also by its shape: postgres://a:b@c/d": "<redacted 37 bytes>",
	} {
		require.Equal(t, hidden, secrets.Hide(made))
	}
}
