package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bomb is an expression with a result of 200 MB of text on a server.
const bomb = `(self.s.replace('a', '` +
	`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').replace('a', self.s)`

// A rule with a large memory need is rejected before any allocation, in every position.
func TestRulesTakeLittleMemory(t *testing.T) {
	rule := func(text string) string { return `"x-kubernetes-validations":[` + text + `]` }
	fields := func(more string) string {
		return `{"type":"object","properties":{"s":{"type":"string"}}` + more + `}`
	}
	plain, old := rule(`{"rule":"`+bomb+`).size() > 0"}`),
		rule(`{"rule":"`+strings.ReplaceAll(bomb, "self.", "oldSelf.")+`).size() > 0"}`)
	for name, schema := range map[string]string{
		"rule":    `"o":` + fields(`,`+plain),
		"message": `"o":` + fields(`,`+rule(`{"rule":"self.s == ''","messageExpression":"`+bomb+`)"}`)),
		"allOf":   `"o":` + fields(`,"allOf":[{`+plain+`}]`),
		"below allOf": `"p":{"type":"object","properties":{"o":` + fields(``) + `},"allOf":[{"properties":{"o":{` +
			plain + `}}}]}`,
		"old": `"o":` + fields(`,`+old),
		"old or none": `"o":` + fields(`,`+rule(`{"optionalOldSelf":true,"rule":"`+bomb+
			`).size() > 0 || oldSelf.hasValue()"}`)),
		"embedded": `"o":` + fields(`,"x-kubernetes-embedded-resource":true,`+plain),
		"map": `"m":{"type":"object","additionalProperties":{"type":"string",` + strings.ReplaceAll(plain,
			"self.s", "self") + `}}`,
		"list": `"l":{"type":"array","items":` + fields(`,`+plain) + `}`,
		"old in a list": `"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["s"],` +
			`"items":` + fields(`,"required":["s"],`+old) + `}`,
		"with ||": `"o":` + fields(`,`+rule(`{"rule":"`+bomb+`).size() > 0 || true"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			v := thing(t, `{"type":"object",`+rule(`{"rule":"true"}`)+`,"properties":{`+schema+`}}`)
			text := strings.Repeat("a", 2000)
			o := `{"s":"` + text + `","apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"o":`+o+`,"l":[`+o+
				`],"m":{"s":"`+text+`"},"p":{"o":`+o+`}}`)
			v.Prune(obj)
			var created, updated string
			require.Less(t, allocated(func() {
				created, updated = Unchecked(v.Validate(t.Context(), obj)), Unchecked(v.Refused(t.Context(), obj))
			}), uint64(150<<20))
			if name == "message" { // the rule then has another expression
				require.Len(t, v.Validate(t.Context(), obj), 1)
				return
			}
			require.Contains(t, updated, "makes a value of more than 8 MiB")
			require.Equal(t, name == "old" || name == "old in a list", created == "") // a create has no old object
		})
	}
}
