package schema

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// TestRuleCheck checks that values meet the rules of random schemas if the library finds no error
// in the whole object, at the same cost.
func TestRuleCheck(t *testing.T) {
	met, broken, unsure := 0, 0, 0
	for seed := range uint64(6_000) {
		g := generator{rand.New(rand.NewPCG(seed, 43))}
		crd, root := g.restrictedCRD(t)
		storage := crd.versions["v2"]
		compiled, err := storage.validators()
		if err != nil || compiled.cel() == nil {
			continue
		}
		structural, err := storage.structural()
		require.NoError(t, err)
		for _, value := range g.acceptable(t, crd, root) {
			var obj map[string]any
			if json.Unmarshal(value, &obj) != nil {
				continue
			}
			errs, left := compiled.cel().Validate(t.Context(), nil, structural, obj, nil,
				celconfig.RuntimeCELCostBudget)
			check := ruleCheck{t.Context(), celconfig.RuntimeCELCostBudget}
			meets := check.meets(compiled.created(), obj)
			if !meets && len(errs) == 0 && compiled.created().doubts() {
				unsure++
				continue
			}
			require.Equal(t, len(errs) == 0, meets, "seed %d: %s: %v", seed, value, errs)
			if len(errs) > 0 {
				broken++
				continue
			}
			met++
			require.Equal(t, left, check.budget, "seed %d: %s", seed, value)
		}
	}
	require.Greater(t, met, 300)
	require.Greater(t, broken, 300)
	require.Less(t, unsure, 200)
}

// doubts reports whether a Validator has to check some values, such as embedded resources.
func (n *ruleNode) doubts() bool {
	if n == nil || n.unsure {
		return n != nil
	}
	for _, below := range n.properties {
		if below.doubts() {
			return true
		}
	}
	return n.items.doubts() || n.additional.doubts()
}
