package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/transform/migrations"
)

// TestStable: everything stable under docs/project/stability.md in the last tag still exists:
// fields of the schemas; commands, flags and codes, one per line in testdata/stable.txt, written by
// -update.
func TestStable(t *testing.T) {
	path := filepath.Join("testdata", "stable.txt")
	generated(t, path, stableLines())
	tag := lastTag(".")
	if tag == "" {
		t.Skip("no tag to compare with")
	}
	at := func(name string) string {
		out, err := exec.Command("git", "show", tag+":./"+filepath.ToSlash(name)).Output()
		require.NoError(t, err, name)
		return string(out)
	}
	require.Empty(t, lostLines(at(path), stableLines()))
	listed, err := exec.Command("git", "ls-tree", "--name-only", tag, schemaFolder()+"/").Output()
	require.NoError(t, err)
	for name := range strings.FieldsSeq(string(listed)) {
		now, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Empty(t, lostFields(name, decoded(t, at(name)), decoded(t, string(now))))
	}
}

// lastTag returns the release before the checked-out commit, so that no release is compared with
// itself.
func lastTag(dir string) string {
	tag, err := exec.Command("git", "-C", dir, "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(tag))
}

func TestStableComparesWithTheReleaseBefore(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "-q")
	require.Empty(t, lastTag(dir))
	for _, tag := range []string{"v0.1.0", "v0.2.0"} {
		git("commit", "-q", "--allow-empty", "-m", tag)
		git("tag", tag)
	}
	require.Equal(t, "v0.1.0", lastTag(dir))
}

func decoded(t *testing.T, text string) (schema map[string]any) {
	require.NoError(t, json.Unmarshal([]byte(text), &schema))
	return schema
}

// TestStableNoticesLoss: removing a field, type or value, or making a field optional, is a loss.
// Adding is not.
func TestStableNoticesLoss(t *testing.T) {
	old :=
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","enum":["x","y"]},"b":{"type":"array",` +
			`"items":{"type":"integer"}}}}`
	for now, want := range map[string]string{
		old: "",
		`{"type":"object","required":["a","c"],"properties":{"a":{"type":"string","enum":["x","y","z"]},` +
			`"b":{"type":"array","items":{"type":"integer"}},"c":{}}}`: "",
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","enum":["x",` +
			`"y"]}}}`: "d.b is gone",
		strings.Replace(old, `"integer"`, `"string"`,
			1): `d.b[]: type integer, now string`,
		strings.Replace(old, `["x","y"]`, `["x"]`,
			1): "d.a: y is no value any more",
		strings.Replace(old, `["a"]`, `[]`,
			1): "d.a may be absent now",
	} {
		require.Equal(t, want, strings.Join(lostFields("d", decoded(t, old), decoded(t, now)), "; "), now)
	}
	require.Equal(t, []string{"etcdshift get --all"}, lostLines("etcdshift get\netcdshift get --all\n",
		"etcdshift get\netcdshift new\n"))
}

func lostLines(old, now string) []string {
	kept := strings.Split(now, "\n")
	return slices.DeleteFunc(strings.Split(old, "\n"), func(line string) bool { return slices.Contains(kept, line) })
}

// lostFields lists losses of the new schema compared with the old one.
func lostFields(path string, old, now map[string]any) (lost []string) {
	if old["type"] != nil && fmt.Sprint(old["type"]) != fmt.Sprint(now["type"]) {
		lost = append(lost, fmt.Sprintf("%s: type %v, now %v", path, old["type"], now["type"]))
	}
	values, _ := now["enum"].([]any)
	for _, value := range slicesOf(old["enum"]) {
		if values != nil && !slices.Contains(values, value) {
			lost = append(lost, fmt.Sprintf("%s: %v is no value any more", path, value))
		}
	}
	fields, _ := old["properties"].(map[string]any)
	still, _ := now["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if still[name] == nil {
			lost = append(lost, path+"."+name+" is gone")
			continue
		}
		lost = append(lost, lostFields(path+"."+name, fields[name].(map[string]any), still[name].(map[string]any))...)
	}
	for _, name := range slicesOf(old["required"]) {
		if !slices.Contains(slicesOf(now["required"]), name) && still[name.(string)] != nil {
			lost = append(lost, fmt.Sprintf("%s.%s may be absent now", path, name))
		}
	}
	for part, mark := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if was, is := old[part].(map[string]any); is {
			kept, _ := now[part].(map[string]any)
			lost = append(lost, lostFields(path+mark, was, kept)...)
		}
	}
	return lost
}

func slicesOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// stableLines lists commands, their flags and their reported codes.
func stableLines() string {
	var lines []string
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		if c.Hidden {
			return
		}
		below := programName + " " + strings.Join(path, " ")
		lines = append(lines, below+" "+c.ArgsUsage)
		for _, f := range c.Flags {
			lines = append(lines, fmt.Sprintf("%s --%s %T", below, strings.Join(f.Names(), ","), f))
		}
	})
	for _, e := range explanations(migrations.All()) {
		for _, command := range e.Commands {
			lines = append(lines, fmt.Sprintf("code %s %s %s", e.Code.Name, e.Level, command))
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}
