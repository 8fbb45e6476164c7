package cli

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// differing returns the rows of docs/guides/kubectl.md on differences between a snapshot and a
// cluster, each with parts of its command lines, without the name of the program.
func differing() map[string][]string {
	return map[string][]string{
		"the order of objects asked for by name":          {"get run half -n a"},
		"`-A` with types in namespaces and types without": {"get pvc,pv -A"},
		"events of the group `events.k8s.io`":             {"get events.events.k8s.io"},
		"`--sort-by` with a path that no object has": {"get --sort-by=.status.startTime",
			"get --sort-by=.metadata.nothing"},
		"`--show-labels` with JSON": {"get -o json --show-labels"},
		"flags that ask a server": {"get --chunk-size", "get --raw",
			"get --subresource", "get --server-print"},
		"`-o kyaml`":                     {"get kyaml"},
		"the types of Kubernetes 1.37":   {"clustertrustbundles", "podcertificaterequests"},
		"the order of fields in `--raw`": {"kubectl --raw"},
		"the values that a field may have, and texts of `explain`": {"kubectl explain svc.spec.type"},
	}
}

// TestInvocations compares the output and exit status of "kubectl" and "get" on a snapshot with
// kubectl's output on the cluster, recorded by e2e for each command line in
// testdata/kubectl/invocations.txt, except for the rows of differing. A wrong command line exits
// with 2.
func TestInvocations(t *testing.T) {
	local := time.Local
	time.Local = time.UTC // the zone of describe's output
	t.Cleanup(func() { time.Local = local })
	db := recordedFile(t, t.TempDir(), "kubectl/all.db", "all.db")
	text, err := os.ReadFile("../../testdata/kubectl/invocations.txt")
	require.NoError(t, err)
	sections := strings.Split(strings.TrimPrefix("\n"+string(text), "\n== "), "\n== ")
	require.Greater(t, len(sections), 200)
	met := map[string]bool{}
	for _, section := range sections {
		line, recorded, _ := strings.Cut(section, "\n")
		want := readInvocation(line, recorded)
		for _, command := range []string{"kubectl " + line, line} {
			if !strings.HasPrefix(line, "get ") && command == line {
				continue // get alone is a command of etcdshift
			}
			got := invoke(db, command)
			if got.text == want.text && (got.exit == want.exit || got.exit == exitUsage && want.exit == exitFailed) {
				continue
			}
			if why := differs(command); why != "" {
				met[why] = true
				continue
			}
			t.Errorf("%s: exit status %d, want %d\n--- want\n%s\n--- got\n%s\n%s", command, got.exit, want.exit,
				want.text, got.text, got.stderr)
		}
	}
	page, err := os.ReadFile("../../docs/guides/kubectl.md")
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Collect(maps.Keys(differing())), slices.Collect(maps.Keys(met)),
		"each is still a difference")
	for why := range differing() {
		require.Contains(t, string(page), "\n| "+why+" |")
	}
}

// differs returns the row of a command line, "" for none.
func differs(command string) string {
	for why, all := range differing() {
		for _, some := range all {
			first, rest, _ := strings.Cut(some, " ")
			if strings.HasPrefix(command, first) && strings.Contains(command, rest) || rest == "" &&
				strings.Contains(command, first) {
				return why
			}
		}
	}
	return ""
}

// invocation is the output of a command line, and its exit status.
type invocation struct {
	text, stderr string
	exit         int
}

// readInvocation reads a section of the record.
func readInvocation(line, recorded string) (i invocation) {
	if at := strings.LastIndex(recorded, "exit "); at >= 0 && at >= len(recorded)-len("exit 1\n") {
		_, _ = fmt.Sscanf(recorded[at:], "exit %d", &i.exit)
		recorded = recorded[:at]
	}
	i.text = normalized(line, regexp.MustCompile(`(?m)^2> .*\n?`).ReplaceAllString(recorded, ""))
	return i
}

// invoke runs a command line of etcdshift on a file.
func invoke(db, line string) invocation {
	words := strings.Fields(line)
	status, text, stderr := runWords(slices.Concat([]string{words[0], "-q", "--show-secrets", db}, words[1:])...)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\\\n"
	}
	return invocation{normalized(line, text), stderr, status}
}

// normalized returns a table without ages, or the content of a document, without the input added by
// "get".
func normalized(line, text string) string {
	duration, blanks := regexp.MustCompile(`\b(?:[0-9]+[smhdy])+\b`), regexp.MustCompile(` +`)
	list := map[string]any{}
	switch {
	case !strings.Contains(line, "json") && !strings.Contains(line, "yaml"):
		if duration.MatchString(text) {
			text = blanks.ReplaceAllString(duration.ReplaceAllString(text, "AGE"), " ")
		}
	case strings.Contains(text, "etcdshift") && yaml.Unmarshal([]byte(text), &list) == nil:
		delete(list, "etcdshift")
		fallthrough
	case strings.Contains(text, "List") && yaml.Unmarshal([]byte(text), &list) == nil:
		content, _ := yaml.Marshal(list)
		return string(content)
	}
	return strings.TrimRight(text, "\n")
}
