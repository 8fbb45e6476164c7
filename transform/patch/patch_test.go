package patch_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/patch"
)

// line is the command line of a patch.
type line struct {
	rest  []string
	flags map[string]string
}

func (l line) IsSet(flag string) bool        { _, set := l.flags[flag]; return set }
func (l line) String(flag string) string     { return l.flags[flag] }
func (l line) StringSlice(string) []string   { return nil }
func (l line) Bool(flag string) bool         { return l.flags[flag] == "true" }
func (l line) Duration(string) time.Duration { return 0 }
func (l line) args() *transform.Args         { return &transform.Args{Values: l, Rest: l.rest} }
func words(text string) (l line, in, kind string) { // "FILE TYPE NAME... --flag=value"
	l.flags = map[string]string{"type": "strategic"}
	for i, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch {
		case strings.HasPrefix(word, "--"):
			l.flags[name] = value
		case i == 0:
			in = word
		default:
			l.rest = append(l.rest, word)
		}
	}
	return l, in, l.rest[0]
}

// run patches objects of a snapshot in testdata, and returns the report and the object that was
// patched, nil after a refusal.
func run(t *testing.T, command, body string) (*transform.Report, *inspect.Object) {
	t.Helper()
	l, in, kind := words(command)
	l.flags["patch"] = body
	to, err := patch.Spec.New(t.Context(), l.args())
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "after.db")
	report, err := transform.Run(t.Context(), transform.Options{Command: "patch", In: "../../testdata/" + in, Out: out}, to)
	if err != nil {
		require.ErrorIs(t, err, transform.ErrRefused)
		return report, nil
	}
	s, err := snapshot.Open(t.Context(), out, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := inspect.NewReader(s, nil)
	types, err := r.Types(t.Context())
	require.NoError(t, err)
	found, err := types.Resolve(kind)
	require.NoError(t, err)
	for o, err := range r.Objects(t.Context(), found[0], inspect.Selection{Namespace: l.flags["namespace"], Names: l.rest[1:]}) {
		require.NoError(t, err)
		o.AsServed()
		return report, o
	}
	require.Fail(t, "no object")
	return nil, nil
}

func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		command, body string
		path          string // of the result
		want          any
	}{
		"strategic merges lists": {
			"kubectl/all.db.gz deploy d --namespace=a", "spec: {template: {spec: {containers: [{name: more, image: x:1}]}}}",
			"spec.template.spec.containers.0.name", "more",
		},
		"merge replaces lists": {
			"kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"spec": {"template": {"spec": {"containers": [{"name": "one", "image": "x:1"}]}}}}`,
			"spec.template.spec.containers.0.image", "x:1",
		},
		"json":              {"kubectl/all.db.gz deploy d --namespace=a --type=json", `[{"op": "add", "path": "/spec/replicas", "value": 5}]`, "spec.replicas", int64(5)},
		"immutable":         {"kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"spec": {"selector": {"matchLabels": {"app": "z"}}}}`, "spec.selector.matchLabels.app", "z"},
		"volume":            {"kubectl/all.db.gz pv pv1", `{"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}}}`, "spec.nodeAffinity.required.nodeSelectorTerms.0.matchExpressions.0.key", "zone"},
		"status":            {"kubectl/all.db.gz pv pv1", `{"status": {"phase": "Available"}}`, "status.phase", "Available"},
		"custom":            {"storage/before.db.gz widgets.demo.example.com untouched --type=merge --all-namespaces=true", `{"spec": {"size": 9}}`, "spec.size", int64(9)},
		"definition at v1":  {"storage/before.db.gz crd widgets.demo.example.com", `{"spec": {"names": {"shortNames": ["wdg"]}}}`, "spec.names.shortNames.0", "wdg"},
		"APIService":        {"kubectl/all.db.gz apiservice v1.apps", `{"spec": {"versionPriority": 3}}`, "spec.versionPriority", int64(3)},
		"stringData":        {"kubectl/all.db.gz secrets s --namespace=a", `{"stringData": {"more": "x"}}`, "data.more", "eA=="},
		"metadata of a CRD": {"storage/before.db.gz crd widgets.demo.example.com", `{"metadata": {"labels": {"c": "d"}}}`, "metadata.labels.c", "d"},
	} {
		t.Run(name, func(t *testing.T) {
			report, o := run(t, test.command, test.body)
			require.NotNil(t, o, "%v", report.Problems)
			require.Equal(t, transform.Changes{Updated: 1}, report.Changes)
			require.Equal(t, test.want, at(o.Content, test.path))
		})
	}
}

// at is the field at a path with dots.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch is := value.(type) {
		case map[string]any:
			value = is[name]
		case []any:
			value = is[name[0]-'0']
		}
	}
	return value
}

