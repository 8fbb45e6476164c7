package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/transform"
)

const team = `
apiVersion: v1
kind: ConfigMap
metadata: {name: team, namespace: a, labels: {param: team}}
data: {team: red}
`

// applied runs the transform with manifests.
func applied(t *testing.T, in, out string, strict bool, manifests ...string) (*transform.Report, error) {
	t.Helper()
	set := &Set{}
	for _, m := range manifests {
		require.NoError(t, set.Read([]byte(m)))
	}
	return transform.Run(t.Context(), transform.Options{Command: "policy apply", In: in, Out: out},
		&apply{Set: set, strict: strict})
}

func manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/policies/" + name)
	require.NoError(t, err)
	return string(text)
}

// TestApply checks the counts of changes by policy and by resource, that a second run changes
// nothing, and that two runs write the same bytes.
func TestApply(t *testing.T) {
	dir := t.TempDir()
	out, again, twice := filepath.Join(dir, "out.db"), filepath.Join(dir, "again.db"), filepath.Join(dir, "twice.db")
	report, err := applied(t, "../../testdata/kubectl/all.db.gz", out, true, manifest(t, "mutating.yaml"), team)
	require.NoError(t, err, "%v", report.Problems)
	require.Equal(t, transform.Written, report.Outcome)
	require.Equal(t, transform.Changes{Updated: 7}, report.Changes)
	section := transformtest.Section[Policies](report)
	require.Equal(t, []Objects{{"configmaps", 1, 1, 0}, {"services", 5, 5, 0}, {"deployments.apps", 1, 1, 0}},
		section.Objects)
	require.Equal(t, []int{1, 7}, []int{section.Policies[0].Matched, section.Policies[1].Matched})

	_, err = applied(t, "../../testdata/kubectl/all.db.gz", again, true, manifest(t, "mutating.yaml"), team)
	require.NoError(t, err)
	one, err := os.ReadFile(out)
	require.NoError(t, err)
	other, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, one, other)

	report, err = applied(t, out, twice, false, manifest(t, "mutating.yaml"), team)
	require.NoError(t, err)
	require.Equal(t, transform.Unchanged, report.Outcome)
}

// TestStrict checks that a policy without an object is a warning, and refused with --strict.
func TestStrict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		report, err := applied(t, "../../testdata/kubectl/all.db.gz", filepath.Join(t.TempDir(), "out.db"), strict,
			manifest(t, "mutating.yaml"))
		require.Equal(t, strict, err != nil)
		require.Contains(t, report.Problems[len(report.Problems)-1].Reason,
			"MutatingAdmissionPolicy team-label: no stored object matches")
	}
}

const clash = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: clash}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [services]}]
  matchConditions: [{name: one, expression: "object.metadata.name == 'lb'"}]
  mutations:
    - patchType: JSONPatch
      jsonPatch: {expression: '[JSONPatch{op: "replace", path: "/spec/healthCheckNodePort", value: 30443}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: clash}
spec: {policyName: clash}
`

// TestAddresses checks that a policy cannot give a Service the node port of another one.
func TestAddresses(t *testing.T) {
	report, err := applied(t, "../../testdata/reports/base.db.gz", filepath.Join(t.TempDir(), "out.db"), true, clash)
	require.Error(t, err)
	last := report.Problems[len(report.Problems)-1]
	require.Equal(t, transform.CodeAddress, last.Code)
	require.Contains(t, last.Reason, "node port 30443")
}

// TestReleasedAddress checks that a policy that takes the cluster IP of a Service also deletes its
// IPAddress.
func TestReleasedAddress(t *testing.T) {
	external := strings.Replace(strings.Replace(clash, "'lb'", "'web'", 1), "[JSONPatch{op: \"replace\", "+
		"path: \"/spec/healthCheckNodePort\", value: 30443}]",
		"[JSONPatch{op: \"replace\", path: \"/spec/type\", value: \"ExternalName\"}, "+
			"JSONPatch{op: \"add\", path: \"/spec/externalName\", value: \"a.b\"}]", 1)
	report, err := applied(t, "../../testdata/reports/base.db.gz", filepath.Join(t.TempDir(), "out.db"), true, external)
	require.NoError(t, err, "%v", report.Problems)
	require.Equal(t, transform.Changes{Updated: 1, Deleted: 1}, report.Changes)
}
