package render

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneLine: names are on one line always, other strings where a format has lines.
func TestOneLine(t *testing.T) {
	const (
		pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a\nb","annotations":{"a\nb":"x\ny"},"labels":{"l":"x\ny"}},
			"spec":{"containers":[{"name":"\"c\"","args":["x\ny\f"],"livenessProbe":{"exec":{"command":["x\ny"]}}}]},"status":{"message":"x\ny\n","reason":"z\n"}}`
		cr    = `{"apiVersion":"example.com/v1","kind":"Pod","metadata":{"annotations":{"a":"x\ny"}},"data":{"a":"x\ny"},"spec":{"containers":[{"args":["x\ny"]}]}}`
		table = `{"apiVersion":"meta.k8s.io/v1","kind":"Table","columnDefinitions":[{"name":"A\nB","format":"name"},{"name":"C"}],
			"rows":[{"cells":["a\nb","x\ny"],"object":{"metadata":{"name":"a\nb"}}},{"cells":[1,2,3]}]}`
	)
	for _, c := range []struct {
		texts    Texts
		in, want string
	}{
		{AllTexts, pod, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\"a\\nb\"","annotations":{"\"a\\nb\"":"x\ny"},"labels":{"l":"\"x\\ny\""}},
			"spec":{"containers":[{"name":"\"\\\"c\\\"\"","args":["x\ny\f"],"livenessProbe":{"exec":{"command":["x\ny"]}}}]},"status":{"message":"x\ny\n","reason":"z\n"}}`},
		{Described, pod, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\"a\\nb\"","annotations":{"\"a\\nb\"":"x\ny"},"labels":{"l":"\"x\\ny\""}},
			"spec":{"containers":[{"name":"\"\\\"c\\\"\"","args":["x\ny\\x0c"],"livenessProbe":{"exec":{"command":["\"x\\ny\""]}}}]},"status":{"message":"\"x\\ny\"","reason":"z"}}`},
		{NoTexts, pod, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\"a\\nb\"","annotations":{"\"a\\nb\"":"\"x\\ny\""},"labels":{"l":"\"x\\ny\""}},
			"spec":{"containers":[{"name":"\"\\\"c\\\"\"","args":["\"x\\ny\\f\""],"livenessProbe":{"exec":{"command":["\"x\\ny\""]}}}]},"status":{"message":"\"x\\ny\"","reason":"z"}}`},
		{Described, cr, `{"apiVersion":"example.com/v1","kind":"Pod","metadata":{"annotations":{"a":"x\ny"}},"data":{"a":"\"x\\ny\""},
			"spec":{"containers":[{"args":["\"x\\ny\""]}]}}`},
		{NoTexts, table, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","columnDefinitions":[{"name":"\"A\\nB\"","format":"name"},{"name":"C"}],
			"rows":[{"cells":["\"a\\nb\"","x\ny"],"object":{"metadata":{"name":"\"a\\nb\""}}},{"cells":[1,2,3]}]}`},
		{NoTexts, `"x\ny"`, `"\"x\\ny\""`},
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(c.in), &v))
		got, err := json.Marshal(OneLine(v, c.texts))
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(got))
	}
}
