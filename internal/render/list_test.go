package render

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestJSONOnTerminal checks that terminal control characters are escaped in every JSON, also in
// field names, and that the decoded values stay equal.
func TestJSONOnTerminal(t *testing.T) {
	for given, want := range map[string]string{
		"plain <&> \u00a0\u00e4\u2014\u4e16\U0001f600\u0639": "plain <&> \u00a0\u00e4\u2014\u4e16\U0001f600\u0639",
		"\x1b[2J\x7f":                    `\u001b[2J\u007f`,
		"\u0080x\u009b2J\u009f":          `\u0080x\u009b2J\u009f`,
		"\u2028\u2029\u202a\u202e\u2027": `\u2028\u2029\u202a\u202e` + "\u2027",
		"\u2066\u2069\u2065\u206a":       `\u2066\u2069` + "\u2065\u206a",
		"\u200e\u200f\u061c\u200d\u061b": `\u200e\u200f\u061c` + "\u200d\u061b",
		"\\\u009b":                       `\\\u009b`,
		"a\xc2":                          "a\\ufffd",
	} {
		value := map[string]any{"k" + given: []string{given}}
		text := map[string]func(*bytes.Buffer) error{
			"document": func(b *bytes.Buffer) error { return JSON(b, value) },
			"line":     func(b *bytes.Buffer) error { return write(b)(encode(value, "", "")) },
			"part": func(b *bytes.Buffer) error {
				return json.NewEncoder(b).Encode(
					json.RawMessage(inline(value)))
			},
			"stream": func(b *bytes.Buffer) error {
				s := NewList(b, "json")
				if err := s.Begin(value, "list"); err != nil {
					return err
				}
				if err := s.Add(value); err != nil {
					return err
				}
				return s.End(map[string]any{"tail": given})
			},
		}
		for name, print := range text {
			var b bytes.Buffer
			require.NoError(t, print(&b))
			if name != "part" { // encoded again, with "<" escaped
				require.Contains(t, b.String(), `"k`+want+`"`, name)
				require.Contains(t, b.String(), `"`+want+`"`, name)
			}
			var back map[string]any
			require.NoError(t, json.Unmarshal(b.Bytes(), &back), name)
			require.Equal(t, []any{string([]rune(given))}, back["k"+string([]rune(given))], name)
		}
		require.Contains(t, inline(value), want)
	}
	require.Error(t, JSON(&bytes.Buffer{}, func() {}))
	require.Error(t, write(&bytes.Buffer{})(encode(func() {}, "", "")))
	require.Equal(t, "?", inline(func() {}))
}

// TestColumnNames checks that unprintable column names of a CustomResourceDefinition are quoted.
func TestColumnNames(t *testing.T) {
	given := []metav1.TableColumnDefinition{{Name: "Age"}, {Name: "\u009b2J"}}
	require.Equal(t, []metav1.TableColumnDefinition{{Name: "Age"}, {Name: `"\u009b2J"`}}, Columns(given))
	require.Equal(t, "\u009b2J", given[1].Name)
}

// TestList checks that elements written one by one give the same document as the whole list.
func TestList(t *testing.T) {
	type document struct {
		A    string `json:"a"`
		List []any  `json:"list"`
		N    int    `json:"n"`
	}
	for _, list := range [][]any{{}, {1}, {"<x>", map[string]any{"a": []int{1}}}} {
		for _, format := range []string{"json", "yaml", "jsonl"} {
			var out, whole bytes.Buffer
			l := NewList(&out, format)
			require.NoError(t, l.Begin(map[string]any{"a": "<"}, "list"))
			for _, v := range list {
				require.NoError(t, l.Add(v))
			}
			require.NoError(t, l.End(map[string]any{"n": len(list)}))
			want := document{"<", list, len(list)}
			switch format {
			case "json":
				require.NoError(t, JSON(&whole, want))
				require.Equal(t, whole.String(), out.String())
			case "yaml":
				require.NoError(t, JSON(&whole, want))
				text, err := yaml.YAMLToJSON(out.Bytes())
				require.NoError(t, err)
				require.JSONEq(t, whole.String(), string(text))
			case "jsonl":
				for _, v := range list {
					require.NoError(t, write(&whole)(encode(v, "", "")))
				}
				require.Equal(t, whole.String(), out.String())
			}
		}
	}
	require.Error(t, NewList(&bytes.Buffer{}, "json").Begin(func() {}, "list"))
	require.Error(t, NewList(&bytes.Buffer{}, "json").Add(func() {}))
	require.Error(t, NewList(&bytes.Buffer{}, "json").End(func() {}))
}
