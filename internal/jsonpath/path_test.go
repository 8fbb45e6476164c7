package jsonpath

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	theirs "k8s.io/client-go/util/jsonpath"

	"github.com/etcdshift/etcdshift/encoding"
)

func parse(t testing.TB, template string) *Path {
	t.Helper()
	p, err := Parse(template)
	require.NoError(t, err, template)
	return p
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	obj, _, err := encoding.DecodeObject([]byte(text))
	require.NoError(t, err)
	return obj
}

// compareWithClientGo runs a template with both libraries. Maps have one key: their order is
// random.
func compareWithClientGo(t *testing.T, template string, content any) (agree bool) {
	t.Helper()
	library := theirs.New("x").AllowMissingKeys(true)
	if library.Parse(template) != nil {
		_, err := Parse(template)
		require.Error(t, err, template)
		return false
	}
	want, wantErr, panicked := execute(library, content)
	if panicked { // such as an index in a range over nothing
		return false
	}
	var got bytes.Buffer
	err := parse(t, template).Print(&got, NewWork(t.Context(), content), content)
	require.Equal(t, wantErr == nil, err == nil, "%s: %v; here %v", template, wantErr, err)
	if err == nil {
		require.Equal(t, want, got.String(), template)
	}
	return err == nil
}

func execute(library *theirs.JSONPath, content any) (text string, err error, panicked bool) {
	defer func() { panicked = recover() != nil }()
	var out bytes.Buffer
	err = library.Execute(&out, content)
	return out.String(), err, false
}

func TestLikeClientGo(t *testing.T) {
	content := object(
		t, `{"kind":"List","items":[{"a":{"b":[1,2,3,{"c":"x"}]},"n":1,"s":"text"},{"a":{"b":[]},"n":2.5,"s":null},{"n":true,"list":[[1],[2,[3]]]}],
		"text":"abc","empty":{},"none":null,"list":[5,6,7,8],"d":{"d":{"d":{"d":"end"}}}}`)
	for _, template := range []string{
		"", "text", "{}", "{@}", "{$}", "{.}", "{.kind}", "{.items[0].a}", "{.items[*].n}", "{.items[*].a.b[0]}",
		"{.missing}", "{.missing[0]}",
		"{.list[1:3]}", "{.list[-1]}", "{.list[-2:]}", "{.list[:2]}", "{.list[::2]}", "{.list[0:4:3]}", "{.list[4]}",
		"{.list[9]}", "{.list[2:1]}",
		"{.list[2:2]}", "{.list[:0]}", "{.list[0,2]}", "{.list[0]}{.list[1]}", "{.text[0]}", "{.text.*}", "{.text[*]}",
		"{.none}", "{.none.x}", "{.none[0]}",
		"{.items[?(@.n==1)].s}", "{.items[?(@.n>1)].n}", "{.items[?(@.s)].n}", "{.items[?(@.a.b[9])].n}",
		"{.items[?(@.s=='text')].n}", "{.list[?(@<7)]}",
		"{.list[?(@>=6)]}", "{.list[?(@!=6)]}", "{.list[?(@<=6)]}", "{.kind[?(@.a)]}", "{.items[?(@.n==true)].list}",
		"{.items[?(@..c)].n}",
		"{.items[?(@.a.b[*]==1)]}", "{['kind','text']}", "{['kind','kind']['x']}", "{.d..d}", "{..d}", "{..c}",
		"{.d..}", "{..d..d}", "{.d..d..d..d}",
		"{range .items[*]}{.n}{'\\n'}{end}", "{range .items[*]}[{.n}, {.s}]{end}done",
		"{range .items[*]}{range .a.b[*]}{@};{end}|{end}{.kind}",
		"{range .missing[*]}{.n}{end}after", "{range .items[*]}{.n}", "{end}", "{range .items[*]}{end}{end}",
		"{range .items[*]}{.s}{@.n}{end}",
		"{range .list[*]}{@}{end}{range .items[*]}{.n}{end}", "{range .items[*]}{range .list[*]}{@}{end}{end}", "{1}",
		"{true}", "{1.5}", "{nonsense}",
		"{range .none}{@}{end}", "{range .items[*].s}{@}{end}", "{range .items[*]}{.list[0]}{end}",
		"{range .missing}{[0]}{end}",
	} {
		compareWithClientGo(t, template, content)
	}
}