func TestDefinitionIsStoredAsBefore(t *testing.T) {
	_, o := run(t, "storage/before.db.gz crd widgets.demo.example.com --type=merge", `{"metadata": {"annotations": {"a": "b"}}}`)
	require.Contains(t, string(o.Value), `"apiVersion":"apiextensions.k8s.io/v1beta1"`)
	require.True(t, strings.HasPrefix(string(o.Value), `{"kind":"CustomResourceDefinition","apiVersion"`), "the order of a server")
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ command, body, code, reason string }{
		"name":             {"kubectl/all.db.gz pv pv1", `{"metadata": {"name": "x"}}`, "patch-identity", `metadata.name is "pv1", and would be "x"`},
		"namespace":        {"kubectl/all.db.gz deploy d --namespace=a --type=json", `[{"op": "remove", "path": "/metadata/namespace"}]`, "patch-identity", "metadata.namespace"},
		"uid":              {"kubectl/all.db.gz pv pv1 --type=merge", `{"metadata": {"uid": null}}`, "patch-identity", "metadata.uid"},
		"kind":             {"kubectl/all.db.gz pv pv1 --type=merge", `{"kind": "Node"}`, "patch-identity", "kind"},
		"resourceVersion":  {"kubectl/all.db.gz pv pv1 --type=merge", `{"metadata": {"resourceVersion": "1"}}`, "patch-identity", "resourceVersion"},
		"strategic custom": {"storage/before.db.gz widgets.demo.example.com untouched --all-namespaces=true", `{"spec": {"size": 9}}`, "strategic-custom-resource", "--type merge"},
		"missing path":     {"kubectl/all.db.gz pv pv1 --type=json", `[{"op": "remove", "path": "/spec/none"}]`, "patch-failed", "/spec/none"},
		"test":             {"kubectl/all.db.gz pv pv1 --type=json", `[{"op": "test", "path": "/spec/storageClassName", "value": "x"}]`, "patch-failed", "test failed"},
		"merge key":        {"kubectl/all.db.gz deploy d --namespace=a", "spec: {template: {spec: {containers: [{image: secret}]}}}", "patch-failed", `no "name"`},
		"type of a field":  {"kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"spec": {"replicas": "many"}}`, "invalid-object", ""},
		"unknown field":    {"kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"spec": {"replica": 1}}`, "invalid-object", "replica"},
		"schema":           {"storage/before.db.gz widgets.demo.example.com untouched --all-namespaces=true --type=merge", `{"spec": {"size": "big"}}`, "invalid-object", "spec.size"},
		"definition":       {"storage/before.db.gz crd widgets.demo.example.com", `{"spec": {"scope": "Cluster"}}`, "invalid-object", "spec.scope"},
		"no such object":   {"kubectl/all.db.gz pv none", `{"spec": {}}`, "not-found", ""},
		"copies": {"kubectl/all.db.gz pv pv1 --type=json", "[" + strings.Repeat(`{"op": "copy", "from": "", "path": "/spec/a"}, `, 40) +
			`{"op": "remove", "path": "/spec/a"}]`, "patch-failed", "copy"},
	} {
		t.Run(name, func(t *testing.T) {
			report, _ := run(t, test.command, test.body)
			require.Equal(t, transform.Refused, report.Outcome)
			var told []string
			for _, p := range report.Problems {
				told = append(told, p.Code.Name+": "+p.Reason)
			}
			text := strings.Join(told, "\n")
			require.Contains(t, text, test.code+": ")
			require.Contains(t, text, test.reason)
			require.NotContains(t, text, "secret")
		})
	}
}

func TestUnchanged(t *testing.T) {
	report, _ := run(t, "kubectl/all.db.gz deploy d --namespace=a --type=merge", `{"kind": "Deployment"}`)
	require.Equal(t, transform.Unchanged, report.Outcome)
	require.Equal(t, "nothing-patched", report.Problems[len(report.Problems)-1].Code.Name)
	require.Equal(t, 1, report.Kinds[0].Unchanged)
}

func TestUsage(t *testing.T) {
	for _, test := range [][2]string{
		{"merge", "- a"}, {"merge", "null"}, {"strategic", "[]"}, {"json", "{}"}, {"json", `[{"op": "remove", "pth": "/a"}]`}, {"merge", "a: ["},
		{"merge", "{a: 1, a: 2}"}, {"json", "[" + strings.Repeat(`{"op": "test", "path": ""},`, 10000) + `{"op": "test", "path": ""}]`},
	} {
		l, _, _ := words("x pv a --type=" + test[0])
		l.flags["patch"] = test[1]
		_, err := patch.Spec.New(t.Context(), l.args())
		require.ErrorAs(t, err, new(*transform.UsageError), "%.60s", test[1])
	}
	l, _, _ := words("x pv a")
	_, err := patch.Spec.New(t.Context(), l.args())
	require.ErrorContains(t, err, "--patch PATCH or with --patch-file FILE")
}
