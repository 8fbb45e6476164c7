package objects

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/transform"
)

// choice parses a command line: words and flags.
func choice(line ...string) (*Choice, error) {
	a := transformtest.Args(line...)
	return Choose(a, a.Rest)
}

// names lists the yielded candidates of a choice, and raises findings.
type names struct {
	*Choice
	others, decode bool
	got            []string
}

func (n *names) Plan(ctx context.Context, v *transform.View) error {
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	for o, err := range n.Candidates(ctx, v, types, n.decode) {
		if err != nil {
			return err
		}
		if o.Chosen == n.others {
			continue
		}
		if n.decode != (o.Content != nil || o.Err != nil) && n.where == nil && n.selector.Fields.Empty() {
			n.got = append(n.got, "decoded?")
		}
		n.got = append(n.got, strings.TrimPrefix(o.Parsed.Namespace+"/"+o.Parsed.Name, "/"))
	}
	slices.Sort(n.got)
	return nil
}

const recorded = "../../testdata/kubectl/all.db.gz"

// run returns the objects chosen by a command line in a snapshot, and the codes of findings.
func run(t testing.TB, n *names, in string) (*transform.Report, []string) {
	t.Helper()
	r, _ := transform.Run(context.Background(), transform.Options{In: in, Out: filepath.Join(t.TempDir(), "out.db"),
		DryRun: true}, n)
	require.Empty(t, r.Error)
	var codes []string
	for _, p := range r.Problems {
		if p.Code != transform.CodeCompressed && p.Code != transform.CodeRawFile {
			codes = append(codes, p.Code.Name+" "+p.Key+" "+p.Reason)
		}
	}
	return r, codes
}

func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"":                           "say which objects",
		"pods":                       "chooses nothing",
		"*":                          "\"*\" is no type here",
		"* --all --all-namespaces":   "\"*\" is no type here",
		"pods --all=false":           "chooses nothing",
		"pods --selector=":           "--selector is empty",
		"pods --where=":              "--where is empty",
		"pods --all --namespace=":    "--namespace is empty",
		"pods a --all":               "they take no --all",
		"pods a --selector=a=b":      "they take no --selector",
		"pod/a --field-selector=a=b": "they take no --field-selector",
		"pods --all --where=true":    "--all chooses all",
		"pod/a b":                    "give either TYPE/NAME",
		"pods --all --namespace=a --all-namespaces": "not both",
		"pods --selector=a=(":                       "--selector: ",
		"pods --field-selector=a":                   "--field-selector: ",
		"pods --where=objekt.a":                     "--where: line 1, column 1: undeclared reference to 'objekt'",
		"pods --where=object.spec.":                 "--where: line 1, column 13: Syntax error",
		"pods --where=1":                            "type int, not bool",
		"pods --where=oldObject.a":                  "undeclared reference",
	} {
		_, err := choice(strings.Fields(line)...)
		require.ErrorContains(t, err, want, line)
		require.ErrorAs(t, err, new(*transform.UsageError), line)
	}
}

// TestChosen checks that a choice equals the list of "kubectl get" with the same words.
func TestChosen(t *testing.T) {
	for line, want := range map[string]string{
		"pods --namespace=a --field-selector=status.phase=Failed":  "a/evicted a/signal",
		"po/done pods/half --namespace=a":                          "a/done a/half",
		"pods done half done --all-namespaces":                     "a/done a/half",
		"deploy,jobs --all-namespaces --all":                       "a/d a/j1 a/j2 a/j3",
		"deploy --all":                                             "",
		"things.example.com,crd --all --all-namespaces":            "a/t1 a/t2 things.example.com",
		"jobs --all-namespaces --where=object.metadata.name=='j3'": "a/j3",
		"cm --all-namespaces --where=has(object.data.k)":           "",
		"ns --selector=kubernetes.io/metadata.name=a":              "a",
		"ns --selector=kubernetes.io/metadata.name!=a": "b2 default kube-node-lease kube-public " +
			"kube-system",
		"ns a --namespace=b": "a",
	} {
		c, err := choice(strings.Fields(line)...)
		require.NoError(t, err)
		for _, decode := range []bool{false, true} {
			n := &names{Choice: c, decode: decode}
			_, codes := run(t, n, recorded)
			require.Equal(t, want == "", len(codes) == 1 && strings.HasPrefix(codes[0], "nothing-chosen "),
				"%s: %q", line, codes)
			require.Equal(t, want != "", len(codes) == 0, line)
			require.Equal(t, want, strings.Join(n.got, " "), line)
		}
	}
}

