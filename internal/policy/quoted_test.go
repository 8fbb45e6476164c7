package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/snapshot"
)

// quoting holds policies with expressions that quote objects, params and failed conversions.
const quoting = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: quotes}
spec:
  failurePolicy: FAIL
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: [nodes, deployments]}]}
  validations:
  - {expression: "false", messageExpression: "'param ' + params.data.password"}
  - {expression: "!has(object.spec.template) || int(object.spec.template.spec.containers[0].env[0].value) == 1"}
  - {expression: "!has(object.spec.template)", messageExpression: "'part ' + object.spec.template.spec.containers[0].env[0].value.substring(0, 10).lowerAscii()"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: quotes}
spec: {policyName: quotes, validationActions: [Deny], paramRef: {name: p, namespace: default, parameterNotFoundAction: Deny}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: p, namespace: default}
data: {password: PARAMS3CR3TMARK}
`

// Results of expressions contain no secret of the object or its params.
func TestQuoted(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/leak.db.gz", snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	r := inspect.NewReader(s, nil)
	for _, policies := range []string{read(t, "../reports/sec-vap.yaml"), strings.ReplaceAll(quoting, "FAIL", "Fail"),
		strings.ReplaceAll(quoting, "FAIL", "Ignore")} {
		var found finding.Report
		_, err = policy.Check(t.Context(), engine(t, r, policies), r, &found)
		require.NoError(t, err)
		text := said(found.Findings)
		require.Contains(t, text, "<redacted ")
		require.NotContains(t, strings.ToUpper(text), "S3CR3T")
		require.NotContains(t, text, "MARK")
	}
}

// Messages of failed mutations contain no secret either.
func TestQuotedMutation(t *testing.T) {
	s, err := snapshot.Open(t.Context(), "../../testdata/reports/leak.db.gz", snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	r := inspect.NewReader(s, nil)
	e := engine(t, r, policyOf(policy.Mutating, "x", "apps", "v1", "deployments", `
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/spec/' + object.spec.template.spec.containers[0].env[0].value + '/x', value: 1}]"}`, ""))
	text := strings.Join(reasons(e.Mutate(t.Context(), objects(t, r, "deployments")["default/web"]).Findings), "\n")
	require.Contains(t, text, "<redacted ")
	require.NotContains(t, text, "MARK")
}

// said returns the reasons of findings.
func said(all []finding.Finding) (text string) {
	for _, f := range all {
		text += f.Reason + "\n"
	}
	return text
}
