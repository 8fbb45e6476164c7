package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRefusedValid checks that RefusedValid and Refused agree on objects without errors, at random
// schemas.
func TestRefusedValid(t *testing.T) {
	valid, spared := 0, 0
	for seed := range uint64(150) {
		g := generator{rand.New(rand.NewPCG(seed, 17))}
		crd, err := ParseCRD(g.crd())
		require.NoError(t, err)
		v, err := crd.Version("v2")
		if err != nil {
			continue
		}
		for range 20 {
			obj := g.object()
			obj["apiVersion"] = "example.com/v2"
			if _, err := crd.Rewrite(obj); err != nil || len(v.Validate(t.Context(), obj)) > 0 {
				continue
			}
			valid++
			require.Equal(t, v.refused(t.Context(), obj), v.RefusedValid(t.Context(), obj), text(t, obj))
			if compiled, err := v.validators(); err == nil && compiled.asOnCreates {
				spared++
			}
		}
	}
	t.Log(valid, spared)
	require.Greater(t, valid, 200)
	require.Greater(t, spared, 100)
}

func TestAsOnCreates(t *testing.T) {
	for schema, want := range map[string]bool{
		`"properties":{"spec":{"type":"object"}}`:                                                           true,
		`"properties":{"metadata":{"type":"object"}}`:                                                       true,
		`"properties":{"metadata":{"type":"object","description":"of it"}}`:                                 true,
		`"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":9}}}}`: false,
		`"properties":{"metadata":{"type":"object","maxProperties":9}}`:                                     false,
		`"anyOf":[{"required":["spec"]}],"properties":{"spec":{"type":"object"}}`:                           false,
		`"x-kubernetes-validations":[{"rule":"true"}]`:                                                      true,
		`"x-kubernetes-validations":[{"rule":"self == oldSelf"}]`:                                           false,
		`"properties":{"l":{"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0",` +
			`"messageExpression":"string(oldSelf)"}]}}}`: false,
		`"properties":{"a":{"type":"object","additionalProperties":{"type":"integer",` +
			`"x-kubernetes-validations":[{"rule":"self > 0","optionalOldSelf":true}]}}}`: false,
	} {
		v := version(t, parseCRD(t, thingCRD(`{"type":"object",`+schema+`}`)), "v1")
		compiled, err := v.validators()
		require.NoError(t, err)
		require.Equal(t, want, compiled.asOnCreates, schema)
	}
	scaled := strings.Replace(thingCRD(`{"type":"object"}`), `"storage":true`,
		`"storage":true,"subresources":{"scale":{"specReplicasPath":".metadata.annotations.n",`+
			`"statusReplicasPath":".status.n"}}`, 1)
	compiled, err := version(t, parseCRD(t, scaled), "v1").validators()
	require.NoError(t, err)
	require.False(t, compiled.asOnCreates)
}