// randomTemplate joins words that fit randomContent.
func randomTemplate(r *rand.Rand) string {
	words := []string{".a", ".b", "..", "..a", "..b", ".*", "[*]", "[0]", "[-1]", "[1:]", "[:2]", "[::2]", "['a','b']",
		"[0,1]", "[?(@.a)]",
		"[?(@.a==1)]", "[?(@>1)]", "[?(@.b[0]!=2)]", "[?(@..a)]", "}{", "}{end}{", "}{range .a[*]}{", "}{range [*]}{",
		"} x {", "@", "[?(@.a[3])]"}
	text := "{"
	for range 1 + r.IntN(6) {
		text += words[r.IntN(len(words))]
	}
	return text + "}"
}

func randomContent(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case depth == 0 || n < 3:
		return []any{nil, "text", "", int64(1), 2.5, true, int64(7)}[r.IntN(7)]
	case n < 6:
		return map[string]any{[]string{"a", "b"}[r.IntN(2)]: randomContent(r, depth-1)}
	}
	list := []any{}
	for range r.IntN(4) {
		list = append(list, randomContent(r, depth-1))
	}
	return list
}

func TestRandomPathsLikeClientGo(t *testing.T) {
	agreed := 0
	for seed := range uint64(6_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		template, content := randomTemplate(r), map[string]any{"a": randomContent(r, 5)}
		if compareWithClientGo(t, template, content) {
			agreed++
		}
	}
	require.Greater(t, agreed, 900)
}

// nested returns {"a":{"a":...}}.
func nested(levels int) map[string]any {
	obj := map[string]any{"a": "end"}
	for range levels - 1 {
		obj = map[string]any{"a": obj}
	}
	return obj
}

func TestWorkIsBounded(t *testing.T) {
	union := "{" + strings.Repeat("['a','a']", 30) + "}"
	for template, levels := range map[string]int{"{..a..a..a..a..a..a}": 60, "{..a..a}": 5000, "{..}": 9000, union: 60,
		"{range ..a}{range ..a}{range ..a}{range ..a}{range ..a}x{end}{end}{end}{end}{end}": 60,
		"{range ..}{range ..}{end}{end}": 9000} {
		content := nested(levels)
		var err error
		bytes := allocated(func() {
			err = parse(t, template).Print(&bytes.Buffer{}, NewWork(t.Context(), content),
				content)
		})
		require.ErrorIs(t, err, ErrTooMuch, template)
		require.Less(t, bytes, uint64(1<<30), template)
	}
	content := nested(60)
	list, err := parse(t, "{..a..a}").Find(NewWork(t.Context(), content), content)
	require.NoError(t, err)
	require.Len(t, list[0], 60*59/2)
}

// TestWorkIsShared checks that a path that finds too much leaves work for the next path, within the
// bounds of all paths.
func TestWorkIsShared(t *testing.T) {
	content := nested(60)
	w, bomb, honest := NewWork(t.Context(), content), parse(t, "{..a..a..a..a..a..a}"), parse(t, "{.a}")
	for n := range 100 {
		_, err := bomb.Find(w, content)
		require.ErrorIs(t, err, ErrTooMuch)
		_, err = honest.Find(w, content)
		if n < paths-1 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrTooMuch, n)
		}
	}
}

// TestPrintIsBounded checks that a string that repeats others' bytes is counted by its length.
func TestPrintIsBounded(t *testing.T) {
	long := map[string]any{"text": strings.Repeat("x", 1<<20)}
	for range 2000 {
		long = map[string]any{"a": long}
	}
	err := parse(t, "{..}").Print(&bytes.Buffer{}, NewWork(t.Context(), long), long)
	require.ErrorIs(t, err, ErrTooMuch)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	content := nested(60)
	_, err := parse(t, "{..a..a..a..a}").Find(NewWork(ctx, content), content)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, parse(t, "{.a}").Print(&bytes.Buffer{}, NewWork(ctx, content), content), context.Canceled)
}

// TestOrder checks that maps are visited by key, in the same order each time.
func TestOrder(t *testing.T) {
	content := map[string]any{}
	for i := range 50 {
		content[fmt.Sprintf("k%02d", i)] = int64(i)
	}
	var want []any
	for i := range 50 {
		want = append(want, int64(i))
	}
	list, err := parse(t, "{.*}").Find(NewWork(t.Context(), content), content)
	require.NoError(t, err)
	require.True(t, reflect.DeepEqual(want, list[0]))
}

// allocated returns the allocated bytes of fn.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
