package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestSecrets checks that no Secret value is in a page or its document, valid or broken, changed or
// new.
func TestSecrets(t *testing.T) {
	const key, value = "/registry/secrets/default/", "aHVudGVyMmh1bnRlcjI="
	secret := func(name string) string {
		return fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":"default"},"data":{"password":%q}}`,
			name, value)
	}
	script := fmt.Sprintf("put /registry/namespaces/default %q\n",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`)
	old := etcdtest.Build(t, script)
	for name, text := range map[string]string{
		"sound": secret("sound"), "named": secret("otherwise"), "cut": secret("cut")[:120],
		"typed": strings.Replace(secret("typed"), "Secret", value, 1)[:100],
		"wrong": strings.Replace(secret("wrong"), `"data":{`, `"metadata":7,"data":{`, 1), "raw": "password: " + value,
	} {
		script += fmt.Sprintf("put %q %q\nput %q %q\n", key+name, text, key+name, text+" ")
	}
	p := read(t, opened(t, etcdtest.Build(t, script)), Options{Before: opened(t, old)})
	document, err := json.Marshal(p.Report)
	require.NoError(t, err)
	for _, text := range []string{printed(t, p.HTML), string(document)} {
		require.Contains(t, text, "sound")
		require.Contains(t, text, "undecodable")
		require.NotContains(t, text, value[:12])
		require.NotContains(t, text, "hunter2")
	}
}
