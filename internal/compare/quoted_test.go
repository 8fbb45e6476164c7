package compare_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/compare"
)

// A copy of a secret in another field of the object is one too.
func TestQuoted(t *testing.T) {
	env := `,"spec":{"env":[{"name":"PASSWORD","value":"Tr0ub4dor"}]}`
	old := side(t, put("/registry/example.com/widgets/ns/a", "example.com/v1 Widget", "1", env))
	edited := side(t, put("/registry/example.com/widgets/ns/a", "example.com/v1 Widget", "1", strings.Replace(env, `"spec":{`, `"spec":{"nodeName":"n1","note":"it is Tr0ub4dor","more":{"x":["Tr0ub4dor"]},`, 1)))
	out, _ := all(t, old, edited, compare.Options{All: true})
	require.NotContains(t, strings.Join(out, "\n"), "Tr0ub4dor")
	require.Contains(t, strings.Join(out, "\n"), "n1", "the rest is shown")
	moved := side(t, put("/registry/example.com/widgets/ns/a", "example.com/v1 Widget", "1", `,"spec":{"note":"it was Tr0ub4dor"}`))
	out, _ = all(t, old, moved, compare.Options{All: true})
	require.NotContains(t, strings.Join(out, "\n"), "Tr0ub4dor")
	out, _ = all(t, old, edited, compare.Options{All: true, ShowSecrets: true})
	require.Contains(t, strings.Join(out, "\n"), "it is Tr0ub4dor")
}
