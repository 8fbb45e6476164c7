package render

import (
	"bytes"
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// nested returns an object with nested levels, the last one a string.
func nested(levels int) map[string]any {
	obj := map[string]any{"a": "end"}
	for range levels - 2 {
		obj = map[string]any{"a": obj}
	}
	return obj
}

// TestDeepObjects checks that a deeply nested object is printed on one line, and still decodes
// equal.
func TestDeepObjects(t *testing.T) {
	for levels, lines := range map[int]bool{3: true, deepest: true, deepest + 1: false, 5000: false} {
		obj := nested(levels)
		text, err := encode(obj, "", kubectl)
		require.NoError(t, err)
		require.Equal(t, lines, bytes.Count(text, []byte("\n")) > 1, levels)
		require.Less(t, len(text), 1<<20)
		var back map[string]any
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, obj, back)

		text, err = YAML(obj)
		require.NoError(t, err)
		require.Less(t, len(text), 1<<20)
		if levels <= deepest+1 { // the library that reads YAML has its own limit
			back = nil
			require.NoError(t, yaml.Unmarshal(text, &back))
			require.Equal(t, obj, back)
		}
	}
}

// TestContent checks that the JSON of an object is that of encoding/json and json.Indent.
func TestContent(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":null,"b":true,"c":[],"d":{},"e":[[],[{}]],"f":-7,"g":1e21,"h":0.5}`,
		`{"b":[1,2,{"z":null,"a":"<&>"}],"a":{"c":"x"}}`, `{"\"":"\\","\\\"{":"[,:]}","a b":" \\\\\" \n\t\b\u0001"}`,
		"{\"\u00e9\":[\"\x7f\",\"a\u009b{\",\"\u00e9\u202e\",\"\u2028\\n\"]}",
	} {
		obj := map[string]any{"bytes": "a\xff\xc2"}
		require.NoError(t, utiljson.Unmarshal([]byte(text), &obj))
		plain, err := line(obj)
		require.NoError(t, err)
		var want bytes.Buffer
		require.NoError(t, json.Indent(&want, plain, "    ", "  "))
		got, ok := indentedContent(obj, "    ", "  ")
		require.True(t, ok)
		require.Equal(t, string(escapeControls(want.Bytes())), string(got))
	}
	for name, value := range map[string]any{"another type": 7, "no map": map[string]any(nil), "no list": []any(nil),
		"no number": math.NaN(), "deep": nested(deepest)} {
		_, ok := indentedContent(map[string]any{"a": value}, "", "  ")
		require.False(t, ok, name)
	}
}

// TestWideObjects checks that an object with many deep lines is printed on one line too, even if it
// is not too deep.
func TestWideObjects(t *testing.T) {
	wide := make([]any, 50_000)
	for i := range wide {
		wide[i] = "x"
	}
	for levels, lines := range map[int]bool{2: true, 180: false} {
		obj := map[string]any{"a": wide}
		for range levels {
			obj = map[string]any{"a": obj}
		}
		line, err := json.Marshal(obj)
		require.NoError(t, err)
		for name, print := range map[string]func() ([]byte, error){
			"JSON":         func() ([]byte, error) { return encode(obj, "", kubectl) },
			"JSON of list": func() ([]byte, error) { return encode(obj, "        ", kubectl) },
			"YAML":         func() ([]byte, error) { return YAML(obj) },
			"document":     func() ([]byte, error) { return encode(obj, "    ", "  ") },
		} {
			text, err := print()
			require.NoError(t, err, name)
			require.Equal(t, lines, bytes.Count(text, []byte("\n")) > 1, name)
			require.Less(t, len(text), freeBlanks+20*len(line), name)
			var back map[string]any
			require.NoError(t, yaml.Unmarshal(text, &back), name)
			require.Equal(t, obj, back, name)
		}
	}
}

// TestLongRows checks that a few long rows are printed before they take much memory.
func TestLongRows(t *testing.T) {
	var out bytes.Buffer
	table := NewObjectTable(&out, []metav1.TableColumnDefinition{{Name: "A"}}, printers.PrintOptions{})
	row := []any{strings.Repeat("x", maxRow)}
	for n := range chunkBytes / maxRow {
		require.Zero(t, out.Len(), n)
		require.NoError(t, table.Row(row))
	}
	require.Greater(t, out.Len(), chunkBytes)
	require.Empty(t, table.rows)
	for n := range chunkRows {
		require.Len(t, table.rows, n)
		require.NoError(t, table.Row([]any{"x"}))
	}
	require.Empty(t, table.rows)
}

// TestLongCells checks that one long cell does not make every row of its table as long.
func TestLongCells(t *testing.T) {
	var out bytes.Buffer
	page, rows := NewPage(&out), [][]any{{strings.Repeat("x", 1<<20), "a"}}
	for range 1000 {
		rows = append(rows, []any{"short", "b"})
	}
	page.Table(nil, rows...)
	require.NoError(t, page.Flush())
	require.Less(t, out.Len(), 1001*(maxCell+20))
	require.Contains(t, out.String(), "xxx...  a")
	require.Equal(t, "\"\\x1b\"", Cell("\x1b", 1))
}

// TestManyValuesInYAML checks that an object of very many small values is printed in JSON, because
// YAML would need gigabytes.
func TestManyValuesInYAML(t *testing.T) {
	for count, lines := range map[int]bool{1000: true, 400_000: false} {
		many := make([]any, count)
		for i := range many {
			many[i] = []any{}
		}
		obj := map[string]any{"a": many}
		var text []byte
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text, err := YAML(obj)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<27))
		require.Equal(t, lines, bytes.Count(text, []byte("\n")) > 1)
		if !lines {
			var back map[string]any
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, obj, back)
		}
	}
}
