package compare

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func parse(t testing.TB, text string) (v any) {
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, utiljson.Unmarshal(data, &v))
	return v
}

// lines formats changes for a test, one a line.
func lines(changes []Change) string {
	var out []string
	for _, c := range changes {
		text := func(v any) string {
			data, _ := json.Marshal(v)
			return string(data)
		}
		line := fmt.Sprintf("%s %s", c.Op, c.Path)
		if c.Op != Added {
			line += " " + text(c.Old)
		}
		if c.Op != Removed {
			line += " " + text(c.New)
		}
		if c.Redacted {
			line += " redacted"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want string }{
		"equal": {`{a: 1, b: [x, {c: null}]}`, `{b: [x, {c: null}], a: 1.0}`, ``},
		"scalars": {`{a: 1, b: x, c: true, d: 1.5}`, `{a: 2, b: z, c: false, d: 1}`,
			"changed a 1 2\nchanged b \"x\" \"z\"\nchanged c true false\nchanged d 1.5 1"},
		"types": {`{a: 1, b: {c: 1}, d: [1]}`, `{a: "1", b: [1], d: {c: 1}}`,
			"changed a 1 \"1\"\nchanged b {\"c\":1} [1]\nchanged d [1] {\"c\":1}"},
		"fields": {`{a: {x: 1, y: 2}}`, `{a: {y: 2, z: null}}`, "removed a.x 1\nadded a.z null"},
		"names": {`{metadata: {labels: {app.kubernetes.io/name: a, "": b}}}`,
			`{metadata: {labels: {app.kubernetes.io/name: b}}}`,
			"removed metadata.labels[\"\"] \"b\"\nchanged metadata.labels[\"app.kubernetes.io/name\"] \"a\" \"b\""},
		"by name": {`{c: [{name: a, image: x}, {name: b}]}`, `{c: [{name: new}, {name: a, image: z}]}`,
			"removed c[name=b] {\"name\":\"b\"}\nadded c[name=new] {\"name\":\"new\"}\nchanged c[name=a].image " +
				"\"x\" \"z\""},
		"reordered": {`[{name: a}, {name: b}, {name: c}]`, `[{name: c}, {name: a, x: 1}, {name: d}]`,
			"removed [name=b] {\"name\":\"b\"}\nreordered  [\"name=a\",\"name=c\"] [\"name=c\",\"name=a\"]\nadded " +
				"[name=a].x 1\nadded [name=d] {\"name\":\"d\"}"},
		"ports": {`[{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]`,
			`[{containerPort: 53, protocol: UDP, hostPort: 1}, {containerPort: 53, protocol: TCP}]`,
			"added [containerPort=53,protocol=UDP].hostPort 1"},
		"subjects": {`[{kind: User, name: a}, {kind: Group, name: a}]`, `[{kind: User, name: a}]`,
			"removed [name=a,kind=Group] {\"kind\":\"Group\",\"name\":\"a\"}"},
		"odd name": {`[{name: "a,b=]"}]`, `[{name: "a,b=]", x: 1}]`, "added [name=\"a,b=]\"].x 1"},
		"strings": {`[a, b, c, d]`, `[a, x, c, e, f]`,
			"changed [1] \"b\" \"x\"\nchanged [3] \"d\" \"e\"\nadded [4] \"f\""},
		"shifted":  {`[a, b, c]`, `[b, c]`, "removed [0] \"a\""},
		"no names": {`[{x: 1}, {x: 2}]`, `[{x: 2}]`, "removed [0] {\"x\":1}"},
		"twice":    {`[{name: a, x: 1}, {name: a, x: 2}]`, `[{name: a, x: 1}, {name: a, x: 3}]`, "changed [1].x 2 3"},
		"emptied":  {`{a: [1], b: []}`, `{a: [], b: [{name: x}]}`, "removed a[0] 1\nadded b[0] {\"name\":\"x\"}"},
		"whole":    {`a`, `b`, "changed  \"a\" \"b\""},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		changes := differences(plain(a), plain(b))
		require.Equal(t, c.want, lines(changes), name)
		require.True(t, Equal(b, apply(a, changes)), name)
	}
}

// TestRedacted checks that values are compared unredacted and shown redacted.
func TestRedacted(t *testing.T) {
	const old, new = `{data: {a: aGk=, b: b2s=, c: {x: 1}}, env: [{name: hidden, value: p}]}`,
		`{data: {a: aG8=, b: b2s=, c: {x: 2}, d: eA==}, env: [{name: hidden, value: q}]}`
	const shown = `{data: {a: <redacted 2 bytes>, b: <redacted 2 bytes>, c: <redacted>, d: <redacted 1 bytes>}, env: ` +
		`[{name: <redacted 6 bytes>, value: <redacted 1 bytes>}]}`
	oldShown := parse(t, strings.Replace(shown, ", d: <redacted 1 bytes>", "", 1))
	changes := differences(view{Raw: parse(t, old), Shown: oldShown}, view{Raw: parse(t, new), Shown: parse(t, shown)})
	require.Equal(t, `changed data.a "<redacted 2 bytes>" "<redacted 2 bytes>" redacted
changed data.c "<redacted>" "<redacted>" redacted
added data.d "<redacted 1 bytes>" redacted
changed env[name=<redacted 6 bytes>].value "<redacted 1 bytes>" "<redacted 1 bytes>" redacted`,
		strings.ReplaceAll(strings.ReplaceAll(lines(changes), `\u003c`, "<"), `\u003e`, ">"))

	whole := differences(view{Raw: parse(t, `{data: [1, 2]}`), Shown: parse(t, `{data: <redacted>}`)},
		view{Raw: parse(t, `{data: [1, 3]}`), Shown: parse(t, `{data: <redacted>}`)})
	require.Len(t, whole, 1, "nothing below what was redacted as a whole")
	require.Equal(t, "data", whole[0].Path.String())
}

func TestNoise(t *testing.T) {
	node, lease, pod := schema.GroupKind{Kind: "Node"}, schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"},
		schema.GroupKind{Kind: "Pod"}
	const leader = `{metadata: {annotations: {control-plane.alpha.kubernetes.io/leader: '{"holderIdentity":"%s",` +
		`"renewTime":"%d"}'}}}`
	for name, c := range map[string]struct {
		kind  schema.GroupKind
		a, b  string
		noise bool
	}{
		"managers": {pod, `{metadata: {managedFields: [{manager: a, time: x}]}}`,
			`{metadata: {managedFields: [{manager: a, time: y}]}}`, true},
		"revision":   {pod, `{metadata: {resourceVersion: "1"}}`, `{metadata: {}}`, true},
		"generation": {pod, `{metadata: {generation: 1}}`, `{metadata: {generation: 2}}`, false},
		"renewed":    {lease, `{spec: {renewTime: x}}`, `{spec: {renewTime: y}}`, true},
		"held":       {lease, `{spec: {holderIdentity: x}}`, `{spec: {holderIdentity: y}}`, false},
		"no Lease":   {pod, `{spec: {renewTime: x}}`, `{spec: {renewTime: y}}`, false},
		"heartbeat": {node, `{status: {conditions: [{type: Ready, lastHeartbeatTime: x}]}}`,
			`{status: {conditions: [{type: Ready, lastHeartbeatTime: y}]}}`, true},
		"condition": {node, `{status: {conditions: [{type: Ready, status: x}]}}`,
			`{status: {conditions: [{type: Ready, status: y}]}}`, false},
		"leader":      {pod, fmt.Sprintf(leader, "a", 1), fmt.Sprintf(leader, "a", 2), true},
		"new leader":  {pod, fmt.Sprintf(leader, "a", 1), fmt.Sprintf(leader, "b", 2), false},
		"annotations": {pod, `{metadata: {annotations: {a: "1"}}}`, `{metadata: {annotations: {a: "2"}}}`, false},
	} {
		changes := differences(plain(parse(t, c.a)), plain(parse(t, c.b)))
		require.Len(t, changes, 1, name)
		require.Equal(t, c.noise, isNoiseChange(c.kind, changes[0]), name)
	}
}

func TestLines(t *testing.T) {
	var out []string
	for _, l := range Lines("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nX\nY\ne\nf\ng\n", 1) {
		out = append(out, string(l.Op)+l.Text)
	}
	require.Equal(t, "@\n c\n-d\n+X\n+Y\n e\n f\n+g\n ", strings.Join(out, "\n"))
	require.Equal(t, []Line{{'@', ""}}, Lines("a", "a", 1))
}

// TestDeep checks that depth and length are bounded, and that differences are right.
func TestDeep(t *testing.T) {
	deep := func(leaf any) any {
		for range 9000 {
			leaf = map[string]any{"a": leaf}
		}
		return leaf
	}
	changes := differences(plain(deep("x")), plain(deep("y")))
	require.Len(t, changes, 1)
	require.Len(t, changes[0].Path, 100)
	require.True(t, Equal(deep("y"), apply(deep("x"), changes)))

	var a, b []any
	for i := range 20_000 {
		a, b = append(a, fmt.Sprint("a", i)), append(b, fmt.Sprint("b", i))
	}
	require.Len(t, differences(plain(a), plain(b)), 20_000)
}

// FuzzDiff checks that the changes, applied to the old value, give the new one, and that only equal
// values have none.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[{"name":"x","v":1},{"name":"y"}]}`),
		[]byte(`{"a":[{"name":"y"},{"name":"x","v":2},{"name":"z"}]}`))
	f.Add([]byte(`[[1,2,3],[4],{"uid":"a"}]`), []byte(`[[2,3],4,{"uid":"a","x":null}]`))
	f.Add([]byte(`{"ports":[{"port":1,"protocol":"TCP"},{"port":1}]}`), []byte(`{"ports":[{"port":1},{"port":2}]}`))
	f.Add([]byte(`[0,1,0,2,0]`), []byte(`[0,0,1,2,0,0]`))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		var a, b any
		if utiljson.Unmarshal(one, &a) != nil || utiljson.Unmarshal(other, &b) != nil {
			return
		}
		for _, pair := range [][2]any{{a, b}, {b, a}, {a, a}} {
			changes := differences(plain(pair[0]), plain(pair[1]))
			require.Equal(t, Equal(pair[0], pair[1]), len(changes) == 0)
			require.True(t, Equal(pair[1], apply(pair[0], changes)), lines(changes))
		}
	})
}

