package plan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// specs returns two commands that a plan accepts and two that a plan rejects.
func specs() []transform.Spec {
	odd := &finding.Code{Name: "odd", Level: finding.Error, Allowed: finding.Skipped}
	return []transform.Spec{
		{Group: transform.GroupMigrate, Name: "all", Codes: []*finding.Code{odd}, Flags: []transform.Flag{
			{Name: "to", Short: "t"},
			{Name: "mode", Default: "slow", Choices: []string{"slow", "fast"}},
			{Name: "keep", Default: true},
			{Name: "wait", Default: time.Minute},
			{Name: "name", Default: []string{}},
			{Name: "only", Default: []string{}, Choices: []string{"a", "b"}},
		}},
		{Name: "drop", Rest: "TYPE [NAME...]"},
		{Name: "pack", Builds: true},
		{Name: "prove", Alone: true},
	}
}

const head = "apiVersion: etcdshift/v1\nkind: Plan\nsteps:\n"

func TestParse(t *testing.T) {
	steps, p := parse("p.yaml", []byte(head+`
- command: migrate   all
  flags: {to: 1.10, mode: fast, keep: false, wait: 30s, name: [a, 7], only: a}
  allow: [odd]
- {command: drop, args: [pods, web-1, "2"]}
`), specs())
	require.NoError(t, p.err())
	require.Len(t, steps, 2)
	require.Equal(t, "migrate all", steps[0].spec.Command())
	require.Equal(t, map[string]any{
		"to": "1.10", "mode": "fast", "keep": false, "wait": 30 * time.Second, "name": []string{"a", "7"},
		"only": []string{"a"},
	}, steps[0].flags)
	require.Equal(t, []string{"odd"}, steps[0].allow)
	require.Equal(t, []string{"pods", "web-1", "2"}, steps[1].args)

	v := steps[0].values(runFlags{"prefix": "/p"})
	require.Equal(t, []any{"1.10", "fast", false, 30 * time.Second, []string{"a", "7"}},
		[]any{v.String("to"), v.String("mode"), v.Bool("keep"), v.Duration("wait"), v.StringSlice("name")})
	require.True(t, v.IsSet("keep"))
	require.True(t, v.IsSet("prefix"), "a flag of the run")
	require.Equal(t, "/p", v.String("prefix"))

	v = (&step{spec: &specs()[0]}).values(runFlags{"to": "of another command"})
	require.Equal(t, []any{"", "slow", true, time.Minute, []string{}},
		[]any{v.String("to"), v.String("mode"), v.Bool("keep"), v.Duration("wait"), v.StringSlice("name")})
	require.False(t, v.IsSet("to"))
}

// runFlags are the flags of a run.
type runFlags map[string]string

func (f runFlags) IsSet(flag string) bool            { return f[flag] != "" }
func (f runFlags) String(flag string) string         { return f[flag] }
func (f runFlags) StringSlice(string) []string       { return nil }
func (f runFlags) Bool(string) bool                  { return false }
func (f runFlags) Duration(string) (d time.Duration) { return d }

// TestWrong checks that all mistakes are reported together, each with its line.
func TestWrong(t *testing.T) {
	for text, want := range map[string][]string{
		"":        {"p.yaml: the plan is empty"},
		"a\x00":   {"p.yaml: it is no text, and no plan: the order is PLAN IN OUT"},
		"# none":  {"p.yaml: the plan is empty"},
		"a: b: c": {"p.yaml: yaml: mapping values are not allowed in this context"},
		"[1, 2]":  {"p.yaml:1: a plan takes fields: apiVersion, kind, steps"},
		"kind: Deployment": {
			"p.yaml:1: apiVersion is missing; it takes etcdshift/v1", `p.yaml:1: kind is "Deployment"; it takes Plan`,
			"p.yaml:1: steps are missing",
		},
		head + "  {}":        {"p.yaml:4: steps take a list, such as"},
		head + "  []":        {"p.yaml:4: steps take a list, such as"},
		head + "- all":       {"p.yaml:4: a step takes fields: command, args, flags, allow"},
		head + "- args: [a]": {"p.yaml:4: command is missing"},
		head + "- command: migrate al": {
			`p.yaml:4: unknown command "migrate al"; did you mean "migrate all"?`},
		head + "- command: [drop]": {
			`p.yaml:4: unknown command ""; a step takes one of migrate all, drop`},
		head + "- command: run": {
			`p.yaml:4: unknown command "run"; a step takes one of migrate all, drop`},
		head + "- command: pack": {
			`p.yaml:4: "pack" is no step of a plan: it makes a new file, and no changed copy of IN`},
		head + "- command: prove": {
			`p.yaml:4: "prove" is no step of a plan: it checks that all other records of OUT are those of IN`},
		head + "- command: drop":            {"p.yaml:4: drop takes args TYPE [NAME...]; there are 0"},
		head + "- {command: drop, args: a}": {`p.yaml:4: "args" takes a list, such as [a, b]`, "there are 0"},
		head + "- {command: drop, args: [{}]}": {`p.yaml:4: "args" takes a text; write it in quotes`,
			"there are 0"},
		head + "- {command: migrate all, args: [a]}": {"p.yaml:4: migrate all takes no args; there are 1"},
		head + "- command: migrate all\n  flags:\n    tu: v1\n    t: v1\n    report: x\n    keep: 1\n    wait: " +
			"long\n    name: {}\n    mode: quick\n    to: true": {
			`p.yaml:6: migrate all has no flag "tu"; did you mean "to"?`,
			`p.yaml:7: "t" is the short name of "to", which a plan takes`,
			`p.yaml:8: "report" belongs to the whole run: etcdshift run --report`,
			`p.yaml:9: "keep" takes true or false`,
			`p.yaml:10: "wait" takes a time such as 30s`, `p.yaml:11: "name" takes a list, such as [a, b]`,
			`p.yaml:12: "mode" is "quick"; it takes slow or fast`, `p.yaml:13: "to" takes a text; write it in quotes`,
		},
		head + "- {command: migrate all, flags: [to]}": {"p.yaml:4: migrate all takes flags: to, mode, " +
			"keep, wait, name, only"},
		head + "- {command: migrate all, flags: {only: [a, c]}}": {`p.yaml:4: "only" is "c"; it takes a or b`},
		head + "- {command: migrate all, flags: {to: }}":         {`p.yaml:4: "to" has no value`},
		head + "- {command: migrate all, flags: {to: ''}}":       {`p.yaml:4: "to" has an empty value`},
		head + "- {command: migrate all, allow: [odds]}": {
			`p.yaml:4: migrate all has no code "odds" to allow; did you mean "odd"?`},
		head + "- command: migrate all\n  command: migrate all": {`p.yaml:5: "command" is given twice`},
		head + "- &a {command: migrate all}\n- *a":              {"p.yaml:5: a step takes fields"},
		head + "- command: migrate all\n---\nkind: Plan": {"p.yaml:5: a plan is one document; a second one " +
			"begins here"},
		head + strings.Repeat("- command: migrate all\n",
			1001): {"p.yaml:4: there are 1001 steps; a plan has at most 1000"},
	} {
		_, p := parse("p.yaml", []byte(text), specs())
		err := p.err()
		var usage *transform.UsageError
		require.ErrorAs(t, err, &usage, text)
		lines := strings.Split(err.Error(), "\n")
		require.Len(t, lines, len(want), "%s\n%s", text, err)
		for i := range want {
			require.Contains(t, lines[i], want[i], text)
		}
	}
}

