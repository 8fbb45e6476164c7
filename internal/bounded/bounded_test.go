package bounded

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// program compiles an expression.
func program(
	t *testing.T, base *environment.EnvSet, expression string, options ...cel.ProgramOption,
) (cel.Program, error) {
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("d", cel.DynType), cel.Variable("s", cel.StringType)},
	})
	require.NoError(t, err)
	env := set.StoredExpressionsEnv()
	ast, issues := env.Compile(expression)
	require.NoError(t, issues.Err(), expression)
	return env.Program(ast, append(options, cel.CostTracking(&library.CostEstimator{}))...)
}

// evaluate evaluates an expression over the variables, and returns the value and cost.
func evaluate(
	t *testing.T, base *environment.EnvSet, expression string, variables map[string]any, options ...cel.ProgramOption,
) (ref.Val, uint64, error) {
	program, err := program(t, base, expression, options...)
	require.NoError(t, err, expression)
	result, details, err := program.ContextEval(t.Context(), variables)
	return result, *details.ActualCost(), err
}

// allocated returns the bytes allocated by fn.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// On an API server these expressions produce gigabytes or never end.
func TestNoExpressionTakesMuchMemory(t *testing.T) {
	variables := map[string]any{"s": strings.Repeat("a", 1000), "d": strings.Repeat("a", 1000)}
	chain := func(start, step string) string { return start + strings.Repeat(step, 40) }
	for name, expression := range map[string]string{
		"replace":            `s.replace("a", s).replace("a", s).replace("a", s).size() > 0`,
		"replace, dynamic":   `d.replace("a", d).replace("a", d).replace("a", d).size() > 0`,
		"replace, counted":   `s.replace("a", s, 900).replace("a", s, 900000).replace("a", s, 9000000).size() > 0`,
		"replace of nothing": `s.replace("", s).replace("", s).replace("", s).size() > 0`,
		"join": `["a","a","a","a","a","a","a","a","a","a"].map(x, s.replace("a", ` +
			`s)).join(s.replace("a", s)).size() > 0`,
		"text +":             chain(`[d]`, `.map(x, x+x)`) + `.size() > 0`,
		"list +":             chain(`[["a"]]`, `.map(x, x+x)`) + `[0].join("").size() > 0`,
		"equal":              chain(`[[0]]`, `.map(x, [x, x])`) + ` == ` + chain(`[[0]]`, `.map(x, [x, x])`),
		"unequal":            chain(`[[0]]`, `.map(x, [x, x])`) + ` != ` + chain(`[[0]]`, `.map(x, [x, x])`),
		"in":                 chain(`[[0]]`, `.map(x, [x, x])`) + ` in [` + chain(`[[0]]`, `.map(x, [x, x])`) + `]`,
		"format of a list":   `"%s".format([` + chain(`[[0]]`, `.map(x, [x, x])`) + `]).size() > 0`,
		"format of digits":   `"%.1000000000f".format([1.0]).size() > 0`,
		"exponent of digits": `"%.1000000000e".format([1.0]).size() > 0`,
		"flatten":            chain(`[[0]]`, `.map(x, [x, x])`) + `.flatten(39).size() > 0`,
		"many results":       `[` + strings.Repeat(`1,`, 999) + `1].map(x, s.replace("a", s)).size() > 0`,
		"no matter":          `s.replace("a", s).replace("a", s).replace("a", s).size() > 0 || true`,
		"quote":              `strings.quote(s.replace("a", s).replace("aa", "\n\n\n\n")).size() > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := allocated(func() { _, _, err = evaluate(t, Environment(), expression, variables) })
			t.Log(took>>20, err)
			require.Less(t, took, uint64(100<<20))
			require.True(t, name == "quote" || err != nil)
		})
	}
}

// On an API server these calls take minutes, each at a small cost.
func TestNoCallTakesLong(t *testing.T) {
	repeated := strings.Repeat("(a{0,900})", 5) + " b"
	variables := map[string]any{"s": strings.Repeat("a", 64<<10), "d": map[string]any{
		"p": repeated, "s": strings.Repeat("a", 64<<10), "half": strings.Repeat("a", 32<<10) + "b", "n": "1e999999999",
		"m": "11111111111111111111e999999999",
	}}
	for _, expression := range []string{
		`s.matches("` + repeated + `")`, `d.s.matches("` + repeated + `")`, `matches(s, "` + repeated + `")`,
		`s.matches(d.p)`, `d.s.matches(d.p)`,
		`s.find("` + repeated + `") == ""`, `s.find(d.p) == ""`, `d.s.find(d.p) == ""`,
		`s.findAll("` + repeated + `") == []`, `s.findAll(d.p) == []`,
		`s.matches("` + repeated + `") || true`, `s.matches("` + strings.Repeat("(ab|ba)*", 200) + `c")`,
		`s.findAll("a.*b|a").size() > 0`, `s.findAll("a.*b|a", 60000).size() > 0`, `d.s.findAll("a.*b|a").size() > 0`,
		`d.s.indexOf(d.half) > 0`, `d.s.lastIndexOf("b" + d.half.substring(0, 32000)) > 0`, `s.indexOf(d.half, 7) > 0`,
		`quantity(d.n).isGreaterThan(quantity("2"))`, `isQuantity(d.m)`, `quantity(d.m).isInteger()`,
		`isQuantity(d.s.replace("a", "1"))`,
	} {
		_, _, err := evaluate(t, Environment(), expression, variables)
		require.True(t, Is(err), "%s: %v", expression, err)
	}
	_, err := program(t, Environment(), `s.findAll("(") == []`) // as on a server, which compiles constants
	require.ErrorContains(t, err, "missing closing )")
	variables["s"] = strings.Repeat("a", 2000)
	for expression, least := range map[string]uint64{
		`s.matches("` + repeated + `")`: 200_000, `s.find("` + repeated + `") == ""`: 200_000,
		`s.findAll("a.*b|a", 100).size() > 0`:                   20_000,
		`[1, 2, 3].exists(x, "a".matches("` + repeated + `c"))`: 5_000, `[1, 2, 3].exists(x, "a".matches(d.p))`: 5_000,
		`d.s.substring(0, 30000).indexOf(d.half.substring(15000)) == 0`: 400_000,
	} {
		_, cost, err := evaluate(t, Environment(), expression, variables)
		require.NoError(t, err, expression)
		require.Greater(t, cost, least, expression)
	}
}

// Map keys are in order, regardless of the source of the map.
func TestMapsAreSorted(t *testing.T) {
	many := map[string]any{}
	for i := range 1000 {
		many[fmt.Sprintf("k%03d", i)] = int64(i)
	}
	variables := map[string]any{"s": "", "d": many}
	for expression, want := range map[string]string{
		`{"c": 1, "a": 2, "d": 3, "b": 4}.map(k, k).join("")`:                  "abcd",
		`{3: "c", 1: "a", 2: "b"}.map(k, string(k)).join("")`:                  "123",
		`{"c": 1, "a": 2, "b": 3}.transformList(k, v, k + string(v)).join("")`: "a2b3c1",
		`d.map(k, k).filter(k, k.endsWith("99")).join(" ")`: "k099 k199 k299 k399 k499 k599 k699 " +
			"k799 k899 k999", `dyn({true: "t", false: "f"}).map(k, string(k)).join("")`: "falsetrue",
		`{dyn("b"): 1, dyn(7): 2, dyn("a"): 3, dyn(1u): 4}.map(k, string(k)).join("")`: "17ab",
		`d.filter(k, d[k] < 3).join("")`:                                               "k000k001k002",
	} {
		for range 5 {
			result, _, err := evaluate(t, Environment(), expression, variables)
			require.NoError(t, err, expression)
			require.Equal(t, want, result.Value(), expression)
		}
	}
	_, cost, err := evaluate(t, Environment(), `d.all(k, d.exists(l, true))`, variables) // the inner loops end early
	require.NoError(t, err)
	require.Greater(t, cost, uint64(100_000))
}

// Results and errors equal those of a server's environment.
func TestSmallExpressionsAreAsOnAServer(t *testing.T) {
	variables := map[string]any{"s": "a-b", "d": map[string]any{"l": []any{"x", int64(2)}, "t": "text",
		"m": map[string]any{"a": 1.5}}}
	Environment() // replaces the library's environment
	environment.DisableBaseEnvSetCachingForTests()
	plain := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	for _, expression := range []string{
		`s + s`, `d.t + s`, `d.l + d.l`, `d.l + [1]`, `d.t + 1`, `d.m + d.m`, `b"a" + b"b"`, `1 + 2`, `1.5 + 2.5`,
		`duration("1s") + duration("2s")`,
		`s.replace("a", "bb")`, `s.replace("", "-", 2)`, `d.t.replace("t", "")`, `d.m.replace("t", "")`,
		`["a", "b"].join(",")`, `d.l.join(",")`,
		`"%s %.2f %d".format([s, 1.5, 3])`, `"%s".format([d])`, `s.split("-")`, `d.t.split("")`,
		`"abc".findAll("[a-b]")`, `strings.quote(s)`,
		`d == d`, `d != d`, `d.l == d.m`, `1 in d.l`, `"x" in d.l`, `"l" in d`, `d.nothing == 1`, `d.nothing + 1`,
		`[[[1]], [[2]]].flatten(2)`, `[2, 1].sort()`, `[1, 1].distinct()`, `sets.contains([1, 2], [1])`,
		`sets.equivalent([1], [1, 1])`,
		`sets.intersects(d.l, ["x"])`, `[3, 1].sortBy(x, x)`, `[1, 2].indexOf(2)`, `"abab".lastIndexOf("b")`,
		`[1].includes(1)`,
		`quantity("1").add(quantity("2")).isGreaterThan(quantity("2"))`, `1 + d.t`,
		`timestamp("2026-01-01T00:00:00Z") + duration("1s")`,
		`d.l.all(x, x != s && (x == "y" || x != d.t))`,
		`[1, 2, 3].exists(x, [4, 5].all(y, x + y > 6 || x < y)) && d.l.exists_one(x, x == 2)`,
		`s.matches("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")`, `s.matches(d.t)`, `d.t.find("e.{1,3}")`,
		`d.t.find(s + "{2}")`, `d.m.matches("a")`, `s.matches(d.t + "(")`,
		`"a1b2".findAll("[0-9]{1,2}")`, `d.t.findAll("t", 1)`, `d.t.findAll(s, 0)`, `"abc".indexOf("c", 1)`,
		`d.t.lastIndexOf("t", 2)`, `d.t.indexOf("t", 9)`,
		`quantity("12e3").isLessThan(quantity("1Ei"))`, `isQuantity("1e")`, `isQuantity("+1E-3")`, `d.m.findAll("a")`,
		`d.t.findAll(d.t + "(")`,
		`d.l.map(x, ["x", s].filter(y, x == y)).size() > 0 ? d.l.filter(x, x != 2) : []`,
		`d.m.all(k, v, k == "a" && v > 1.0)`,
	} {
		want, wantCost, wantErr := evaluate(t, plain, expression, variables)
		got, cost, err := evaluate(t, Environment(), expression, variables)
		require.Equal(t, wantErr == nil, err == nil, "%s: %v, %v", expression, wantErr, err)
		if err == nil {
			require.Equal(t, types.True, types.Equal(want, got), "%s: %v, %v", expression, want, got)
			require.Equal(t, wantCost, cost, expression)
		} else {
			require.Equal(t, wantErr.Error(), err.Error(), expression)
		}
	}
}

// A loop leaves no values on the cost stack, which each use of a name would search.
func TestLoopsLeaveNothing(t *testing.T) {
	deepest := 0
	probe := cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if c, is := i.(interpreter.InterpretableConst); is && c.Value() == types.Int(7) {
			return probed{i, &deepest}, nil
		}
		return i, nil
	})
	variables := map[string]any{"s": "", "d": make([]int64, 10_000)}
	for _, expression := range []string{
		`d.all(x, x < 7)`, `d.exists(x, x > 7)`, `d.exists_one(x, x == 7)`, `d.map(x, x + 7) != []`,
		`d.filter(x, x < 7) != []`, `d.all(i, x, x < 7)`,
		`d.map(x, x < 7, [1, 2].exists(y, y == 7)) != []`,
	} {
		deepest = 0
		_, _, err := evaluate(t, Environment(), expression, variables, probe)
		require.NoError(t, err, expression)
		require.Positive(t, deepest, expression)
		require.Less(t, deepest, 20, expression)
	}
}

// probed is a constant that records the depth of the cost stack.
type probed struct {
	interpreter.InterpretableV2
	deepest *int
}

func (p probed) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	*p.deepest = max(*p.deepest, len(*costStack(frame)))
	return p.InterpretableV2.Exec(frame)
}

// No code of the module evaluates CEL in an unbounded environment.
func TestOnlyEnvironment(t *testing.T) {
	const root = "../.."
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(path) == "bounded.go" {
			return err
		}
		code, err := os.ReadFile(path)
		require.NotContains(t, string(code), "MustBaseEnvSet", path)
		require.NotContains(t, string(code), "cel.NewEnv(", path)
		return err
	}))
}
