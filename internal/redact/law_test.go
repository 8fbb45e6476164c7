package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// names returns names of secrets in common spellings.
func names() []string {
	stems := []string{"password", "db password", "passwd", "passphrase", "db pass", "token", "access token",
		"auth token", "refresh token",
		"client secret", "shared secret", "webhook secret", "api key", "private key", "secret key", "secret access key",
		"encryption key",
		"signing key", "account key", "bind pw", "admin credentials", "master key", "session key", "jwt secret"}
	var out []string
	for _, stem := range stems {
		words := strings.Fields(stem)
		camel := words[0]
		for _, w := range words[1:] {
			camel += strings.ToUpper(w[:1]) + w[1:]
		}
		out = append(out, strings.Join(words, "_"), strings.Join(words, "-"), strings.Join(words, "."),
			strings.ToUpper(strings.Join(words, "_")), camel,
			strings.ToUpper(camel[:1])+camel[1:], "my_"+strings.Join(words, "_"))
	}
	return out
}

// syntaxes returns texts that give %[1]s the value %[2]s.
func syntaxes() []string {
	return []string{
		`{%[1]q:%[2]q}`, `{"a": [{%[1]q: %[2]q}]}`, `[{"x":1},{%[1]q:%[2]q,"y":2}]`, "{\n\t%[1]q: %[2]q\n}",
		"%[1]s: %[2]s", "a: b\n%[1]s: %[2]s\n", "a:\n  - %[1]s: '%[2]s'\n", "%[1]s: |\n  %[2]s\n", "a: {%[1]s: %[2]s}",
		"# %[1]s: %[2]s\na: b\n",
		"env:\n- name: %[1]s\n  value: %[2]s\n", "%[1]s:\n- %[2]s\n", "a: |\n  b: c\n  %[1]s: %[2]s\n",
		"a: '{%[1]q: %[2]q}'",
		"{{ if .x }}\n%[1]s: %[2]s\n{{ end }}", "{{ if .x }}\n- name: %[1]s\n  value: %[2]s\n{{ end }}",
		"%[1]s=%[2]s", "[s]\na=b\n%[1]s = %[2]s\n", "x=1\n%[1]s=\"%[2]s\"\n", "export %[1]s='%[2]s'",
		";%[1]s=%[2]s;x=y", "a=b&%[1]s=%[2]s&c=d",
		"https://h/p?%[1]s=%[2]s", "x --%[1]s=%[2]s y", "x --%[1]s %[2]s y", `%[1]s => "%[2]s"`, `x["%[1]s"] = "%[2]s"`,
		`%[1]s := "%[2]s"`,
		"<%[1]s>%[2]s</%[1]s>", "<a %[1]s=\"%[2]s\"/>", "<p><name>%[1]s</name><value>%[2]s</value></p>",
		`<add key="%[1]s" value="%[2]s"/>`,
	}
}

// TestNamesInSyntaxes checks that a value with the name of a secret is hidden in each syntax, place
// and enclosure.
func TestNamesInSyntaxes(t *testing.T) {
	const secret = "MARKER-7f3a"
	enclose := []func(string) string{
		func(s string) string { return s },
		func(s string) string { out, _ := json.Marshal(map[string]any{"x": s}); return string(out) },
		func(s string) string { return "x: |\n  " + strings.ReplaceAll(s, "\n", "\n  ") },
		func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s + strings.Repeat(" ", 16))) },
	}
	for _, name := range names() {
		for _, syntax := range syntaxes() {
			for i, enclosed := range enclose {
				text := enclosed(fmt.Sprintf(syntax, name, secret))
				replaced := configMap("config", text)
				require.True(t, redact.With([]byte(corpusKey), replaced, crossed), text)
				require.False(t, leaksIn(replaced), "enclosure %d: %s\n%s", i, text, replaced["data"])
				for _, obj := range []map[string]any{
					configMap("config", text),
					{"metadata": map[string]any{"annotations": map[string]any{"example.com/config": text}}},
					{"spec": map[string]any{"values": []any{text}}},
				} {
					require.True(t, redact.NewShared().Object([]byte(corpusKey), obj), "enclosure %d: %s", i, text)
				}
			}
		}
	}
}

// leaksIn reports whether the entry of a ConfigMap has the marker.
func leaksIn(obj map[string]any) bool {
	entry, _ := obj["data"].(map[string]any)["config"].(string)
	data, _ := base64.StdEncoding.DecodeString(entry)
	return leaks(entry) || leaks(string(data))
}

// TestNamesWithoutSecret checks that the same fields without a secret are shown.
func TestNamesWithoutSecret(t *testing.T) {
	for _, name := range names() {
		for _, syntax := range syntaxes() {
			for _, value := range []string{"", "true", "/etc/x/y", "${VAR}"} {
				if value == "" && strings.HasPrefix(syntax, "x --") { // the text after it is the value
					continue
				}
				text := fmt.Sprintf(syntax, name, value)
				require.False(t, redact.NewShared().Object([]byte(corpusKey), configMap("config", text)), text)
			}
		}
	}
}

// TestBombs checks that texts that would expand or parse slowly are scanned instead, quickly.
func TestBombs(t *testing.T) {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9),
			", "))
	}
	long := strings.Repeat("x", 1<<19)
	texts := map[string]string{
		"aliases":    aliases + "password: MARKER",
		"long alias": "a: &a " + long + "\n" + strings.Repeat("- *a\n", 1<<15),
		"alias list": "[&a " + long + strings.Repeat(", *a", 1<<17) + "]",
	}
	for name, unit := range map[string]string{
		"flow": "[", "flow maps": "{a: ", "lists": "- ", "quotes": `"`, "keys": "token:", "equals": "token=",
		"ampersands": "token=&", "elements": "<token>",
		"open": "<", "flags": "--token ", "dashes": "--", "key": "key:", "spaces": " :", "at": "u:p@", "ats": "@",
		"colons": "a:", "names": "<name>",
		"comments": "#\n", "hash": "# token:", "dollar": "$6$", "machines": "machine a login b ",
		"base64": "LS0tLS1CRUdJTi", "defines": "define('", "pem": "-----BEGIN ",
		"json": `{"token":`, "escaped": `\"token\":\"`, "ey": "eyJaaaaaa.", "akia": "AKIA", "kinds": "kind: Secret\n",
		"curls": "curl -u ", "block": "a: |\n",
		"escapes": "%25", "entities": "&amp;", "hex of hex": "3", "gaps": "abcdefgh\" +\n\t\"", "UTF-16": "a\x00",
		"backslashes": `\\`,
	} {
		texts[name] = strings.Repeat(unit, (1<<20)/len(unit))
		texts["a password, and "+name] = "password: " + texts[name]
	}
	for name, text := range texts {
		begun := time.Now()
		redact.NewShared().Object([]byte(corpusKey), configMap("config", text))
		require.Less(t, time.Since(begun), 20*time.Second, name)
		if took := time.Since(begun); took > time.Second {
			t.Logf("%s took %s", name, took)
		}
	}
	hidden := configMap("config", texts["aliases"])
	require.True(t, redact.NewShared().Object([]byte(corpusKey), hidden))
	require.False(t, leaks(text(t, hidden)))
}