// TestMistakesOfSteps checks that errors of the commands themselves have the line of their step.
func TestMistakesOfSteps(t *testing.T) {
	all := specs()
	all[0].New = func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		return nil, transform.Usagef("--to is %q", a.String("to"))
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(head+"- {command: migrate all, flags: {to: a}}\n- {command: "+
		"migrate all}\n"), 0o600))
	spec := Spec(all)
	_, err := spec.New(t.Context(), &transform.Args{Values: runFlags{}, Arguments: []string{path}})
	require.EqualError(t, err, path+":4: --to is \"a\"\n"+path+":5: --to is \"\"")
	require.ErrorAs(t, err, new(*transform.UsageError))

	all[0].New = func(context.Context, *transform.Args) (transform.Transform, error) {
		return nil, errors.New("a is missing\nb is wrong")
	}
	spec = Spec(all)
	_, err = spec.New(t.Context(), &transform.Args{Values: runFlags{}, Arguments: []string{path}})
	require.EqualError(t, err, path+":4: migrate all: a is missing\n"+path+":4: b is wrong\n"+path+
		":5: migrate all: a is missing\n"+path+":5: b is wrong")
	require.False(t, errors.As(err, new(*transform.UsageError)))

	require.NoError(t, os.WriteFile(path, []byte(head+"- {command: migrate all}\n- {command: pack}\n"), 0o600))
	_, err = spec.New(t.Context(), &transform.Args{Values: runFlags{}, Arguments: []string{path}})
	require.ErrorContains(t, err, path+":4: b is wrong\n"+path+":5: \"pack\" is no step of a plan")
	require.ErrorAs(t, err, new(*transform.UsageError))

	for _, given := range [][3]string{{"a.db", "p.yaml", "b.db"}, {"a.db", "b.db", "p.yml"}} {
		_, err = spec.New(t.Context(), &transform.Args{Values: runFlags{}, Arguments: given[:1],
			In: given[1], Out: given[2]})
		require.ErrorContains(t, err, "is where a snapshot is expected: the order is PLAN IN OUT")
	}
}

// FuzzParse checks that a plan yields steps that fit their commands, or mistakes, all with a place
// in the file.
func FuzzParse(f *testing.F) {
	f.Add(head + "- {command: drop, args: [pods]}")
	f.Add(head + "- command: migrate all\n  flags: {to: v1, keep: on, wait: 1s, name: [a]}\n  allow: [odd]")
	place := regexp.MustCompile(`^p(:[0-9]+)?: .`)
	f.Fuzz(func(t *testing.T, text string) {
		steps, p := parse("p", []byte(text), specs())
		require.True(t, p.err() != nil || len(steps) > 0)
		for _, s := range steps {
			require.Empty(t, Unfit(s.spec))
			least, most := transform.CountArguments(strings.Fields(s.spec.Rest))
			require.True(t, least <= len(s.args) && len(s.args) <= most)
			require.Positive(t, s.at)
		}
		if err := p.err(); err != nil {
			require.ErrorAs(t, err, new(*transform.UsageError))
			for line := range strings.Lines(err.Error()) {
				require.Regexp(t, place, line)
			}
		}
	})
}
