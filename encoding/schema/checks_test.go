package schema

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func list(element string, n int) string {
	return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
}

func fields(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"f%d":"x"`, i))
	}
	return strings.Join(out, ",")
}

// Objects and schemas of some 100 KB that together would take minutes or gigabytes are not
// validated, and the error says so.
func TestChecksAreBounded(t *testing.T) {
	key := strings.Repeat("k", 200_000)
	deep := `{"minProperties":0}`
	for range 8 {
		deep = `{"allOf":[` + list(deep, 4) + `]}`
	}
	for name, c := range map[string]struct{ schema, content string }{
		"many schemas": {
			`{"l":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"allOf":[` +
				list(`{"minProperties":0}`, 200) + `]}}}`, `"l":[` + list("{}", 20_000) + `]`},
		"schemas in schemas": {
			`{"l":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"not":` + deep +
				`}}}`, `"l":[` + list("{}", 100) + `]`},
		"a long key": {
			`{"m":{"type":"object","additionalProperties":{"type":"object",` +
				`"additionalProperties":{"type":"integer"}}}}`,
			`"m":{"` + key + `":{` + fields(5000) + `}}`},
		"a wide object": {`{"o":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"allOf":[` +
			list(`{"minProperties":0}`, 3_000) + `]}}`,
			`"o":{` + fields(20_000) + `}`},
		"many declared fields": {strings.ReplaceAll(`{"o":{"type":"object","properties":{`+fields(4000)+`}}}`, `"x"`,
			`{"type":"string"}`), `"o":{` + fields(4000) + `}`},
		"a long text": {`{"s":{"type":"string","allOf":[` + list(`{"minLength":0}`, 5_000) + `]}}`,
			`"s":"` + strings.Repeat("a", 1_000_000) + `"`},
		"a long pattern": {`{"s":{"type":"string","pattern":"` + strings.Repeat("(a|b)*", 5000) + `$"}}`,
			`"s":"` + strings.Repeat("a", 200_000) + `c"`},
		"a pattern of many groups": {`{"s":{"type":"string","pattern":"` + strings.Repeat("(a|b)*", 6000) + `$"}}`,
			`"s":"c"`},
		"patterns that repeat": {`{"l":{"type":"array","items":{"type":"string","anyOf":[{"pattern":"` +
			strings.Repeat("a{1000}", 500) +
			`"},{"not":{"pattern":"` + strings.Repeat("b{1000}", 500) + `"}}]}}}`, `"l":["c"]`},
	} {
		t.Run(name, func(t *testing.T) {
			v := thing(t, `{"type":"object","properties":`+c.schema+`}`)
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},`+c.content+`}`)
			var reason, update string
			v.Validate(t.Context(), object(t, `{"apiVersion":"example.com/v1","kind":"Thing"}`)) // compiles
			require.Less(t, allocated(func() {
				reason, update = Unchecked(v.Validate(t.Context(), obj)), Unchecked(v.Refused(t.Context(), obj))
			}), uint64(1<<29))
			require.Contains(t, reason, errChecks.Error())
			require.Equal(t, reason, update)
		})
	}
}

// A large real object stays far below the limit.
func TestChecksOfRealObjects(t *testing.T) {
	crd := readCRD(t, policy)
	v := version(t, crd, "v3")
	props, err := v.props()
	require.NoError(t, err)
	obj := object(t, verdicts()[11].object)
	left := checks(maxChecks)
	require.NoError(t, left.spend(obj, newCosts(props), 0))
	require.Less(t, maxChecks-int(left), maxChecks/1000)
	require.Empty(t, Unchecked(v.Validate(t.Context(), obj)))
}

// CEL rules cost no more than a server allows, and end with the context.
func TestRulesAreBounded(t *testing.T) {
	v := thing(t,
		`{"type":"object","x-kubernetes-validations":[{"rule":"self.l.all(a, self.l.all(b, self.l.all(c, a == b || b `+
			`== c || true)))"}],`+
			`"properties":{"l":{"type":"array","items":{"type":"string"}}}}`)
	obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"l":[`+list(`"x"`, 2000)+
		`]}`)
	require.ErrorContains(t, v.Validate(t.Context(), obj).ToAggregate(), errBudget)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, v.Validate(ctx, obj).ToAggregate(), "context canceled")
}

// The paths of dropped fields are cut: a name of 200 KB would be in 20,000 paths.
func TestDroppedPathsAreBounded(t *testing.T) {
	v := thing(t,
		`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object",`+
			`"properties":{"a":{"type":"string"}}}}}}`)
	fields := map[string]any{}
	for i := range 20_000 {
		fields[fmt.Sprint("f", i)] = "x"
	}
	obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","m":{}}`)
	obj["m"].(map[string]any)[strings.Repeat("k", 200_000)] = fields
	var paths []string
	require.Less(t, allocated(func() { paths = v.Prune(obj) }), uint64(1<<28))
	require.Len(t, paths, 20_000)
	require.Len(t, paths[0], 512)
}
