package policy_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/policy"
)

// languageCase is a policy and its effect on one Deployment.
type languageCase struct {
	manifest string
	reasons  []string
	changed  bool
}

// languageCases validate.
func languageCases() map[string]languageCase {
	deny := "  validationActions: [Deny]"
	validate := func(spec, binding string) string {
		return policyOf("ValidatingAdmissionPolicy", "p", "apps", "v1", "deployments", spec, binding)
	}
	return map[string]languageCase{
		"met": {validate(`  validations: [{expression: "object.spec.replicas == 3"}]`, deny), nil, false},
		"expression": {validate(`  validations: [{expression: "object.spec.replicas < 2"}]`, deny),
			[]string{"policy-denied: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed " +
				"expression: object.spec.replicas < 2"}, false},
		"message": {validate(
			`  validations: [{expression: "false", message: "no"}, {expression: "1 > 2", message: "never"}]`, deny),
			[]string{"policy-denied: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no",
				"policy-denied: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: never"}, false},
		"update": {validate(
			`  validations: [{expression: "request.operation == 'UPDATE' && object == oldObject && `+
				`request.userInfo.username == 'etcdshift'"}]`, deny), nil, false},
		"namespaceObject": {validate(`  validations: [{expression: "namespaceObject.metadata.name == 'a'"}]`, deny),
			nil, false},
		"condition": {validate("  matchConditions: [{name: c, expression: 'object.metadata.name != \"d\"'}]\n"+
			`  validations: [{expression: "false"}]`, deny), nil, false},
		"fails": {validate(`  validations: [{expression: "object.spec.none == 1"}]`, deny),
			[]string{"policy-denied: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: expression " +
				"'object.spec.none == 1' resulted in error: no such key: none"}, false},
		"fails, ignored": {validate("  failurePolicy: Ignore\n"+
			`  validations: [{expression: "object.spec.none == 1"}]`, deny),
			[]string{"policy-ignored: ValidatingAdmissionPolicy p with binding p: expression 'object.spec.none == 1' " +
				"resulted in error: no such key: none"}, false},
		"costs too much": {validate(
			`  validations: [{expression: "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,`+
				`7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,`+
				`10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))"}]`, deny),
			[]string{"policy-denied: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: expression"},
			false},
		"object selector": {validate(`  validations: [{expression: "false"}]`,
			deny+"\n  matchResources: {objectSelector: {matchLabels: {x: z}}}"), nil, false},
		"excluded": {validate(`  validations: [{expression: "false"}]`,
			deny+"\n  matchResources: {excludeResourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: "+
				"['*'], resources: ['*']}]}"), nil, false},
		"no param kind": {validate("  paramKind: {apiVersion: none.example.com/v1, kind: None}\n"+
			`  validations: [{expression: "false"}]`, deny),
			[]string{"policy-denied: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: " +
				"failed to find resource referenced by paramKind: 'none.example.com/v1, Kind=None'"}, false},
		"no param": {validate("  paramKind: {apiVersion: v1, kind: ConfigMap}\n"+
			`  validations: [{expression: "false"}]`, deny+"\n  paramRef: {name: none, parameterNotFoundAction: Deny}"),
			[]string{"policy-denied: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to " +
				"configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"}, false},
		"stored param": {validate("  paramKind: {apiVersion: v1, kind: ConfigMap}\n"+
			`  validations: [{expression: "params.metadata.name == 'cm' && params.kind == 'ConfigMap'"}]`,
			deny+"\n  paramRef: {name: cm, parameterNotFoundAction: Deny}"), nil, false},
	}
}

// mutationCases mutate.
func mutationCases() map[string]languageCase {
	mutate := func(spec string) string {
		return policyOf("MutatingAdmissionPolicy", "p", "apps", "v1", "deployments", spec, "")
	}
	label := `
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}}]`
	return map[string]languageCase{
		"labels": {mutate(label), nil, true},
		"change fails": {mutate("  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: " +
			"\"remove\", path: \"/spec/none\"}]'}}]"),
			[]string{"policy-failed: MutatingAdmissionPolicy p: JSON Patch: error in remove for path: '/spec/none'"},
			false},
		"fails, goes on": {mutate("  failurePolicy: Ignore\n  mutations: [{patchType: JSONPatch, jsonPatch: " +
			"{expression: '[JSONPatch{op: \"remove\", path: \"/spec/none\"}]'}}]"),
			[]string{"policy-ignored: MutatingAdmissionPolicy p: JSON Patch: error in remove for path: '/spec/none'"},
			false},
		"test of a patch": {mutate("  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: " +
			"\"test\", path: \"/spec/replicas\", value: 7}, JSONPatch{op: \"remove\", path: \"/spec\"}]'}}]"), nil,
			false},
		"unknown field": {
			mutate(
				`  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: ` +
					`Object.spec{none: 1}}'}}]`), []string{"policy-failed: MutatingAdmissionPolicy p: error applying " +
				"patch: failed to convert patch object to typed object: .spec.none: field not declared in schema"},
			false},
		"atomic list": {
			mutate(
				`  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: ` +
					`Object.spec{selector: Object.spec.selector{matchLabels: {"a": "c"}}}}'}}]`),
			[]string{"policy-failed: MutatingAdmissionPolicy p: error applying patch: invalid ApplyConfiguration: " +
				"may not mutate atomic arrays, maps or structs: .spec.selector"}, false},
		"again": {mutate("  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: " +
			"\"replace\", path: \"/spec/replicas\", value: object.spec.replicas + 1}]'}}]"),
			[]string{"not-idempotent: applied again, they change it again: MutatingAdmissionPolicy p"}, false},
		"renamed": {mutate("  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: " +
			"\"replace\", path: \"/metadata/name\", value: \"x\"}]'}}]"),
			[]string{"policy-failed: MutatingAdmissionPolicy p: they change metadata.name, metadata.namespace or " +
				"metadata.uid"}, false},
	}
}

// TestLanguage checks the answers of an API server for each part of a policy.
func TestLanguage(t *testing.T) {
	r := recorded(t)
	cases := languageCases()
	maps.Copy(cases, mutationCases())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := engine(t, r, tc.manifest)
			d := objects(t, r, "deployments")["a/d"]
			a := e.Validate(t.Context(), d)
			if len(e.Of(policy.Mutating)) > 0 {
				a = e.Mutate(t.Context(), d)
			}
			got := reasons(a.Findings)
			require.Len(t, got, len(tc.reasons), "%q", got)
			for i := range got {
				require.Contains(t, got[i], tc.reasons[i])
			}
			require.Equal(t, tc.changed, a.Content != nil)
		})
	}
}
