package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

// planStep is a command line, and the same as a step of a plan.
type planStep struct {
	command string
	args    []string
	flags   map[string]any
	allow   []string
}

// planSteps are steps that the recorded Calico cluster can take in any order.
func planSteps() []planStep {
	return []planStep{
		{command: "migrate storage-versions"},
		{command: "migrate storage-versions", flags: map[string]any{"crd": []string{"gadgets.example.com"}, "to": "v1alpha1", "managed-fields": "all"}},
		{command: "migrate rename-node", args: []string{"node-a=worker-a"}},
		{command: "migrate calico-v3", allow: []string{"crd-missing"}},
		{command: "migrate calico-v3", flags: map[string]any{"keep-v1": true, "set-api-group": false}},
	}
}

// words is the command line, without IN OUT.
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

// planText is a plan as JSON, which is YAML.
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

// TestRunIsItsSteps: a plan writes the objects that its commands write one after the other, and the
// same bytes when it runs again. A command that refuses refuses the plan.
func TestRunIsItsSteps(t *testing.T) {
	fixtureFiles(t, "calico/before")
	const pinned = "--time=2026-11-20T20:50:00Z"
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

// TestFlagsOfRun: a flag that all commands have belongs to the run, and no step takes it.
func TestFlagsOfRun(t *testing.T) {
	fixtureFiles(t, "calico/before")
	for _, f := range (migration{transform.Spec{}}).flags() {
		name := f.Names()[0]
		writePlan(t, "plan.yaml", planStep{command: "migrate calico-v3", flags: map[string]any{name: "x"}})
		status, _, stderr := runWords("run", "plan.yaml", "before.db", "out.db")
		require.Equal(t, exitUsage, status, name)
		require.Contains(t, stderr, fmt.Sprintf("plan.yaml:1: %q belongs to the whole run: etcdshift run --%s", name, name))
	}
}

// fixtureFiles copies recorded snapshots to a new working directory.
func fixtureFiles(t *testing.T, names ...string) {
	t.Helper()
	testdata := filepath.Join(schemaFolder(), "..", "..", "testdata")
	t.Chdir(t.TempDir())
	for _, name := range names {
		data, err := readFixture(filepath.Join(testdata, name+".db"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Base(name)+".db", data, 0o600))
	}
}
