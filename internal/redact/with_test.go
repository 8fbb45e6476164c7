package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// crossed replaces all letters of a secret.
func crossed(part redact.Part, value any) any {
	text, isText := value.(string)
	if !isText {
		return int64(0)
	}
	cross := strings.NewReplacer("M", "X", "A", "X", "R", "X", "K", "X", "E", "X", "T", "Y", "U", "Y", "F", "Y",
		"S", "Y", "V", "Y")
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && part == redact.Data {
		return base64.StdEncoding.EncodeToString([]byte(cross.Replace(string(data))))
	}
	if strings.Contains(text, "-----BEGIN") {
		return cross.Replace(strings.ReplaceAll(text, "-----", "====="))
	}
	return cross.Replace(text)
}

// TestWith checks that With replaces exactly the values that Object hides.
func TestWith(t *testing.T) {
	for _, s := range corpus(t, "hidden.txtar") {
		before := text(t, s.obj)
		require.True(t, redact.With([]byte(corpusKey), s.obj, crossed), s.name)
		after := text(t, s.obj)
		assert.False(t, leaks(after), "%s:\n%s", s.name, after)
		if testing.Verbose() {
			t.Logf("%s\n%s", before, after)
		}
	}
	for _, s := range corpus(t, "shown.txtar") {
		before := text(t, s.obj)
		require.False(t, redact.With([]byte(corpusKey), s.obj, crossed), s.name)
		require.Equal(t, before, text(t, s.obj))
	}
}

// TestWithin checks that a text keeps its structure and the words next to a secret.
func TestWithin(t *testing.T) {
	for before, after := range map[string]string{
		`{"a": [1.50, {"password":"MAR", "user": "me"}],"z":1e3}`: `{"a": [1.50, {"password":"XXX", "user": "me"}],` +
			`"z":1e3}`,
		"a: 1 # one\npassword: MAR\nb:\n  - c\n": "a: 1 # one\npassword: XXX\nb:\n  - c\n",
		"x: |\n  {\"token\":\"MAR\"}\ny: me\n":   "x: |\n  {\"token\":\"XXX\"}\ny: me\n",
		"[db]\nuser=MAR\npassword=MAR\n":         "[db]\nuser=MAR\npassword=XXX\n",
	} {
		obj := configMap("config", before)
		require.True(t, redact.With([]byte(corpusKey), obj, crossed), before)
		require.Equal(t, configMap("config", after), obj)
	}
}
