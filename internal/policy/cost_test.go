package policy_test

import (
	"fmt"
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

// An expression that would allocate gigabytes is not evaluated, at any position in a policy and
// with any failure policy.
func TestPoliciesTakeLittleMemory(t *testing.T) {
	r := recorded(t)
	bomb := `'` + strings.Repeat("a", 500) + `'` + strings.Repeat(`.replace('a', '`+strings.Repeat("a", 500)+`')`, 3)
	for name, spec := range map[string]string{
		"validation": "  validations: [{expression: \"" + bomb + ".size() > 0\"}]\n",
		"ignored":    "  failurePolicy: Ignore\n  validations: [{expression: \"" + bomb + ".size() > 0\"}]\n",
		"variable": "  variables: [{name: v, expression: \"" + bomb +
			"\"}]\n  validations: [{expression: \"variables.v.size() > 0\"}]\n",
		"condition": "  matchConditions: [{name: c, expression: \"" + bomb +
			".size() > 0\"}]\n  validations: [{expression: 'true'}]\n",
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
		"text": `ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: ` +
			`Object.metadata{annotations: {'a': ` + bomb + `}}}"}`,
		"object": `ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: ` +
			`Object.metadata{annotations: ` + nested + `}}"}`,
		"nested lists": `JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', ` +
			`value: ` + nested + `}]"}`,
	} {
		e := engine(t, r, policyOf(policy.Mutating, "bomb", "apps", "v1", "deployments",
			"  mutations: [{patchType: "+mutation+"}]\n", ""))
		d := objects(t, r, "deployments")["a/d"]
		require.Less(t, allocated(func() {
			a := e.Mutate(t.Context(), d)
			require.Nil(t, a.Content, name)
			require.Equal(t, policy.CodeNotEvaluated, a.Findings[0].Code, "%s: %v", name, reasons(a.Findings))
		}), uint64(300<<20), name)
	}
}

// allocated returns the memory that fn allocates, in bytes.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Policies near a server's cost limit for each object are evaluated on a few objects only, always
// the same ones, and the other objects are counted.
func TestPoliciesHaveABudget(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/vap-slow.db.gz", snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	set := &policy.Set{}
	require.NoError(t, policy.Choice{Stored: true}.Complete(t.Context(), set, r))
	require.Empty(t, set.Choose([]string{"bomb0"}))
	for cost, want := range map[int64]string{
		2_000_000: "the policies cost 3000033 units of CEL for the first 3 objects, the most of it by " +
			"ValidatingAdmissionPolicy bomb0, " +
			"and these were not checked: 4 of configmaps, 1 of events, 1 of namespaces, 10 of widgets.example.com",
		0: "the policies cost 11000121 units of CEL for the first 11 objects, the most of it by " +
			"ValidatingAdmissionPolicy bomb0, " +
			"and these were not checked: 8 of widgets.example.com",
	} {
		e, err := policy.New(t.Context(), set, r, policy.Options{Cost: cost})
		require.NoError(t, err)
		found := &finding.Report{Counts: map[*finding.Code]int{}}
		_, err = policy.Check(t.Context(), e, r, found)
		require.NoError(t, err)
		require.Equal(t, 1, found.Counts[policy.CodeCost])
		require.Equal(t, want, e.Unchecked().Reason)
	}
}

// A thousand trivial policies are checked on some hundred objects: absent parts of a policy cost
// nothing.
func TestTrivialPoliciesAreCheckedOnAllObjects(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/base.db.gz", snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(policyOf(policy.Validating, fmt.Sprint("p", i), "*", "*", "*",
			"  validations: [{expression: \"object.metadata.name != 'x'\"}]\n", bound) + "\n---\n")
	}
	set := &policy.Set{}
	require.NoError(t, set.Read([]byte(text.String())))
	e, err := policy.New(t.Context(), set, r, policy.Options{})
	require.NoError(t, err)
	checked, err := policy.Check(t.Context(), e, r, &finding.Report{Counts: map[*finding.Code]int{}})
	require.NoError(t, err)
	require.Equal(t, 481, checked)
	require.Nil(t, e.Unchecked())
}

// A hundred ordinary policies cost less per object than the budget grows.
func TestOrdinaryPoliciesAreCheckedOnAllObjects(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/base.db.gz", snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	var text strings.Builder
	for i := range 100 {
		expression := []string{
			"object.spec.containers.all(c, c.image.contains('/') || c.image.startsWith('registry.example.com/'))",
			"object.spec.containers.all(c, !has(c.env) || c.env.all(e, !e.name.matches('^(PASSWORD|SECRET).*')))",
			"object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || " +
				"!c.securityContext.privileged)",
			"!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
			"!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
		}[i%5]
		text.WriteString(policyOf(policy.Validating, fmt.Sprint("p", i), "", "v1", "pods",
			"  validations: [{expression: \""+expression+"\"}]\n", bound) + "\n---\n")
	}
	set := &policy.Set{}
	require.NoError(t, set.Read([]byte(text.String())))
	e, err := policy.New(t.Context(), set, r, policy.Options{Cost: 1})
	require.NoError(t, err)
	checked, err := policy.Check(t.Context(), e, r, &finding.Report{Counts: map[*finding.Code]int{}})
	require.NoError(t, err)
	require.Equal(t, 25, checked)
	require.Nil(t, e.Unchecked())
}