// odd returns a snapshot with values for which a choice may have no result.
func odd(t testing.TB) string {
	t.Helper()
	object := func(kind, name, rest string) string {
		return strconv.Quote(`{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name +
			`","namespace":"a"` + rest + `}`)
	}
	return etcdtest.Build(t, strings.Join([]string{
		"put /registry/namespaces/a " + strconv.Quote(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`),
		"put /registry/configmaps/a/good " + object("ConfigMap", "good", `,"labels":{"x":"y"}},"data":{"k":"v"}`),
		"put /registry/configmaps/a/other " + object("ConfigMap", "other", `}`),
		"put /registry/configmaps/a/bad hello",
		"put /registry/configmaps/a/zealous k8s:enc:aescbc:v1:key1:abc",
		"put /registry/configmaps/a/b/c " + object("ConfigMap", "c", `}`),
		"put /registry/secrets/a/s " + object("Secret", "s", `},"data":{"k":"c2VjcmV0"}`),
	}, "\n"))
}

// TestFindings checks that an undecided object is reported, and is neither chosen nor among the
// others.
func TestFindings(t *testing.T) {
	in := odd(t)
	const (
		unknown     = `unknown-key /registry/configmaps/a/b/c`
		undecodable = `undecodable /registry/configmaps/a/bad`
		encrypted   = `encrypted /registry/configmaps/a/zealous`
	)
	for _, is := range []struct {
		line, chosen, others string
		findings             []string
	}{
		{"cm --namespace=a --all", "a/bad a/good a/other a/zealous", "", []string{unknown}},
		{"cm --namespace=a --selector=x=y", "a/good", "a/other", []string{undecodable, encrypted, unknown}},
		{"cm --namespace=a --field-selector=metadata.name=other", "a/other", "a/good",
			[]string{undecodable, encrypted, unknown}},
		{"cm bad zealous --namespace=a", "a/bad a/zealous", "a/good a/other", nil},
		{"cm good gone gone --namespace=a", "a/good", "a/bad a/other a/zealous",
			[]string{`not-found /registry/configmaps/a/gone configmaps "gone" not found in namespace a`}},
		{"cm/gone --all-namespaces", "", "a/bad a/good a/other a/zealous",
			[]string{`not-found  configmaps "gone" not found in any namespace`}},
		{"secrets --namespace=a --where=int(object.data.k)==1", "", "",
			[]string{"where-failed /registry/secrets/a/s it is a Secret, of which no more is said"}},
		{"cm --namespace=a --where=object.data.k=='v'", "a/good", "",
			[]string{undecodable, encrypted, unknown, "where-failed /registry/configmaps/a/other no such key: data"}},
		{"secrets --namespace=a --where=object.kind", "", "", []string{"where-failed"}},
		{"ns --where=object.metadata.name.matches('(a*)*b')", "", "a", []string{"nothing-chosen"}},
	} {
		c, err := choice(strings.Fields(is.line)...)
		require.NoError(t, err)
		for _, others := range []bool{false, true} {
			n := &names{Choice: c, others: others}
			_, found := run(t, n, in)
			slices.Sort(found)
			slices.Sort(is.findings)
			require.Len(t, found, len(is.findings), "%s: %q", is.line, found)
			for i, want := range is.findings {
				require.True(t, strings.HasPrefix(found[i], want), "%s: %s", is.line, found[i])
			}
			want := is.chosen
			if others {
				want = is.others
			}
			require.Equal(t, want, strings.Join(n.got, " "), is.line)
		}
	}
}

// TestCost checks that an expression above an API server's cost limit fails, and ends.
func TestCost(t *testing.T) {
	long := "[1,2,3,4,5,6,7,8,9,10]"
	c, err := choice("ns", "--where="+strings.Repeat(long+".all(x,", 8)+"x>0"+strings.Repeat(")", 8))
	require.NoError(t, err)
	_, codes := run(t, &names{Choice: c}, odd(t))
	require.Len(t, codes, 1)
	require.Contains(t, codes[0], "where-failed /registry/namespaces/a ")
	require.Contains(t, codes[0], "cost limit")
}

func TestUnknownType(t *testing.T) {
	c, err := choice("widgets", "--all")
	require.NoError(t, err)
	_, err = transform.Run(context.Background(), transform.Options{In: odd(t),
		Out: filepath.Join(t.TempDir(), "out.db")}, &names{Choice: c})
	require.ErrorIs(t, err, inspect.ErrUnknownType)
}

func TestFields(t *testing.T) {
	of := func(group, resource string) []string {
		return SelectableFields(&inspect.Type{Resource: schema.GroupResource{Group: group, Resource: resource}}, "")
	}
	require.Equal(t, []string{"metadata.name", "metadata.namespace"}, of("", "configmaps"))
	require.Equal(t, []string{"metadata.name", "metadata.namespace", "status.successful"}, of("batch", "jobs"))
	require.Contains(t, of("", "events"), "involvedObject.name")
	require.Contains(t, of("events.k8s.io", "events"), "regarding.name")
	require.NotContains(t, of("events.k8s.io", "events"), "source")
}

// TestValues checks that a field omitted in the stored object is selected by its zero value.
func TestValues(t *testing.T) {
	for text, want := range map[string]bool{
		"spec.unschedulable=false": true, "spec.unschedulable=true": false, "status.successful=3": true,
		"status.successful=0": false, "status.phase=Running": true,
		"status.phase!=Running": false, "spec.nodeName=": true, "spec.nodeName!=n1": true, "source=kubelet": true,
	} {
		selector, err := fields.ParseSelector(text)
		require.NoError(t, err)
		content := map[string]any{"status": map[string]any{"phase": "Running", "succeeded": int64(3)},
			"source": map[string]any{"component": "kubelet"}}
		require.Equal(t, want, selector.Matches(FieldValues(selector, content)), text)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]Word{
		"pods":           {{Type: "pods"}},
		"pods,svc":       {{Type: "pods,svc"}},
		"pods a b":       {{Type: "pods", Names: []string{"a", "b"}}},
		"pods,svc a":     {{Type: "pods,svc", Names: []string{"a"}}},
		"pod/a svc/b":    {{Type: "pod", Names: []string{"a"}}, {Type: "svc", Names: []string{"b"}}},
		"pod/a b":        nil,
		"pod/":           nil,
		"/a":             nil,
		"pods a svc/b c": nil,
	} {
		got, err := ParseWords(strings.Fields(text))
		require.Equal(t, want, got, text)
		require.Equal(t, want == nil, err != nil, text)
	}
}
