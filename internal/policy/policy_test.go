package policy_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/snapshot"
)

// recorded returns a snapshot of a cluster with objects of each built-in kind.
func recorded(t *testing.T) *inspect.Reader {
	t.Helper()
	s, err := snapshot.Open(t.Context(), "../../testdata/kubectl/all.db.gz", snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	r := inspect.NewReader(s, nil)
	_, err = r.Layouts(t.Context())
	require.NoError(t, err)
	return r
}

func engine(t *testing.T, r *inspect.Reader, manifests ...string) *policy.Engine {
	t.Helper()
	set := &policy.Set{}
	for _, m := range manifests {
		require.NoError(t, set.Read([]byte(m)))
	}
	e, err := policy.New(t.Context(), set, r, policy.Options{})
	require.NoError(t, err)
	return e
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/policies/" + name)
	require.NoError(t, err)
	return string(text)
}

// objects returns the objects of a resource by NAMESPACE/NAME.
func objects(t *testing.T, r *inspect.Reader, name string) map[string]*inspect.Object {
	t.Helper()
	types, err := r.Types(t.Context())
	require.NoError(t, err)
	found, err := types.Resolve(name)
	require.NoError(t, err)
	all := map[string]*inspect.Object{}
	for o, err := range r.Objects(t.Context(), found[0], inspect.Selection{}) {
		require.NoError(t, err)
		all[o.Parsed.Namespace+"/"+o.Parsed.Name] = o
	}
	return all
}

// reasons returns the findings as "CODE: REASON".
func reasons(all []*finding.Finding) (out []string) {
	for _, f := range all {
		out = append(out, f.Code.Name+": "+f.Reason)
	}
	return out
}

// policyOf returns the manifest of a policy for updates of a resource, with a binding.
func policyOf(kind, name, group, version, resource, spec, binding string) string {
	return `
apiVersion: admissionregistration.k8s.io/v1
kind: ` + kind + `
metadata: {name: ` + name + `}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["` + group + `"], apiVersions: ["` + version +
		`"], operations: [UPDATE], resources: ["` + resource + `"]}]
` + spec + `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ` + kind + `Binding
metadata: {name: ` + name + `}
spec:
  policyName: ` + name + `
` + binding
}

const param = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: team, namespace: a, labels: {param: team}}
data: {team: red}
`

func TestMutate(t *testing.T) {
	r := recorded(t)
	e := engine(t, r, read(t, "mutating.yaml"), param)
	d := objects(t, r, "deployments")["a/d"]
	before := runtime.DeepCopyJSON(d.Content)
	a := e.Mutate(t.Context(), d)
	require.Empty(t, reasons(a.Findings))
	require.Equal(t, before, d.Content, "an engine changes no object")
	after := unstructured.Unstructured{Object: a.Content}
	require.Equal(t, "red", after.GetLabels()["example.com/team"])
	added, _, _ := unstructured.NestedSlice(a.Content, "spec", "template", "spec", "initContainers")
	require.Equal(t, []any{map[string]any{
		"name": "mesh-proxy", "image": "mesh/proxy:v1.0.0", "restartPolicy": "Always", "resources": map[string]any{},
	}}, added)
	// everything else is unchanged
	unstructured.RemoveNestedField(a.Content, "spec", "template", "spec", "initContainers")
	unstructured.RemoveNestedField(a.Content, "metadata", "labels")
	require.Equal(t, before, a.Content)
	e.Take(d.Type, &a)
	require.Equal(t, []int{1, 1}, []int{e.Policies[0].Matched, e.Policies[1].Matched})

	// the other namespace has no param, and the action is Allow
	for name, o := range objects(t, r, "configmaps") {
		require.Equal(t, name == "a/cm", e.Mutate(t.Context(), o).Content != nil, name)
	}
}

func TestValidate(t *testing.T) {
	r := recorded(t)
	e := engine(t, r, read(t, "validating.yaml"))
	var found finding.Report
	n, err := policy.Check(t.Context(), e, r, &found)
	require.NoError(t, err)
	require.Equal(t, 14, n)
	denied := found.Of(policy.CodeDenied)
	require.Len(t, denied, 1)
	require.Equal(t, "/registry/deployments/a/d", denied[0].Key)
	require.Equal(t, "ValidatingAdmissionPolicy 'replica-limit' with binding 'replica-limit' denied request: at most "+
		"1 replicas, not 3", denied[0].Reason)
	require.Equal(t, found.Counts[policy.CodeWarned], found.Counts[policy.CodeAudited])
	require.Equal(t, "Validation failed for ValidatingAdmissionPolicy 'required-labels' with binding "+
		"'required-labels': missing labels: app, team",
		found.Of(policy.CodeWarned)[0].Reason)
	require.Empty(t, found.Of(policy.CodeUnmatched))
}

// TestEverything checks that a policy for all resources matches no internal records of API servers,
// and reports kinds without a schema in this build.
func TestEverything(t *testing.T) {
	r := recorded(t)
	e := engine(t, r, policyOf("MutatingAdmissionPolicy", "p", "*", "*", "*", `
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}}]`, ""))
	for _, of := range e.Types(policy.Mutating) {
		require.NotContains(t, []string{"masterleases", "peerserverleases", "ranges"}, of.Name())
	}
	for _, o := range objects(t, r, "apiservices") {
		require.Equal(t, []string{"policy-not-evaluated: MutatingAdmissionPolicy p: an ApplyConfiguration is merged " +
			"by a schema, and this build has none of the kind"},
			reasons(e.Mutate(t.Context(), o).Findings))
	}
}

// TestNoAPIVersion checks that an object without apiVersion, as after a flipped bit, is a finding.
func TestNoAPIVersion(t *testing.T) {
	r := recorded(t)
	e := engine(t, r, policyOf("ValidatingAdmissionPolicy", "p", "*", "*", "*",
		"  validations: [{expression: 'true'}]\n", "  validationActions: [Deny]\n"))
	for _, o := range objects(t, r, "configmaps") {
		o.AsServed()
		for _, lost := range []any{nil, "", 7} {
			o.Content["apiVersion"] = lost
			require.Equal(t, []string{"undecodable: it has no apiVersion"},
				reasons(e.Validate(t.Context(), o).Findings))
		}
	}
}

// TestPlain checks that a policy has the same result on plain content (maps) and on Go types. A
// match condition, here always true, causes the evaluation on Go types.
func TestPlain(t *testing.T) {
	r := recorded(t)
	types, err := r.Types(t.Context())
	require.NoError(t, err)
	var all []*inspect.Object
	for _, of := range types.All() {
		all = slices.AppendSeq(all, maps.Values(objects(t, r, of.Name())))
	}
	changed := make([]bool, 7)
	for i, expression := range []string{
		`Object{metadata: Object.metadata{labels: {"a": string(object == oldObject) + object.kind}}}`,
		`Object{metadata: Object.metadata{annotations: {"a": string(has(object.spec)) + string(has(object.status)) + ` +
			`string(size(object))}}}`,
		`Object{spec: Object.spec{replicas: object.spec.replicas}, metadata: Object.metadata{labels: {"app": ` +
			`object.spec.template.spec.containers[0].image}}}`,
		`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
			Object.spec.template.spec.containers{name: "x", resources: Object.spec.template.spec.containers.resources{limits: {"cpu": "1000m"}}}]}}}}`,
		`Object{data: {"k": object.metadata.name}}`,
		`Object{metadata: Object.metadata{generateName: object.metadata.generateName + "x"}}`,
		`Object{none: "x"}`,
	} {
		mutation := "\n  mutations:\n  - patchType: ApplyConfiguration\n    applyConfiguration:\n      expression: " +
			"|\n        " +
			strings.ReplaceAll(expression, "\n\t\t\t", "\n          ") + "\n"
		for _, reinvocation := range []string{"Never", "IfNeeded"} {
			spec := "  reinvocationPolicy: " + reinvocation + mutation
			plain := engine(t, r, policyOf("MutatingAdmissionPolicy", "p", "*", "*", "*", spec, ""))
			typed := engine(t, r, policyOf("MutatingAdmissionPolicy", "p", "*", "*", "*",
				"  matchConditions: [{name: c, expression: 'true'}]\n"+spec, ""))
			for _, o := range all {
				a, b := plain.Mutate(t.Context(), o), typed.Mutate(t.Context(), o)
				require.Equal(t, b.Content, a.Content, "%s: %s", o.Key, expression)
				require.Equal(t, reasons(b.Findings), reasons(a.Findings), "%s: %s", o.Key, expression)
				require.Equal(t, policy.Names(b.Met), policy.Names(a.Met))
				changed[i] = changed[i] || a.Content != nil
			}
		}
	}
	require.Equal(t, []bool{true, true, true, true, true, false, true}, changed)
}

// TestLoad checks that files without a policy of the kind are an error.
func TestLoad(t *testing.T) {
	choice := policy.Choice{Files: []string{"../../testdata/policies/mutating.yaml"}}
	_, err := choice.Load(t.Context(), policy.Validating)
	require.EqualError(t, err, "no policy is given: there is no ValidatingAdmissionPolicy in "+
		"../../testdata/policies/mutating.yaml")
	_, err = choice.Load(t.Context(), policy.Mutating)
	require.NoError(t, err)
	choice.Stored = true
	_, err = choice.Load(t.Context(), policy.Validating)
	require.NoError(t, err)
}

// An object with another kind than its key is a finding, not a panic.
func TestOtherKindInFolder(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/crash-mixed-nocrd.db.gz", snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	set := &policy.Set{}
	require.NoError(t, policy.Choice{Stored: true}.Complete(t.Context(), set, r))
	for _, kind := range []string{policy.Validating, policy.Mutating} {
		if kind == policy.Mutating {
			mutation := `  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}]`
			require.NoError(t, set.Read([]byte(policyOf(kind, "m", "*", "*", "*", mutation, ""))))
		}
		e, err := policy.New(t.Context(), set, r, policy.Options{})
		require.NoError(t, err)
		evaluate := e.Validate
		if kind == policy.Mutating {
			evaluate = e.Mutate
		}
		undecodable := 0
		for _, at := range e.Types(kind) {
			for o, err := range r.Objects(t.Context(), at, inspect.Selection{}) {
				require.NoError(t, err)
				for _, f := range evaluate(t.Context(), o).Findings {
					if f.Code == finding.Undecodable {
						undecodable++
						require.Equal(t, "a v1 ConfigMap, under the key of one of widgets.h.example", f.Reason)
					}
				}
			}
		}
		require.Equal(t, 1, undecodable, kind)
	}
}

// No message contains a secret of the object, even if an expression quotes or cuts it.
func TestMessagesHideSecrets(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/leak.db.gz", snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	r := inspect.NewReader(s, nil)
	_, err = r.Layouts(t.Context())
	require.NoError(t, err)
	quoted := "object.spec.template.spec.containers[0].env[0].value"
	for _, expression := range []string{quoted, quoted + ".substring(0, 9)", quoted + ".lowerAscii()",
		"string(int(" + quoted + "))"} {
		e := engine(t, r, policyOf(policy.Validating, "p", "apps", "*", "deployments",
			`  validations: [{expression: "false", messageExpression: "'got ' + `+
				expression+`"}, {expression: "`+expression+` == 'x'"}]`, "  validationActions: [Deny]"))
		found := reasons(e.Validate(t.Context(), objects(t, r, "deployments")["default/web"]).Findings)
		require.NotEmpty(t, found, expression)
		text := strings.Join(found, " ")
		require.NotContains(t, text, "S3CR3T", expression)
		require.NotContains(t, text, "s3cr3t", expression)
	}
}
