package columns_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/native"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj, _, err := encoding.DecodeObject(data)
	require.NoError(t, err)
	return obj
}

// now returns the reference time of ages.
func now() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// TestRowsOfAnything checks that a row of any object has a cell for each column, or only the name.
func TestRowsOfAnything(t *testing.T) {
	objects := []string{
		`{}`, `{metadata: {name: a}}`, `{metadata: {name: a}, spec: {}, status: {}}`,
		`{metadata: {name: a}, spec: x, status: 7}`,
		`{metadata: {name: a, creationTimestamp: nonsense}}`, `{metadata: 5}`, `{metadata: {name: 5}}`,
		`{metadata: {name: a}, spec: {containers: 7, rules: [x], template: null}, subsets: x, webhooks: 3}`,
	}
	for _, kind := range inspect.Builtins() {
		table := columns.For(kind)
		require.NotEmpty(t, table.Columns, kind.Name())
		for _, text := range objects {
			cells := table.Row(parse(t, text), now())
			require.NotEmpty(t, cells, "%s %s", kind.Name(), text)
			if len(cells) > 1 {
				require.Len(t, cells, len(table.Columns), "%s %s", kind.Name(), text)
			}
			for _, cell := range cells {
				require.NotContains(t, fmt.Sprintf("%v", cell), "0x", "%s %s", kind.Name(), text)
			}
		}
	}
}

// customType returns a type with printer columns, in JSON after the fields of its version.
func customType(t *testing.T, columns string) *inspect.Type {
	t.Helper()
	parsed, err := schema.ParseCRD(
		[]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
		"versions":[{"name":"v1alpha1","served":true,"storage":true,"additionalPrinterColumns":[{"name":"Old","type":"string","jsonPath":".x"}]},
		{"name":"v1","served":true,"storage":false` + columns + `}]}}`))
	require.NoError(t, err)
	return &inspect.Type{Resource: gvr.GroupResource{Group: "example.com", Resource: "widgets"},
		Kind: "Widget", CRD: parsed}
}

func TestCustomColumns(t *testing.T) {
	crd := func(columns string) *inspect.Type { return customType(t, columns) }
	table := columns.For(
		crd(
			`,"additionalPrinterColumns":[{"name":"S","type":"string","jsonPath":".spec.s"},{"name":"I",` +
				`"type":"integer","jsonPath":".spec.i","priority":1},` +
				`{"name":"N","type":"number","jsonPath":".spec.num"},{"name":"B","type":"boolean",` +
				`"jsonPath":".spec.b"},{"name":"D","type":"date","jsonPath":".spec.d"},` +
				`{"name":"Broken","type":"string","jsonPath":".spec["}]`))
	var names []string
	for _, c := range table.Columns {
		names = append(names, fmt.Sprint(c.Name, c.Priority))
	}
	require.Equal(t, "Name0 S0 I1 N0 B0 D0 Broken0", strings.Join(names, " "))
	for text, want := range map[string][]any{
		`{metadata: {name: a}, spec: {s: x, i: 7, num: 1.5, b: true, d: "2026-11-20T11:00:00Z"}}`: {"a", "x", int64(7),
			1.5, true, "60m", nil},
		`{metadata: {name: a}, spec: {s: 7, i: 7.9, num: 2, b: x, d: x}}`: {"a", "7", int64(7),
			int64(2), nil, "<invalid>", nil},
		`{metadata: {name: a}, spec: {s: {k: v}, i: x, num: x, d: 7}}`: {"a", `{"k":"v"}`,
			nil, nil, nil, nil, nil},
		`{metadata: {name: a}}`: {"a", nil, nil, nil, nil, nil, nil},
	} {
		require.Equal(t, want, table.Row(parse(t, text), now()), text)
	}
	many := `{"name":"S","type":"string","jsonPath":".spec.s"}` +
		strings.Repeat(`,{"name":"S","type":"string","jsonPath":".spec.s"}`, 4999)
	table = columns.For(crd(`,"additionalPrinterColumns":[` + many + `]`))
	require.Len(t, table.Columns, 1+100)
	require.Equal(t, 4900, table.LeftOut)
	require.Len(t, table.Row(parse(t, `{metadata: {name: a}}`), now()), 1+100)
	table = columns.For(crd(""))
	require.Len(t, table.Columns, 2)
	require.Zero(t, table.LeftOut)
	require.Equal(t, []any{"a", "24h"},
		table.Row(parse(t, `{metadata: {name: a, creationTimestamp: "2026-11-19T12:00:00Z"}}`), now()))
}

// TestCustomCells checks that cells equal those of an API server's table convertor, for values and
// columns of all types. Ages are left out: they follow the clock.
func TestCustomCells(t *testing.T) {
	for _, columnType := range []string{"string", "integer", "number", "boolean"} {
		column := apiextensionsv1.CustomResourceColumnDefinition{Name: "C", Type: columnType, JSONPath: ".spec.x"}
		server, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{column})
		require.NoError(t, err)
		text, err := json.Marshal(column)
		require.NoError(t, err)
		ours := columns.For(customType(t, `,"additionalPrinterColumns":[`+string(text)+`]`))
		for _, value := range []string{`null`, `""`, `"a"`, `"7"`, `7`, `7.5`, `1e20`, `-0.000001`, `true`, `{}`,
			`{"k":null}`, `[]`, `[null]`, `[1,"x",{"y":[2]}]`} {
			object := parse(t, `{metadata: {name: a}, spec: {x: `+value+`}}`)
			table, err := server.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: object}, nil)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(table.Rows[0].Cells[1]), fmt.Sprint(ours.Row(object, now())[1]), "%s as %s",
				value, columnType)
		}
	}
}

// TestPlainTable checks that an unknown type has a name and an age, and that an age without a time
// is unknown.
func TestPlainTable(t *testing.T) {
	table := columns.For(&inspect.Type{Resource: gvr.GroupResource{Resource: "novelties"}})
	content := parse(t, `{metadata: {name: a, creationTimestamp: "2026-11-19T12:00:00Z"}}`)
	require.Equal(t, []any{"a", "24h"}, table.Row(content, now()))
	require.Equal(t, []any{"a", "<unknown>"}, table.Row(content, time.Time{}))
	require.Equal(t, []any{"a", "<unknown>"}, table.Row(parse(t, `{metadata: {name: a}}`), now()))
}

// TestStoredRows checks that values stored by a server have complete rows.
func TestStoredRows(t *testing.T) {
	for name, want := range map[string]int{"apps.v1.DaemonSet": 11, "apps.v1.Deployment": 8, "core.v1.Pod": 9,
		"core.v1.Secret": 4} {
		data, err := os.ReadFile(filepath.Join("../../encoding/testdata/k8s", name+".pb"))
		require.NoError(t, err)
		content, err := native.Decode(data)
		require.NoError(t, err)
		for _, kind := range inspect.Builtins() {
			if kind.Kind == content["kind"] {
				require.Len(t, columns.For(kind).Row(content, now()), want, name)
			}
		}
	}
}
