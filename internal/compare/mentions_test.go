package compare

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		`metadata.annotations.web 1: web`, // the name alone
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

// TestMentionsCut: a long line is cut around the text, between characters.
func TestMentionsCut(t *testing.T) {
	for m := range Mentions(strings.Repeat("é", 1000)+"x"+strings.Repeat("é", 1000), regexp.MustCompile("x"), regexp.MustCompile("<>")) {
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
	for range Mentions([]any{"x", "x", map[string]any{"x": map[string]any{}}}, regexp.MustCompile("x"), regexp.MustCompile("<>")) {
		stopped++
		break
	}
	require.Equal(t, 1, stopped)
}
