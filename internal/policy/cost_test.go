package policy_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/snapshot"
)

const bound = "  validationActions: [Deny]\n"

// An expression that makes gigabytes is not evaluated, wherever it stands in a policy, and whatever
// the policy says of expressions that fail.
func TestPoliciesTakeLittleMemory(t *testing.T) {
	r := recorded(t)
	bomb := `'` + strings.Repeat("a", 500) + `'` + strings.Repeat(`.replace('a', '`+strings.Repeat("a", 500)+`')`, 3)
	for name, spec := range map[string]string{
		"validation": "  validations: [{expression: \"" + bomb + ".size() > 0\"}]\n",
		"ignored":    "  failurePolicy: Ignore\n  validations: [{expression: \"" + bomb + ".size() > 0\"}]\n",
		"variable":   "  variables: [{name: v, expression: \"" + bomb + "\"}]\n  validations: [{expression: \"variables.v.size() > 0\"}]\n",
		"condition":  "  matchConditions: [{name: c, expression: \"" + bomb + ".size() > 0\"}]\n  validations: [{expression: 'true'}]\n",
	} {
		e := engine(t, r, policyOf(policy.Validating, "bomb", "apps", "v1", "deployments", spec, bound))
		took := allocated(func() {
			found := &finding.Report{Counts: map[*finding.Code]int{}}
			_, err := policy.Check(t.Context(), e, r, found)
			require.NoError(t, err)
			require.Positive(t, found.Counts[policy.CodeNotEvaluated], name)
			require.Zero(t, found.Counts[policy.CodeDenied]+found.Counts[policy.CodeIgnored], name)
		})
		require.Less(t, took, uint64(300<<20), name)
	}
	nested := "[[0]]" + strings.Repeat(".map(x, [x, x])", 30)
	for name, mutation := range map[string]string{
		"text":         `ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'a': ` + bomb + `}}}"}`,
		"object":       `ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: ` + nested + `}}"}`,
		"nested lists": `JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: ` + nested + `}]"}`,
	} {
		e := engine(t, r, policyOf(policy.Mutating, "bomb", "apps", "v1", "deployments", "  mutations: [{patchType: "+mutation+"}]\n", ""))
		d := objects(t, r, "deployments")["a/d"]
		require.Less(t, allocated(func() {
			a := e.Mutate(t.Context(), d)
			require.Nil(t, a.Content, name)
			require.Equal(t, policy.CodeNotEvaluated, a.Findings[0].Code, "%s: %v", name, reasons(a.Findings))
		}), uint64(300<<20), name)
	}
}

// allocated is how much memory fn allocates, in bytes.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Policies that cost nearly what a server allows, for each object, end after a few objects. Which
// ones is the same each time, and the others are counted.
func TestPoliciesHaveABudget(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/vap-slow.db.gz", snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	set := &policy.Set{}
	require.NoError(t, policy.Choice{Stored: true}.Complete(t.Context(), set, r))
	require.Empty(t, set.Choose([]string{"bomb0"}))
	e, err := policy.New(t.Context(), set, r, policy.Options{Cost: 2_000_000})
	require.NoError(t, err)
	found := &finding.Report{Counts: map[*finding.Code]int{}}
	checked, err := policy.Check(t.Context(), e, r, found)
	require.NoError(t, err)
	require.Less(t, checked, 4)
	require.Positive(t, checked)
	require.Equal(t, 1, found.Counts[policy.CodeCost])
	f := e.Unchecked()
	require.Contains(t, f.Reason, "of widgets.example.com")
}
