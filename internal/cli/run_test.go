package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

// planStep is a command line, also used as a step of a plan.
type planStep struct {
	command string
	args    []string
	flags   map[string]any
	allow   []string
}

// planSteps returns steps that the recorded Calico cluster accepts in any order.
func planSteps() []planStep {
	steps := []planStep{
		{command: "migrate storage-versions"},
		{command: "migrate storage-versions", flags: map[string]any{"crd": []string{"gadgets.example.com"},
			"to": "v1alpha1", "managed-fields": "all"}},
		{command: "rename-node", args: []string{"node-a=worker-a"}},
		{command: "delete", args: []string{"configmap", "owner-cm"},
			flags: map[string]any{"namespace": "team-a", "cascade": "orphan"}},
		{command: "delete", args: []string{"namespaces", "team-b", "team-a", "kube-system", "default"},
			flags: map[string]any{"keep": true}},
		{command: "patch", args: []string{"gadgets"}, flags: map[string]any{
			"all": true, "all-namespaces": true, "type": "merge",
			"patch": `{"spec": {"a": 7}, "metadata": {"labels": {"changed": "yes"}}}`,
		}},
		{command: "patch", args: []string{"node/node-a"}, flags: map[string]any{"type": "json",
			"patch": `[{"op": "add", "path": "/spec/unschedulable", "value": true}]`}},
		{command: "policy apply", flags: map[string]any{"filename": []string{"policy.yaml"}}},
		{command: "compact"},
		{command: "sanitize", flags: map[string]any{"keep-names": true, "key": "key"}},
		{command: "migrate calico-v3", allow: []string{"crd-missing"}},
		{command: "migrate calico-v3", flags: map[string]any{"keep-v1": true, "set-api-group": false}},
	}
	has := map[string]bool{}
	for _, spec := range migrations.All() {
		has[spec.Command()] = true
	}
	return slices.DeleteFunc(steps, func(s planStep) bool { return !has[s.command] })
}

// teamPolicy labels ConfigMaps and Nodes.
const teamPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps, nodes], operations: [UPDATE]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": "a"}}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: team}
spec: {policyName: team}
`

// words returns the words of the command line.
func (s planStep) words(in, out string) []string {
	words := append(strings.Fields(s.command), in, out)
	words = append(words, s.args...)
	for name, value := range s.flags {
		if list, is := value.([]string); is {
			for _, one := range list {
				words = append(words, "--"+name+"="+one)
			}
			continue
		}
		words = append(words, fmt.Sprintf("--%s=%v", name, value))
	}
	for _, code := range s.allow {
		words = append(words, "--allow", code)
	}
	return words
}

func writePlan(t *testing.T, path string, steps ...planStep) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(planText(t, steps...)), 0o600))
}

// planText returns a plan as JSON, a subset of YAML.
func planText(t *testing.T, steps ...planStep) string {
	t.Helper()
	var list []map[string]any
	for _, s := range steps {
		step := map[string]any{"command": s.command}
		if s.args != nil {
			step["args"] = s.args
		}
		if s.flags != nil {
			step["flags"] = s.flags
		}
		if s.allow != nil {
			step["allow"] = s.allow
		}
		list = append(list, step)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "etcdshift/v1", "kind": "Plan", "steps": list})
	require.NoError(t, err)
	return string(text)
}

// TestRunIsItsSteps: a plan writes the same objects as its commands in sequence, and the same bytes
// when repeated. A refusing command refuses the plan.
func TestRunIsItsSteps(t *testing.T) {
	fixtureFiles(t, "calico/before")
	const pinned = "--time=2026-11-20T20:50:00Z"
	require.NoError(t, os.WriteFile("key", []byte(strings.Repeat("k", 32)), 0o600))
	require.NoError(t, os.WriteFile("policy.yaml", []byte(teamPolicy), 0o600))
	steps, random := planSteps(), rand.New(rand.NewPCG(1, 15))
	for i := range steps {
		a, b := steps[i], steps[random.IntN(len(steps))]
		name := fmt.Sprintf("%d: %v, then %v", i, a, b)
		file := func(s string) string { return fmt.Sprintf("%d-%s", i, s) }
		writePlan(t, file("plan.yaml"), a, b)
		status, _, stderr := runWords(append(a.words("before.db", file("a.db")), pinned)...)
		require.Contains(t, []int{exitDone, exitAllowed, exitRefused}, status, "%s: %s", name, stderr)
		worst := status
		if status != exitRefused {
			status, _, stderr = runWords(append(b.words(file("a.db"), file("ab.db")), pinned)...)
			require.Contains(t, []int{exitDone, exitAllowed, exitRefused}, status, "%s: %s", name, stderr)
			if status != exitDone {
				worst = status
			}
		}
		status, out, stderr := runWords("run", file("plan.yaml"), "before.db", file("run.db"), pinned)
		require.Equal(t, worst, status, "%s: %s\n%s", name, out, stderr)
		if status == exitRefused {
			continue
		}
		status, differ, stderr := runWords("diff", "--all", file("ab.db"), file("run.db"))
		require.Equal(t, exitDone, status, "%s: %s\n%s", name, differ, stderr)
		status, _, stderr = runWords("run", file("plan.yaml"), "before.db", file("again.db"), pinned)
		require.Equal(t, worst, status, "%s: %s", name, stderr)
		one, err := os.ReadFile(file("run.db"))
		require.NoError(t, err)
		again, err := os.ReadFile(file("again.db"))
		require.NoError(t, err)
		require.Equal(t, one, again, name)
		status, _, stderr = runWords("verify", file("run.db"))
		require.Equal(t, exitDone, status, "%s: %s", name, stderr)
	}
}

// TestFlagsOfRun: a flag of all commands belongs to the run; no step accepts it.
func TestFlagsOfRun(t *testing.T) {
	fixtureFiles(t, "calico/before")
	for _, f := range (migration{transform.Spec{}}).flags() {
		name := f.Names()[0]
		writePlan(t, "plan.yaml", planStep{command: "migrate calico-v3", flags: map[string]any{name: "x"}})
		status, _, stderr := runWords("run", "plan.yaml", "before.db", "out.db")
		require.Equal(t, exitUsage, status, name)
		require.Contains(t, stderr, fmt.Sprintf("plan.yaml:1: %q belongs to the whole run: etcdshift run --%s", name,
			name))
	}
}

// fixtureFiles copies recorded snapshots and the key pair to a new working directory.
func fixtureFiles(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		recordedFile(t, dir, name+".db", filepath.Base(name)+".db")
	}
	testKeys(t, dir)
	t.Chdir(dir)
}
