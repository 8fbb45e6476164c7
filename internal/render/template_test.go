package render

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/internal/jsonpath"
)

// TestGoTemplates checks that Go templates print the same as kubectl's printer.
func TestGoTemplates(t *testing.T) {
	content := map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{"name": "a", "n": int64(12345678), "data": "eA==", "list": []any{int64(1), "x", nil}},
		map[string]any{"name": "b", "f": 1.5, "yes": true, "none": nil},
	}}
	for _, text := range []string{
		"", "text", "{{.kind}}", "{{range .items}}{{.name}} {{.n}}{{\"\\n\"}}{{end}}",
		"{{range $i, $e := .items}}{{$i}}={{$e.name}};{{else}}none{{end}}",
		"{{range .missing}}x{{else}}none{{end}}", "{{with .kind}}[{{.}}]{{else}}no{{end}}",
		"{{if .none}}x{{else if .kind}}y{{else}}z{{end}}",
		"{{define \"one\"}}<{{.name}}>{{end}}{{range .items}}{{template \"one\" .}}{{end}}",
		"{{block \"b\" .}}{{.kind}}{{end}}",
		"{{range .items}}{{- .name -}}  {{end}}",
		"{{/* a comment */}}{{range .items}}{{break}}{{end}}{{range .items}}{{continue}}{{end}}",
		"{{exists . \"items\" 0 \"name\"}}{{exists . \"items\" 5}}{{exists . \"x\" \"y\"}}{{exists .items 0 \"list\" " +
			"2}}{{exists .items -1}}{{exists .kind 0}}{{exists .kind 9}}{{exists .kind 0 0}}",
		"{{(index .items 0).data | base64decode}}", "{{(index .items 0).name | base64decode}}", "{{index .items 7}}",
		"{{.kind.x}}", "{{len .items}}",
		`{{printf "%s %v %[1]s" .kind nil}}{{print 1 2 .none}}{{println .kind}}{{html "<" .kind}}{{js ` +
			`"'\\"}}{{urlquery "a b"}}`, `{{printf 1}}`,
	} {
		theirs, err := printers.NewGoTemplatePrinter([]byte(text))
		require.NoError(t, err, text)
		theirs.AllowMissingKeys(true)
		var want, got bytes.Buffer
		wantErr := theirs.PrintObj(&unstructured.Unstructured{Object: content}, &want)
		run, err := NewTemplate("go-template", text)
		require.NoError(t, err, text)
		err = run(t.Context(), &got, content)
		require.Equal(t, wantErr == nil, err == nil, "%s: %v", text, err)
		if err == nil {
			require.Equal(t, want.String(), got.String(), text)
		}
	}
}

// cancelling cancels its context at a write.
type cancelling struct{ cancel func() }

func (c cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

// TestTemplatesStop checks that endless templates stop by themselves or with the context, with and
// without writes.
func TestTemplatesStop(t *testing.T) {
	items := make([]any, 300)
	for i := range items {
		items[i] = map[string]any{"name": strings.Repeat("x", i)}
	}
	content := map[string]any{"items": items}
	quiet := "{{range $.items}}"
	for range 8 {
		quiet += "{{range $.items}}"
	}
	quiet += strings.Repeat("{{end}}", 9)
	for _, text := range []string{quiet, `{{define "a"}}{{template "a" .}}{{template "a" .}}{{end}}{{template "a" .}}`,
		`{{range 1000000000}}{{if .}}{{end}}{{end}}`,
		`{{range $.items}}{{range $.items}}{{range $.items}}{{range $.items}}{{$}}{{end}}{{end}}{{end}}{{end}}`} {
		run, err := NewTemplate("go-template", text)
		require.NoError(t, err)
		err = run(t.Context(), &bytes.Buffer{}, content)
		require.Error(t, err, text)
		ctx, cancel := context.WithCancel(t.Context())
		err = run(ctx, cancelling{cancel: cancel}, content)
		require.ErrorIs(t, err, context.Canceled, text)
		cancel()
	}
	for _, call := range []string{`print $x $x`, `println $x $x`, `printf "%s%s" $x $x`, `printf "%[1]s%[1]s" $x`,
		`js $x`, `html $x $x`, `urlquery $x $x`} {
		run, err := NewTemplate("go-template", `{{$x := "\\"}}{{range 29}}{{$x = `+call+`}}{{end}}{{len $x}}`)
		require.NoError(t, err)
		require.ErrorIs(t, run(t.Context(), &bytes.Buffer{}, content), ErrEndless, call)
	}
	run, err := NewTemplate("jsonpath", "{..name}{range .items[*]}{..}{range ..}{..}{end}{end}")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, run(ctx, cancelling{cancel: cancel}, content), context.Canceled)
	require.NotErrorIs(t, run(t.Context(), &bytes.Buffer{}, content), jsonpath.ErrTooMuch)
}
