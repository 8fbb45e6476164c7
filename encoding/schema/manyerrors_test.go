package schema

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An object with very many errors is not validated to the end, regardless of their positions; an
// object with some errors is. The library compares each error with all others.
func TestManyErrors(t *testing.T) {
	number := `{"type":"integer","maximum":0}`
	for name, c := range map[string]struct{ schema, content string }{
		"a list": {`"l":{"type":"array","items":` + number + `}`, `"l":[` + list("1", 300_000) + `]`},
		"lists in lists": {`"l":{"type":"array","items":{"type":"array","items":` + number + `}}`,
			`"l":[` + list("["+list("1", 500)+"]", 500) + `]`},
		"a map": {`"m":{"type":"object","additionalProperties":` + number + `}`,
			`"m":{` + strings.ReplaceAll(fields(100_000), `"x"`, "1") + `}`},
		"in allOf": {
			`"l":{"type":"array","items":{"type":"integer"},"allOf":[{"items":{"maximum":0}}]}`,
			`"l":[` + list("1", 200_000) + `]`},
		"objects": {
			`"l":{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}}`,
			`"l":[` + list("{}", 300_000) + `]`},
		"required fields": {`"o":{"type":"object","required":[` + names(5000) + `]}`, `"o":{}`},
		"required fields of few objects": {`"l":{"type":"array","items":{"type":"object","required":[` + names(900) +
			`]}}`, `"l":[` + list("{}", 20) + `]`},
		"many schemas of few values": {`"l":{"type":"array","items":{"type":"string","allOf":[` +
			list(`{"pattern":"a"},{"maxLength":1},{"enum":["c"]}`, 300) + `]}}`,
			`"l":[` + list(`"xx"`, 200) + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			v := thing(t, `{"type":"object","properties":{`+c.schema+`}}`)
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},`+c.content+`}`)
			// The library compares each error with all others and allocates gigabytes for the
			// messages.
			require.Less(t, allocated(func() {
				for _, reason := range []string{Unchecked(v.Validate(t.Context(), obj)),
					Unchecked(v.Refused(t.Context(), obj))} {
					require.Contains(t, reason, "more than 1000 of its fields are not as the schema says")
				}
			}), uint64(1<<28))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.Equal(t, "context canceled", Unchecked(v.Validate(ctx, obj)))
		})
	}
	v := thing(t, `{"type":"object","properties":{"l":{"type":"array","items":`+number+`}}}`)
	obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"l":[`+list("0", 5000)+`,`+
		list("1", 900)+`]}`)
	require.Len(t, v.Validate(t.Context(), obj), 900)

	// A failed alternative of anyOf is not an error of the object.
	alternatives := `{"pattern":"x"},` + list(`{"pattern":"a"}`, 200)
	v = thing(t, `{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","anyOf":[`+alternatives+
		`],"not":{"allOf":[{"pattern":"a"}]}}}}}`)
	obj = object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},"l":[`+list(`"x"`, 20)+`]}`)
	require.Empty(t, v.Validate(t.Context(), obj))
}

// names returns n field names.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"f%d",`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}