func mentions(content any, text string) (out []string) {
	for m := range Mentions(content, regexp.MustCompile(text), regexp.MustCompile(`<redacted \d+ bytes>`)) {
		out = append(out, fmt.Sprintf("%s %d: %s", m.Path, m.Times, m.Line))
	}
	return out
}

func TestMentions(t *testing.T) {
	object := parse(t, `
metadata: {name: web, labels: {app: web, web.example/tier: front}, annotations: {web: ""}}
spec:
  replicas: 8080
  paused: true
  containers:
  - {name: web, image: old.example/web:1, command: null}
  - {name: side, args: [a, "old.example/b old.example/c"]}
  token: <redacted 12 bytes>
data:
  run.sh: |
    first
    pull old.example/x
    pull old.example/y`)
	require.Equal(t, []string{
		`data["run.sh"] 2: pull old.example/x`,
		`spec.containers[name=web].image 1: old.example/web:1`,
		`spec.containers[name=side].args[1] 2: old.example/b old.example/c`,
	}, mentions(object, `old\.example`))
	require.Equal(t, []string{
		`metadata.annotations.web 1: web`, // only the name
		`metadata.labels.app 1: web`,
		`metadata.labels["web.example/tier"] 1: web.example/tier`,
		`metadata.name 1: web`,
		`spec.containers[name=web].image 1: old.example/web:1`,
		`spec.containers[name=web].name 1: web`,
	}, mentions(object, `web`))
	require.Equal(t, []string{`spec.replicas 1: 8080`}, mentions(object, `8080`))
	require.Equal(t, []string{` 1: 1500000`}, mentions(1.5e6, `15`), "as JSON writes it")
	require.Equal(t, []string{`spec.paused 1: true`}, mentions(object, `true`))
	require.Equal(t, []string{`spec.containers 1: containers`}, mentions(object, `containers`))
	require.Empty(t, mentions(object, `redacted`), "what stands for a secret is no value")
	require.Empty(t, mentions(object, `12`))
	require.Empty(t, mentions(nil, `.`))
	require.Equal(t, []string{` 1: bytes`}, mentions("bytes", `bytes`))
}

// TestMentionsCut checks that a long line is cut around the text, between characters.
func TestMentionsCut(t *testing.T) {
	for m := range Mentions(strings.Repeat("é", 1000)+"x"+strings.Repeat("é", 1000), regexp.MustCompile("x"),
		regexp.MustCompile("<>")) {
		require.Equal(t, "..."+strings.Repeat("é", 50)+"x"+strings.Repeat("é", 50)+"...", m.Line)
	}
	begun := time.Now()
	require.Len(t, mentions(strings.Repeat("<redacted 1 bytes>x", 100_000), "x"), 1)
	require.Less(t, time.Since(begun), 3*time.Second, "the time is proportional to the length")
	deep := any("x")
	for range 10_000 {
		deep = []any{deep}
	}
	require.Len(t, mentions(deep, "x"), 1)
	stopped := 0
	for range Mentions([]any{"x", "x", map[string]any{"x": map[string]any{}}}, regexp.MustCompile("x"),
		regexp.MustCompile("<>")) {
		stopped++
		break
	}
	require.Equal(t, 1, stopped)
}
