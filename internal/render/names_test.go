package render

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuoteNames checks that names are always on one line, and that other strings are unchanged.
func TestQuoteNames(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"Pod","metadata":{"name":"a\nb","annotations":{"a\nb":"x\ny","name":"x\ny"},"labels":{"l":"x\ny"}},
			"spec":{"nodeName":"n\n","containers":[{"name":"\"c\"","args":["x\ny\f"]}]},"status":{"message":"x\ny\n","reason":"z\n"}}`: `
		{"kind":"Pod","metadata":{"name":"\"a\\nb\"","annotations":{"\"a\\nb\"":"x\ny","name":"\"x\\ny\""},"labels":{"l":"\"x\\ny\""}},
			"spec":{"nodeName":"\"n\\n\"","containers":[{"name":"\"\\\"c\\\"\"","args":["x\ny\f"]}]},"status":{"message":"x\ny\n","reason":"\"z\\n\""}}`,
		`{"kind":"Table","columnDefinitions":[{"name":"A\nB","format":"name"},{"name":"C"}],
			"rows":[{"cells":["a\nb","x\ny"],"object":{"metadata":{"name":"a\nb"}}},{"cells":[1,2,3]}]}`: `
		{"kind":"Table","columnDefinitions":[{"name":"\"A\\nB\"","format":"name"},{"name":"C"}],
			"rows":[{"cells":["\"a\\nb\"","x\ny"],"object":{"metadata":{"name":"\"a\\nb\""}}},{"cells":[1,2,3]}]}`,
		`{"properties":{"metadata":{"type":"object",` +
			`"description":"x\ny"}}}`: `{"properties":{"metadata":{"type":"object","description":"x\ny"}}}`,
		`"x\ny"`: `"x\ny"`,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(in), &v))
		got, err := json.Marshal(QuoteNames(v))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}
