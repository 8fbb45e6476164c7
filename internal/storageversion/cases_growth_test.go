package storageversion

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding/schema"
)

// TestGrowth checks that 80 small objects, which defaults expand to a megabyte each and thus beyond
// a batch, are all written, in the order of their keys.
func TestGrowth(t *testing.T) {
	long := typed(`"text":{"type":"string"},"long":{"type":"string","default":"` + strings.Repeat("x", 1<<20) + `"}`)
	for name, schemas := range map[string]map[string]string{"stored version": {"v1alpha1": long, "v1": openSchema},
		"storage version": {"v1": long}} {
		t.Run(name, func(t *testing.T) {
			require.Greater(t, 80<<20, batchMemory)
			c := newCluster(t, definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`, schemas: schemas})
			var keys []string
			for i := range 80 {
				o := resource{version: "v1alpha1", name: fmt.Sprintf("w%02d", i)}
				c.add(o)
				keys = append(keys, o.key())
			}
			r := c.migrate(Options{})
			require.NoError(t, r.err)
			require.Equal(t, 80, r.resources("widgets.example.com").Rewritten)
			require.True(t, slices.IsSortedFunc(keys,
				func(a, b string) int { return int(r.out[a].mod - r.out[b].mod) }))
			for _, key := range keys {
				require.Greater(t, len(r.out[key].value), 1<<20)
			}
		})
	}
}

const openSchema = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`

// TestGrowthWithoutEnd checks that an object with unlimited defaults is refused and named; if
// allowed, the other object is written.
func TestGrowthWithoutEnd(t *testing.T) {
	bomb := `{"type":"string"}`
	for range 9 {
		bomb = `{"type":"array","default":[` + strings.Repeat(`{},`, 11) +
			`{}],"items":{"type":"object","properties":{"l":` + bomb + `}}}`
	}
	d := definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
		schemas: map[string]string{"v1alpha1": openSchema, "v1": typed(`"text":{"type":"string"},"l":` + bomb)}}
	good, bad := resource{version: "v1alpha1", name: "good", spec: `{"l":[]}`},
		resource{version: "v1alpha1", name: "bad"}
	r := newCluster(t, d).add(good, bad).migrate(Options{}, codeInvalid.Name)
	require.NoError(t, r.err)
	require.Len(t, r.Problems, 2)
	require.Equal(t, bad.key(), r.Problems[0].Key)
	require.Equal(t, codeInvalid.Name, r.Problems[0].Code.Name)
	require.Equal(t, "defaults of v1: "+schema.ErrTooLarge.Error()+": by more than 6291456 bytes", r.Problems[0].Reason)
	require.Equal(t, r.in[bad.key()].value, r.out[bad.key()].value)
	require.Equal(t, good.at("v1").json(t), r.out[good.key()].value)

	// Pure leaves these defaults to the server: the object is written, with a warning that the
	// object was not validated
	r = newCluster(t, d).add(bad).migrate(Options{Mode: schema.Pure})
	require.NoError(t, r.err)
	require.Equal(t, bad.at("v1").json(t), r.out[bad.key()].value)
	require.Contains(t, r.reason(codeViolatesSchema.Name),
		"it was not validated at v1: defaults of v1: the object grows too large")
}

// TestRulesThatCostMuch checks that the rules of a definition have one budget for all objects.
// Objects beyond the budget are written with a warning that they were not validated.
func TestRulesThatCostMuch(t *testing.T) {
	list := `[` + strings.Repeat("1,", 44) + `1]`
	d := definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
		schemas: map[string]string{"v1alpha1": openSchema,
			"v1": `{"type":"object","x-kubernetes-validations":[{"rule":"` + list + `.all(a, ` + list + `.all(b, ` +
				list +
				`.all(c, a + b + c > 0)))"}],` +
				strings.TrimPrefix(typed(`"text":{"type":"string"}`), "{")}}
	c := newCluster(t, d)
	for i := range 30 {
		c = c.add(resource{version: "v1alpha1", name: fmt.Sprintf("a%02d", i)})
	}
	r := c.migrate(Options{})
	require.NoError(t, r.err)
	require.Len(t, r.changed(), 31)
	require.Len(t, r.Problems, 17)
	for _, p := range r.Problems {
		require.Equal(t, codeViolatesSchema.Name, p.Code.Name)
		require.Contains(t, p.Reason, "it was not validated at v1: the schemas and rules of "+
			"CustomResourceDefinitions cost 10769278 units of CEL for the first 13 objects")
	}
}
